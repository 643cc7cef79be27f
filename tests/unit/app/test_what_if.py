"""From the history of a service, over its socket, to the answer that a page draws."""

from __future__ import annotations

import socket
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
import yaml

from forecaster.app.facts import FactsServer, requested_facts
from forecaster.app.what_if import WhatIfAnswers, what_if_facts
from forecaster.config.settings import parse
from forecaster.cycle.workload_facts import encoded_facts, facts_of
from forecaster.domain.signal import CPU
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.horizontal.lead_time import ScaleUpWatch
from forecaster.hpa.behavior import Behavior, ScalingRules
from forecaster.hpa.spec import CrossVersionObjectReference, HpaSpec
from forecaster.serving.fleet import fleet_view
from tests.support.builders import GIB, NOON, workload
from tests.support.composed import composed, published, recorded_cluster, tick

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.cycle.run import Cycle
    from forecaster.sources.live_objects import LiveHpa

WEB = WorkloadId("shop", "Deployment", "web")


@pytest.fixture(scope="module")
def cycle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cycle]:
    """A cycle that has run once."""
    sale = {"name": "sale", "cron": "0 9 * * *", "duration": "1h", "time_zone": "Europe/Berlin", "replicas": 9}
    policy = {"mode": "publish", "horizontal": {"quantile": 0.95, "events": [sale]}}
    directory = tmp_path_factory.mktemp("state")
    present = (workload("web"), workload("cart", autoscaler=None))
    with recorded_cluster(present) as cluster, composed(cluster, directory, policy=policy) as service:
        tick(service, NOON)
        fleet = fleet_view(published(directory), None)
        assert fleet.request == [(1.0, GIB)] * 2
        assert len(fleet.resized) == len(fleet.high) == 2
        yield service.cycle


@pytest.fixture(scope="module")
def facts(cycle: Cycle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FactsServer]:
    server = FactsServer(partial(encoded_facts, cycle), tmp_path_factory.mktemp("facts"))
    server.start()
    yield server
    server.close()


def test_a_question_while_gates_are_judged_keeps_no_gate_of_before(cycle: Cycle) -> None:
    """Kept by the thread that answers it, the cycle would go on deciding by it until gates are judged again."""
    cycle.decider.observed.gates.records = {}
    assert facts_of(cycle, WEB)
    assert not cycle.decider.observed.gates.records


def answered(facts: FactsServer, id_: WorkloadId = WEB, **changes: float) -> Any:
    line = msgspec.json.encode({"id": id_, "changes": changes})
    return msgspec.json.decode(WhatIfAnswers(str(facts.path)).answer(line))


def test_the_hpa_alone_has_its_own_behavior(cycle: Cycle, facts: FactsServer) -> None:
    """An HPA that may not scale keeps the pods that it has, here as in the hourly comparison on the same page."""
    still = ScalingRules((), timedelta(), "Disabled")
    spec = HpaSpec(CrossVersionObjectReference("Deployment", "web", "apps/v1"), 100, (), 1, Behavior(still, still))
    watched = cast("LiveHpa", SimpleNamespace(spec=spec))
    assert cycle.benefit is not None
    default = answered(facts)["runs"]["hpa"]["changes"]
    cycle.benefit.scalers = lambda _: [("web", watched)]
    own = answered(facts)["runs"]["hpa"]["changes"]
    cycle.benefit.scalers = lambda _: ()
    assert default > own == 0


def test_policy_and_history_arrive_as_the_cycle_has_them(cycle: Cycle, facts: FactsServer) -> None:
    packed = requested_facts(str(facts.path), WEB)
    assert packed is not None
    known = what_if_facts(packed)
    assert known.policy == cycle.policies.of(WEB)
    assert known.traces.end == NOON
    for step, every in ((MINUTE, 1), (FIVE_MINUTES, 5)):
        window = cycle.history.window(CPU, step)
        stored = window.values[window.row[WEB]]
        first = known.traces.column(window.start)
        arrived = known.traces.of(CPU)[0, max(first, 0) :: every][-len(stored) :]
        assert abs(arrived[-20:] - stored[-20:]).max() < 1e-2 * stored[-20:].max()


def test_the_lead_time_is_the_one_in_force_which_pods_go_before_scale_ups(tmp_path: Path) -> None:
    with recorded_cluster((workload("web"),)) as cluster, composed(cluster, tmp_path) as service:
        service.cycle.decider.observed.lead_times.pods[WEB] = ScaleUpWatch(bucket=8 * MINUTE)
        tick(service, NOON)
        facts = facts_of(service.cycle, WEB)
    assert facts is not None
    assert what_if_facts(facts).policy.horizontal.lead_time == 8 * MINUTE


def test_an_answer_has_three_runs_over_the_same_minutes(facts: FactsServer) -> None:
    view = answered(facts, quantile=0.99)
    assert set(view["runs"]) == {"hpa", "now", "changed"}
    assert {len(run["ready"]) for run in view["runs"].values()} == {len(view["demand"])} == {180}
    assert view["settings"]["quantile"] == 0.95
    assert yaml.safe_load(view["yaml"])["overrides"][0]["policy"] == {"horizontal": {"quantile": 0.99}}


def test_its_policy_is_taken_by_the_settings(facts: FactsServer) -> None:
    changes = {
        "quantile": 0.9,
        "scale_down_stabilization": 600,
        "min_replicas": 2,
        "max_replicas": 12,
        "lead_time": 480,
    }
    text = answered(facts, gate=False, target_share=0.8, **changes)["yaml"]
    policy = parse(yaml.safe_load(text), "copied").policies.of(WEB).horizontal
    assert (policy.quantile, policy.min_replicas, policy.max_replicas, policy.gate) == (0.9, 2, 12, False)
    assert text.startswith("# In HPA web-hpa: every target at 80% of what it is.")


