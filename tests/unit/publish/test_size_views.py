"""Sizes that stand are put into their public form once, and again when they are others."""

from __future__ import annotations

from dataclasses import replace

from forecaster.domain.decision import Reason, Resize
from forecaster.domain.workload import Resources
from forecaster.publish.views import SizeViews, resources_view
from tests.support.recommendations import GIB, recommendation

HALF, WHOLE = Resources(0.5, None, GIB, GIB), Resources(1.0, None, GIB, GIB)


def test_they_are_those_of_the_newest_decision() -> None:
    told, one = SizeViews(), recommendation()
    smaller = replace(one, resources=Resize(HALF, Reason.SIZED, "500m"))
    rolled_out = replace(smaller, resources_now=WHOLE)
    for each in (one, smaller, smaller, rolled_out, one):
        assert told.of(each) == resources_view(each)
    assert told.of(smaller) is told.of(replace(smaller, replicas_now=7))


def test_those_who_left_are_forgotten() -> None:
    told, one = SizeViews(), recommendation()
    told.of(one)
    told.forget_others({one.id})
    assert list(told.said) == [one.id]
    told.forget_others(())
    assert not told.said
