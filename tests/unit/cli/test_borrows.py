"""A workload that is new borrows from others, so that they are read, too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.cli.once import borrows
from forecaster.domain.signal import CPU
from forecaster.domain.window import DAY, FIVE_MINUTES, Window
from tests.support.builders import NOON
from tests.support.recommendations import workload_id

if TYPE_CHECKING:
    from forecaster.cycle.run import Cycle

WEB, API = workload_id("web"), workload_id("api")


def cycle(days_kept: float, days_of_web: float) -> Cycle:
    """The web has so many days of its own, the other one all that are kept."""
    columns, own = (int(days * (DAY / FIVE_MINUTES)) for days in (days_kept, days_of_web))
    values = np.ones((2, columns), np.float32)
    values[0, : columns - own] = np.nan
    weeks = Window((WEB, API), NOON, FIVE_MINUTES, values)
    return SimpleNamespace(history=SimpleNamespace(signals=(CPU,), window=lambda *_: weeks))  # type: ignore[return-value]


@pytest.mark.parametrize(("kept", "own", "told"), [(14, 1, True), (14, 3, False), (14, 0, False), (2, 1, False)])
def test_only_what_has_less_than_two_days_of_its_own_where_others_have_more(
    kept: float, own: float, *, told: bool
) -> None:
    assert borrows(cycle(kept, own), {WEB}) is told


def test_a_workload_with_a_past_needs_no_other() -> None:
    assert not borrows(cycle(14, 1), {API})
