"""Services and commands on recorded load judge the same gates again and again: equal evidence is computed once."""

from __future__ import annotations

import hashlib
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.replay import evidence, judging

if TYPE_CHECKING:
    from collections.abc import Iterator

_known: dict[bytes, tuple[Any, ...]] = {}


@pytest.fixture(scope="session", autouse=True)
def evidence_once() -> Iterator[None]:
    """Evidence is a pure function of what it is given, and takes most of the time of a first cycle or a command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "evidence_of", _evidence_of)
        yield


def _evidence_of(*given: Any) -> tuple[Any, ...]:
    key = hashlib.sha256(pickle.dumps(given)).digest()
    if key not in _known:
        _known[key] = tuple(evidence.evidence_of(*given))
    return _known[key]
