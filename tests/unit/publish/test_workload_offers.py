from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.decision import Clamp, Reason, Scale
from forecaster.domain.policy import Policy
from forecaster.domain.workload import Target, TargetType
from forecaster.horizontal.clamps import CLAMPS
from forecaster.publish.values import MetricTarget, OfferedNumber, WorkloadOffer
from tests.support.published import offer_of
from tests.support.recommendations import NOON, ahead, recommendation, signal_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.domain.decision import Recommendation

PUBLISH = Policy.model_validate({"mode": "publish"})
ONE = replace(recommendation(), signals=(signal_view("cpu"),), clamps=())


def offered(row: Recommendation = ONE, before: Sequence[Recommendation] = (), **policy: object) -> WorkloadOffer:
    offer = offer_of(row, Policy.model_validate({"mode": "publish", **policy}), before)
    assert offer is not None
    return offer


def test_a_policy_that_only_observes_offers_nothing() -> None:
    assert offer_of(ONE, Policy()) is None


def test_demand_is_the_forecast_peak() -> None:
    assert offered().demands == (OfferedNumber(1.75, NOON, "forecast", signal="cpu", quantile=0.9),)


def test_a_forecast_below_the_measured_demand_lowers_nothing_unless_the_policy_says_so() -> None:
    busy = replace(ONE, signals=(replace(signal_view("cpu"), measured=2.5),))
    assert offered(busy).demands == (OfferedNumber(2.5, NOON, "measured", signal="cpu"),)
    assert offered(busy, horizontal={"scale_in_by_forecast": True}).demands[0].value == 1.75


def test_without_a_forecast_the_measured_demand_is_served() -> None:
    blind = replace(ONE, signals=(replace(signal_view("cpu"), forecast=None, forecast_replicas=None),))
    assert offered(blind).demands == (OfferedNumber(1.234567, NOON, "measured", signal="cpu"),)
    assert offered(blind).floor is None


def test_a_forecast_that_is_only_watched_is_nobody_to_act_on() -> None:
    offer = offered(replace(ONE, shadow=True))
    assert offer.demands == (OfferedNumber(1.234567, NOON, "measured", signal="cpu"),)
    assert offer.replicas is not None
    assert offer.replicas.source == "measured"
    assert offer.floor == OfferedNumber(ONE.signals[0].reactive_replicas, NOON, "measured")


def test_a_watched_forecast_is_no_demand_where_nothing_is_measured_either() -> None:
    blind = replace(signal_view("cpu"), measured=None, measured_at=None, reactive_replicas=None)
    offer = offered(replace(ONE, shadow=True, signals=(blind,)))
    assert (offer.demands, offer.floor) == ((), None)


def test_the_timestamp_is_that_of_the_newest_sample() -> None:
    earlier = NOON - timedelta(seconds=50)
    late = replace(ONE, signals=(replace(signal_view("cpu"), measured_at=earlier),))
    assert {offered(late).demands[0].at, offered(late).replicas.at} == {earlier}  # type: ignore[union-attr]


def test_the_count_is_what_it_was_before_the_clamps_that_the_hpa_applies_itself() -> None:
    clamps = (Clamp("forecast", 4, 6, ""), Clamp("stabilization", 6, 9, ""), Clamp("bounds", 9, 8, ""))
    assert offered(replace(ONE, clamps=clamps, offered=6)).replicas == OfferedNumber(6, NOON, "forecast")


def test_the_floor_is_the_most_that_a_forecast_asks_for() -> None:
    two = (signal_view("cpu"), replace(signal_view("memory"), forecast_replicas=8))
    assert offered(replace(ONE, signals=two)).floor == OfferedNumber(8, NOON, "forecast")


@pytest.mark.parametrize("clamp", [clamp.name for clamp in CLAMPS[1:]])
@pytest.mark.parametrize("count", [3, 9], ids=["lowers", "raises"])
def test_whichever_clamp_changes_the_count_every_number_leads_to_it(clamp: str, count: int) -> None:
    view = replace(signal_view("cpu"), pod=0.35)
    clamps = (Clamp("forecast", 4, 5, ""), Clamp(clamp, 5, count, ""))
    offer = offered(replace(ONE, signals=(view,), replicas=Scale(count, Reason.FORECAST, ""), clamps=clamps))
    assert offer.demands[0].value == pytest.approx(count * 0.35)
    assert offer.replicas == offer.floor == OfferedNumber(count, NOON, "forecast")


def test_metrics_of_others_are_not_ours_to_serve() -> None:
    queue = replace(signal_view("cpu"), signal="queue_length", target="", forecast=ahead())
    assert offered(replace(ONE, signals=(queue,))).demands == ()


def test_readers_are_the_targets_of_the_hpa_that_name_our_metrics() -> None:
    targets = (Target("cpu", TargetType.UTILIZATION, 0.7), Target("forecaster_demand", TargetType.AVERAGE_VALUE, 0.5))
    assert offered(replace(ONE, targets=targets)).consumers == (MetricTarget("forecaster_demand", "AverageValue", 0.5),)


def test_while_there_is_knowledge_no_earlier_number_is_repeated() -> None:
    later = replace(ONE, at=NOON + timedelta(minutes=1), signals=(replace(signal_view("cpu"), measured=2.5),))
    assert offered(later, before=[ONE]).demands == offered(later).demands
    assert offered(later).demands[0].value == 2.5


def test_where_knowledge_ends_its_last_numbers_stay_and_are_marked() -> None:
    hold = replace(recommendation(replicas=None, reason=Reason.SOURCE_DOWN, now=5), signals=())
    later = replace(hold, at=NOON + timedelta(minutes=3))
    offer = offered(later, before=[ONE])
    assert offer.demands == (OfferedNumber(1.75, NOON, "forecast", known=False, signal="cpu", quantile=0.9),)
    assert (offer.replicas_now, offer.replicas_held) == (5, 3)
    assert offer.why == "source-down"


def test_the_count_is_pinned_when_knowledge_ends_and_not_later() -> None:
    blind = replace(recommendation(replicas=None, now=5), signals=())
    second = offered(replace(recommendation(replicas=None, now=9), signals=()), before=[ONE, blind])
    assert (second.replicas_now, second.replicas_held) == (9, 3)


def test_a_number_older_than_anybody_may_repeat_is_dropped() -> None:
    later = replace(recommendation(replicas=None, at=NOON + timedelta(minutes=11)), signals=())
    offer = offered(later, before=[ONE])
    assert (offer.demands, offer.replicas, offer.floor) == ((), None, None)
