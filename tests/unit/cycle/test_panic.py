"""Panic windows: four pods that carry half a core each, and a burst that the shorter window shows first."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from forecaster.domain.decision import Hold, Reason, Scale
from forecaster.domain.policies import Policies
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU
from forecaster.errors import SourceUnavailable
from forecaster.horizontal.explain import explanation
from forecaster.publish.rows import offered_cycle
from tests.support.builders import after
from tests.support.fakes import BurstSource, CycleOnFakes, load, named, steady

if TYPE_CHECKING:
    from forecaster.cycle.run import Outcome
    from forecaster.domain.decision import Recommendation

HALF_A_MINUTE = timedelta(seconds=30)


def policies(window: timedelta | None = HALF_A_MINUTE, **horizontal: object) -> Policies:
    stated = HorizontalPolicy.model_validate({"gate": False, "panic_window": window, **horizontal})
    return Policies(Policy(mode="publish", horizontal=stated))


@dataclass
class Stage:
    """A cycle on a source that tells bursts."""

    policies: Policies = field(default_factory=policies)
    cpu: float = 2.0
    stage: CycleOnFakes = field(init=False)
    source: BurstSource = field(init=False)

    def __post_init__(self) -> None:
        self.stage = CycleOnFakes(load("web", cpu=self.cpu), policies=self.policies, learns_first=False)
        self.source = BurstSource(self.stage.source.loads)
        self.stage.source = self.stage.cycle.source = self.source
        self.stage.run_minutes(0, 2)

    def minute(self, number: int = 3) -> tuple[Recommendation, Outcome]:
        outcome = self.stage.run(after(number))
        return named(outcome, "web"), outcome


def test_a_burst_in_the_shorter_window_raises_the_count_and_what_is_published_and_says_why() -> None:
    stage = Stage()
    stage.source.burst = {CPU: 5.0}
    web, outcome = stage.minute()
    assert isinstance(web.replicas, Scale)
    assert web.wanted_replicas == 10
    assert web.signals[0].measured == 5.0
    assert "measured over its panic window, the last 30s" in "\n".join(explanation(web))
    assert outcome.report.failures == ()
    offer = offered_cycle(after(3), outcome.recommendations, [stage.policies.of(web.id)]).offer(0)
    assert offer is not None
    assert offer.replicas is not None
    assert (offer.demands[0].value, offer.replicas.value) == (5.0, 10.0)


def test_a_shorter_window_that_shows_less_lowers_nothing() -> None:
    stage = Stage()
    stage.source.burst = {CPU: 0.1}
    web, _ = stage.minute()
    assert web.wanted_replicas == 4
    assert web.signals[0].measured == 2.0
    assert "panic" not in "\n".join(explanation(web))


def test_a_shorter_window_in_which_pods_lack_samples_counts_for_nothing() -> None:
    """Three of four pods: what they use together is no sum, and may have been used before the window."""
    stage = Stage()
    stage.source.burst, stage.source.pods = {CPU: 5.0}, 3.0
    web, _ = stage.minute()
    assert web.wanted_replicas == 4
    assert web.signals[0].measured == 2.0


def test_a_shorter_window_that_is_not_answered_is_one_line_and_measured_demand_decides() -> None:
    stage = Stage()
    stage.source.burst, stage.source.fails = {CPU: 5.0}, SourceUnavailable("Prometheus is away")
    web, outcome = stage.minute()
    assert web.wanted_replicas == 4
    assert outcome.report.failures == ("panic window of cpu: Prometheus is away",)


def test_a_window_without_two_scrapes_is_said() -> None:
    stage = Stage()
    stage.source.empty = True
    web, outcome = stage.minute()
    assert web.wanted_replicas == 4
    assert outcome.report.failures == ("panic window of cpu: no pod has two samples within 30s",)


def test_without_measured_demand_the_shorter_window_says_nothing() -> None:
    stage = Stage()
    stage.source.mute = {CPU: after(3)}
    stage.stage.run_minutes(3, 9)
    stage.source.burst = {CPU: 5.0}
    web, _ = stage.minute(10)
    assert isinstance(web.replicas, Hold)
    assert web.replicas.reason is Reason.STALE


def test_a_source_that_knows_one_window_only_is_said_and_the_cycle_goes_on() -> None:
    stage = CycleOnFakes(load("web", cpu=2.0), policies=policies(), learns_first=False)
    outcome = stage.run()
    assert named(outcome, "web").wanted_replicas == 4
    assert outcome.report.failures == (
        "policies state a panic_window, and this source knows demand over one window only",
    )


def test_each_window_is_asked_once_a_cycle_and_none_where_no_policy_states_one() -> None:
    stage = Stage()
    stage.source.windows.clear()
    stage.minute()
    assert stage.source.windows == [(CPU, HALF_A_MINUTE)]
    silent = Stage(policies(None))
    silent.source.burst = {CPU: 5.0}
    assert silent.minute()[0].wanted_replicas == 4
    assert silent.source.windows == []


def test_the_burst_reaches_newsvendor_sizing_and_what_if() -> None:
    stage = Stage(policies(sizing="newsvendor", scale_in_by_forecast=True, peak_target=1.0))
    stage.source.burst = {CPU: 5.0}
    web, outcome = stage.minute()
    assert web.wanted_replicas >= 10
    otherwise = stage.stage.cycle.what_if(policies(), outcome.report.at)
    assert otherwise[0].wanted_replicas == 10


def test_after_a_burst_the_count_waits_for_stabilization() -> None:
    stage = Stage()
    stage.source.burst = {CPU: 5.0}
    stage.minute(3)
    stage.source.burst = {}
    stage.source.loads[0].demand[CPU] = steady(2.0)
    assert [stage.minute(minute)[0].wanted_replicas for minute in (4, 7, 9)] == [10, 10, 4]
