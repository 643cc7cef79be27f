"""Commands on recorded load judge the same gates again and again: equal evidence is computed once."""

from __future__ import annotations

import hashlib
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.replay import judging

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="package", autouse=True)
def evidence_once() -> Iterator[None]:
    """Evidence is a pure function of what it is given, and takes seven of the nine seconds of a command."""
    compute, known = judging.evidence_of, dict[bytes, tuple[Any, ...]]()

    def evidence_of(*given: Any) -> tuple[Any, ...]:
        key = hashlib.sha256(pickle.dumps(given)).digest()
        if key not in known:
            known[key] = tuple(compute(*given))
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "evidence_of", evidence_of)
        yield
