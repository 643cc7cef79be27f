"""What is on a tape is all that decisions are made of: played again, every number is the same to the last digit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.app.tape_replay import beginning, retell
from forecaster.config.settings import parse
from forecaster.cycle.lead_times import LeadTimes
from forecaster.cycle.observed import Observed
from forecaster.domain.decision import Reason
from forecaster.domain.layers import ClusterPolicies, Layer
from forecaster.domain.policy import PolicySelector
from forecaster.domain.signal import CPU, PODS
from forecaster.domain.window import StartedPod
from forecaster.errors import SourceRefused, StoreError
from forecaster.horizontal.lead_time import ScaleUpWatch
from forecaster.sources.tape import Tape, TapedLedger, TapedSource, TapeReader
from tests.support.builders import NOON, after, minutes, workload
from tests.support.fakes import SHORT, CycleOnFakes, FakeLedger, Load, load, named, nobody_answers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from forecaster.app.tape_replay import Retold

RESTRAINED = {"gate": True, "outage_hold": "10m"}
POLICY = {"horizontal": {"gate": False, "sizing": "newsvendor", "scale_in_by_forecast": True}}


def wavy(at: datetime) -> float:
    """A wave of two hours with a jump every half hour; nothing is measured in every seventh minute."""
    minute = (at - NOON) // minutes(1)
    wave = 3.0 + np.sin(minute / 19.1) + 2.0 * (minute % 30 < 4)
    return float("nan") if minute % 7 == 3 else float(wave)


@dataclass
class Recorded:
    """A service on fakes with a tape beside it."""

    path: Path
    model: str = "ridge"
    pods: float = 4.0
    policy: Mapping[str, object] = field(default_factory=POLICY.copy)

    def __post_init__(self) -> None:
        given = {
            "history": SHORT.model_dump(mode="json"),
            "forecast": {"model": self.model},
            "policy": self.policy,
        }
        self.settings = parse(given, "test")
        limit = self.pods * 2.0
        wave = Load(workload("web"), {CPU: lambda at: min(wavy(at), limit), PODS: lambda at: self.pods})
        self.stage = CycleOnFakes(
            wave, load("cart"), policies=self.settings.policies, model=self.model, learns_first=False
        )
        self.tape = Tape(self.path, beginning(self.settings, self.stage.history, NOON))
        self.stage.cycle.source = TapedSource(self.stage.source, self.tape)
        self.stage.cycle.effects.ledger = TapedLedger(self.stage.ledger, self.tape)

    def run(self, first: int, last: int) -> None:
        self.stage.run_minutes(first, last)

    def told(self) -> list[Retold]:
        self.tape.close()
        return list(retell(self.path))


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    service = Recorded(tmp_path / "tape")
    yield service
    service.tape.close()


def test_every_recorded_decision_is_made_again_to_the_last_digit(recorded: Recorded) -> None:
    recorded.run(0, 45)
    told = recorded.told()
    assert [one.at for one in told] == [after(minute) for minute in range(46)]
    assert all(one.then for one in told)
    assert all(one.same for one in told)
    kept = [decisions for _, decisions in recorded.stage.ledger.recorded]
    assert [tuple(one.outcome.recommendations) for one in told] == kept


def test_what_held_demand_down_is_seen_again(tmp_path: Path) -> None:
    service = Recorded(tmp_path / "tape", pods=1.0)
    service.run(0, 20)
    told = service.told()
    assert all(one.same for one in told)
    assert [one.reason for one in told[-1].outcome.report.masked] == ["limit"]
    assert "at the CPU limit" in told[-1].outcome.recommendations[0].signals[0].note


def test_restraints_and_a_closed_gate_are_retold(tmp_path: Path) -> None:
    """Events, holds, and the price and budget of changes live in what is remembered from cycle to cycle."""
    often = {"cron": "*/15 * * * *", "duration": "4m"}
    service = Recorded(
        tmp_path / "tape", policy={"horizontal": RESTRAINED | {"events": [{"name": "sale", "replicas": 9} | often]}}
    )
    service.run(0, 20)
    service.stage.source.down = nobody_answers()
    service.run(21, 24)
    service.stage.source.down = None
    service.run(25, 40)
    told = service.told()
    assert all(one.same for one in told)
    steps = {clamp.rule for one in told for clamp in named(one.outcome, "web").clamps}
    assert {"event", "stabilization"} <= steps
    reasons = {named(one.outcome, "web").replicas.reason for one in told}
    assert Reason.GATED in reasons


def test_what_objects_of_the_cluster_state_is_on_the_tape(recorded: Recorded) -> None:
    recorded.run(0, 3)
    layer = Layer("PredictiveAutoscaler shop/web", {"horizontal": {"min_replicas": 12, "lead_time": "7m"}})
    by_label = PolicySelector(labels={"team": "shop"})
    recorded.stage.source.policies = ClusterPolicies(
        ((by_label, layer),), {workload("api").id: (layer,)}, {workload("web").id: {"team": "shop"}}
    )
    recorded.run(4, 7)
    recorded.stage.source.policies = ClusterPolicies()
    recorded.run(8, 10)
    told = recorded.told()
    assert all(one.same for one in told)
    counts = [named(one.outcome, "web").replicas.replicas for one in told]
    assert [count >= 12 for count in counts] == [False] * 4 + [True] * 4 + [False] * 3


def test_pods_that_became_ready_are_on_the_tape_with_their_node_pools(recorded: Recorded) -> None:
    web, inventory = workload("web").id, recorded.stage.source.inventory
    pods = (StartedPod(minutes(4), "gpu"), StartedPod(minutes(1)))
    recorded.stage.source.inventory = lambda at: replace(inventory(at), started={web: pods})  # type: ignore[method-assign]
    recorded.run(0, 2)
    told = recorded.told()
    assert all(one.same for one in told)
    assert told[-1].outcome.inventory.started == {web: pods}


def test_an_outage_of_the_source_is_on_the_tape_too(recorded: Recorded) -> None:
    recorded.run(0, 3)
    recorded.stage.source.down = nobody_answers()
    recorded.run(4, 6)
    recorded.stage.source.down = None
    recorded.run(7, 12)
    told = recorded.told()
    assert len(told) == 13
    assert all(one.same for one in told)
    assert told[5].outcome.report.failures == ("nobody answers at http://prometheus:9090",)


def test_a_service_that_was_restarted_begins_with_what_it_knew(tmp_path: Path) -> None:
    first = Recorded(tmp_path / "first")
    first.run(0, 5)
    first.tape.close()
    again = Recorded(tmp_path / "again")
    again.stage.cycle.history = first.stage.history
    again.tape.close()
    again.tape = Tape(again.path, beginning(again.settings, first.stage.history, after(6)))
    again.stage.cycle.source = TapedSource(again.stage.source, again.tape)
    again.stage.cycle.effects.ledger = TapedLedger(again.stage.ledger, again.tape)
    again.run(6, 9)
    assert all(one.same for one in again.told())


def test_a_lead_time_that_is_measured_on_the_way_is_retold_too(recorded: Recorded) -> None:
    """Pods take eight minutes, and a scale-up comes every twelve: the fifth changes what is looked at."""
    first = recorded.stage.source.loads[0]
    for minute in range(75):
        count, late = 4 + minute // 12, minute >= 12 and minute % 12 < 8
        one = replace(first.workload, replicas=count, ready_replicas=count - late)
        recorded.stage.source.loads[0] = replace(first, workload=one)
        recorded.run(minute, minute)
    told = recorded.told()
    assert all(one.same for one in told)
    leads = [named(one.outcome, "web").lead_time for one in told]
    assert [lead.value for lead in leads if lead] == [minutes(3)] * 68 + [minutes(10)] * 7


def test_what_was_measured_before_the_tape_began_is_on_it(tmp_path: Path) -> None:
    observed = Observed(LeadTimes(watches={workload("web").id: ScaleUpWatch(took=(minutes(9),) * 5, rung=minutes(10))}))
    again = Recorded(tmp_path / "again")
    again.tape.close()
    again.tape = Tape(again.path, beginning(again.settings, again.stage.history, NOON, observed=observed))
    again.stage.cycle.decider.observed = observed
    again.stage.cycle.source = TapedSource(again.stage.source, again.tape)
    again.stage.cycle.effects.ledger = TapedLedger(again.stage.ledger, again.tape)
    again.run(0, 3)
    told = again.told()
    assert all(one.same for one in told)
    lead = named(told[-1].outcome, "web").lead_time
    assert lead
    assert lead.value == minutes(10)


def test_another_decision_is_named(recorded: Recorded) -> None:
    recorded.run(0, 2)
    told = recorded.told()[-1]
    other = told._replace(then=(told.then or b"").replace(b"cart", b"kart"))
    assert not other.same
    assert len(other.differences()) == 1


def test_a_tape_that_was_cut_off_is_played_as_far_as_it_goes(recorded: Recorded) -> None:
    recorded.run(0, 4)
    recorded.tape.close()
    whole = recorded.path.read_bytes()
    recorded.path.write_bytes(whole[:-10])
    told = list(retell(recorded.path))
    assert [one.then is None for one in told] == [False] * 4 + [True]


def test_another_question_than_the_tape_has_is_refused(recorded: Recorded) -> None:
    recorded.run(0, 1)
    recorded.tape.close()
    reader = TapeReader(recorded.path)
    reader.cycle()
    with pytest.raises(SourceRefused, match="settings and the version"):
        reader.inventory(after(1))


def test_what_is_no_tape_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(SourceRefused, match="not a tape"):
        TapeReader(tmp_path / "text")
    with pytest.raises(SourceRefused, match="No such file"):
        TapeReader(tmp_path / "absent")


def test_a_tape_that_cannot_be_continued_stops_nobody_and_says_so(recorded: Recorded) -> None:
    recorded.run(0, 0)
    recorded.tape.close()
    recorded.run(1, 1)
    assert len(recorded.stage.ledger.recorded) == 2
    with pytest.raises(StoreError, match="ended"):
        TapedLedger(FakeLedger(), recorded.tape).record(NOON, [])
