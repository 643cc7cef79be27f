"""The live comparison: what no cycle had the time to replay is left out, and not kept without end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np

from forecaster.config.settings import Settings
from forecaster.cycle.benefit import REPLAY_LATEST, LiveBenefit
from forecaster.domain.window import MINUTE
from tests.support.builders import after, workload

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.cycle.steps import TimeShare
    from forecaster.ports import Histories
    from forecaster.publish.publisher import OfferedCycle

WEB = workload("web")
NO_TIME = cast("TimeShare", lambda: False)
NO_HISTORY = cast("Histories", None)
"""Fails a story in which anything is replayed."""


def decided(at: datetime, count: int) -> OfferedCycle:
    columns = SimpleNamespace(recommended=np.array([count]))
    return cast("OfferedCycle", SimpleNamespace(at=at, ids=(WEB.id,), decided=columns))


def test_hours_that_no_cycle_had_time_for_are_left_out() -> None:
    benefit, late = LiveBenefit(), REPLAY_LATEST // MINUTE + 1
    for minute in range(late + 1):
        benefit.receive(decided(after(minute), minute % 7 + 1))
    benefit.renew([WEB], NO_HISTORY, Settings().policies, after(late), NO_TIME)
    assert benefit.pasts[WEB.id].until == after(late)


def test_a_workload_that_comes_is_no_other_decision_about_the_others() -> None:
    """In a fleet in which some workload comes every minute, each would have 60 decisions an hour to keep and replay."""
    benefit, other = LiveBenefit(), workload("cart").id
    for minute in range(10):
        ids = (WEB.id, *[other] * (minute % 2))
        columns = SimpleNamespace(recommended=np.full(len(ids), 3))
        benefit.receive(cast("OfferedCycle", SimpleNamespace(at=after(minute), ids=ids, decided=columns)))
    benefit.renew([WEB], NO_HISTORY, Settings().policies, after(10), NO_TIME)
    assert len(benefit.decided[WEB.id]) == 1


def test_a_workload_that_cannot_be_replayed_is_left_out_and_says_why() -> None:
    benefit, late = LiveBenefit(), 61
    benefit.receive(decided(after(0), 3))
    benefit.renew([WEB], NO_HISTORY, Settings().policies, after(late), NO_TIME)
    assert benefit.pasts[WEB.id].until == after(late)
    assert "AttributeError" in benefit.pasts[WEB.id].left_out
    assert b"not known: " in benefit.texts.texts[WEB.id]
