"""Two policies differ where a count or a size does, not where the words about it do."""

from __future__ import annotations

from dataclasses import replace

from forecaster.domain.decision import Reason, Resize, Scale
from forecaster.report.decided import difference_view, numbers_of
from tests.support.recommendations import recommendation

ONE = recommendation(now=3, replicas=5)


def test_other_words_about_the_same_numbers_are_no_difference() -> None:
    assert isinstance(ONE.resources, Resize)
    reworded = replace(
        ONE, replicas=Scale(5, Reason.REACTIVE, "other words"), resources=replace(ONE.resources, message="")
    )
    assert numbers_of(reworded) == numbers_of(ONE)
    assert not difference_view(ONE, reworded).resources_differ


def test_another_count_another_size_and_a_hold_are() -> None:
    sized = recommendation(now=3, replicas=5, cpu_request=0.75)
    others = [recommendation(now=3, replicas=6), recommendation(now=3, replicas=None), sized]
    assert ONE.recommended_replicas == 5
    assert all(numbers_of(other) != numbers_of(ONE) for other in others)
    assert difference_view(ONE, sized).resources_differ