@pytest.mark.parametrize(
    ("id_", "changes", "why"),
    [
        (WEB._replace(name="nothing"), {}, "nothing is known of Deployment shop/nothing yet"),
        (WEB._replace(name="cart"), {}, "no HPA scales it"),
        (WEB, {"quantile": 3}, "quantile: "),
        (WEB, {"sizing": 1}, "sizing is no setting that can be tried"),
    ],
    ids=["unknown", "no HPA", "range", "name"],
)
def test_a_refusal_is_a_sentence(facts: FactsServer, id_: WorkloadId, changes: dict[str, float], why: str) -> None:
    assert why in answered(facts, id_, **changes)["refused"]


def test_a_workload_that_was_never_measured_is_told_so(tmp_path: Path) -> None:
    with recorded_cluster((workload("web"),)) as cluster, composed(cluster, tmp_path) as service:
        tick(service, NOON)
        packed = facts_of(service.cycle, WEB)
    assert packed is not None
    server = FactsServer(lambda _: msgspec.msgpack.encode(msgspec.structs.replace(packed, series={})), tmp_path)
    server.start()
    try:
        assert "nothing is known of Deployment shop/web yet" in answered(server)["refused"]
    finally:
        server.close()


def test_a_workload_of_which_nothing_can_be_put_together_costs_no_other_its_answer(tmp_path: Path) -> None:
    failed: list[str] = []
    server = FactsServer(lambda id_: b"" if id_ == WEB else bytes(1 // 0), tmp_path, failed.append)
    server.start()
    assert requested_facts(str(server.path), WEB._replace(name="cart")) is None
    assert requested_facts(str(server.path), WEB) is None
    server.close()
    (failure,) = failed
    assert failure.startswith("shop/cart: ZeroDivisionError")


def test_a_state_directory_that_was_lost_keeps_nobody_from_stopping(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    server = FactsServer(lambda _id: b"", state)
    server.start()
    state.rename(tmp_path / "aside")
    state.touch()
    server.close()


def test_a_computing_process_that_is_gone_is_said(tmp_path: Path) -> None:
    line = msgspec.json.encode({"id": WEB})
    assert b"does not send its history" in WhatIfAnswers(str(tmp_path / "nothing")).answer(line)


def test_what_is_no_question_keeps_no_later_one_from_its_answer(facts: FactsServer) -> None:
    for odd in (b'["\xff","Deployment","web"]\n', b"{}\n"):
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(facts.path))
            asking.sendall(odd)
            assert asking.recv(1) == b""
    assert requested_facts(str(facts.path), WEB) is not None


def test_a_path_that_no_socket_may_have_is_refused(cycle: Cycle, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="longer than 100 bytes"):
        FactsServer(partial(encoded_facts, cycle), tmp_path / ("x" * 100)).start()


def test_facts_wait_for_a_cycle_that_writes_and_not_for_ever(cycle: Cycle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forecaster.cycle.workload_facts.FACTS_PATIENCE_SECONDS", 0.01)
    with cycle.writing:
        assert facts_of(cycle, WEB) is None
    assert facts_of(cycle, WEB) is not None


def test_history_is_written_under_the_lock(cycle: Cycle, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    monkeypatch.setattr("forecaster.cycle.run.catch_up", lambda *_: written.append(cycle.writing.locked()) or ())
    cycle.run(NOON + MINUTE)
    assert written == [True]


def looked_back(facts: FactsServer, signal: str, lead: float = 0.0) -> Any:
    line = msgspec.json.encode({"id": WEB, "past": signal, "lead_seconds": lead})
    return msgspec.json.decode(WhatIfAnswers(str(facts.path)).answer(line))


def test_a_reader_sees_what_was_forecast_at_a_lead_of_choice(facts: FactsServer) -> None:
    view = looked_back(facts, "cpu", 1800.0)
    forecast = view["forecast"]
    assert (forecast["lead_seconds"], forecast["quantile"]) == (1800.0, 0.95)
    assert len(forecast["peak"]) == len(forecast["actual"]) > 140
    assert len(view["hours"]) >= 12
    assert [span["said"] for span in view["spans"] if span["kind"] == "event"] == ["sale: at least 9"]
    assert view["plain"]["asked"] == answered(facts)["runs"]["hpa"]["asked"][4::5]


def test_a_signal_that_was_never_measured_is_said(facts: FactsServer) -> None:
    assert looked_back(facts, "requests")["refused"] == "nothing was measured of requests"
    assert "nothing that is forecast" in looked_back(facts, "queue")["refused"]


def test_newer_tables_are_looked_at_anew(facts: FactsServer) -> None:
    answers = WhatIfAnswers(str(facts.path))
    until = []
    for at in (NOON, NOON + MINUTE, NOON + 6 * MINUTE):
        answers.answer(msgspec.json.encode({"id": WEB, "at": at}))
        until.append(next(iter(answers.ready.values())).facts)
    assert until[0] is until[1]
    assert until[1] is not until[2]


def test_a_public_holiday_is_told_with_its_name(facts: FactsServer) -> None:
    line = msgspec.json.encode({"id": WEB, "past": "cpu", "zone": "Asia/Seoul", "countries": ["KR"]})
    spans = msgspec.json.decode(WhatIfAnswers(str(facts.path)).answer(line))["spans"]
    (holiday,) = (span for span in spans if span["kind"] == "holiday")
    assert (holiday["begin"], holiday["until"]) == ("2026-02-28T15:00:00Z", "2026-03-01T15:00:00Z")
    assert holiday["said"]
