"""One forecaster in mode scale on a fake cluster: the objects that it reads, its writes, and its reasons."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from forecaster.actuators.queue import WriteQueue
from forecaster.actuators.scale.actuator import ScaleActuator
from forecaster.actuators.scale.plan import ScaleWrite, undone
from forecaster.actuators.scale.scales import BACK_OFF, BEFORE, LABEL, Object, Scales, live_scale
from forecaster.actuators.settings import ActingSettings, ScaleSettings
from forecaster.actuators.writes import Change
from forecaster.domain.decision import Reason
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.resources.neighbours import SCALED_OBJECTS, VPAS, Neighbours, ScaledObject, VpaNeighbour
from forecaster.sources.live_objects import BUILT_IN_KINDS
from tests.support.autoscalers import live_hpa
from tests.support.decided_records import RecordPublisher
from tests.support.fake_api_server import FakeApiServer
from tests.support.fences import Fence, Log
from tests.support.hands import Hands, object_of, owner_sets, path_of, value_of
from tests.support.recommendations import NOON, recommendation, signal_view
from tests.support.scales import FakeScales, live_scale_of

if TYPE_CHECKING:
    from forecaster.domain.report import Effected

WEB = live_scale_of().id
BOUNDED: dict[str, Any] = {"horizontal": {"min_replicas": 1, "max_replicas": 20}}


class Replica:
    """A forecaster in mode scale; `cycle` states the replicas of `web` that the forecast asks for, None holds."""

    def __init__(self, cluster: FakeScales, mode: str = "scale", hpas: tuple[str, ...] = ()) -> None:
        self.cluster, self.log, self.beside = cluster, Log(cluster), Neighbours()
        self.policies = Policies(Policy.model_validate({"mode": mode, **BOUNDED}))
        writer = WriteQueue("scale", Fence(), ActingSettings(), self.log)
        self.actuator = ScaleActuator(
            cluster,
            lambda: [live_hpa(name) for name in hpas],
            writer,
            self.policies,
            ScaleSettings(enabled=True),
            lambda _: self.beside,
        )
        self.publisher = RecordPublisher(self.policies, {"scale": self.actuator})
        self.now = NOON

    def cycle(self, forecast: int | None = 7, *, reactive: int = 3) -> Effected:
        reason = Reason.FORECAST if forecast else Reason.NO_DATA
        count = self.cluster.workload().replicas
        record = recommendation(live_scale_of().id, at=self.now, now=count, replicas=forecast, reason=reason)
        view = replace(signal_view("cpu", self.now), reactive_replicas=reactive)
        self.publisher.publish(self.now, [replace(record, signals=(view,), clamps=())])
        effected = self.actuator.act(self.now)
        self.now += timedelta(minutes=1)
        return effected


@pytest.fixture
def replica() -> Replica:
    return Replica(FakeScales.of_all(live_scale_of(), live_scale_of("other")))


def test_a_count_is_raised_and_the_owners_kept_and_each_write_is_noted_first(replica: Replica) -> None:
    assert replica.cycle(6).writes == {("raise", "written"): 1}
    scale = replica.cluster.workload()
    assert (scale.replicas, scale.before, scale.marked) == (6, 3, True)
    ((event, facts),) = replica.log.lines
    assert (event, replica.log.sent) == ("cluster_write", [0])
    assert (facts["object"], facts["count"], facts["was"], facts["before"]) == ("Deployment shop/web", 6, 3, 3)
    assert replica.cluster.recorded[0].reason == "6 are asked for. the forecast asks for 5, the measured demand for 4"


def test_only_what_may_have_to_change_is_looked_at(replica: Replica) -> None:
    replica.cycle(3)
    assert replica.cluster.looked_at == []
    replica.cycle(5)
    assert [id_.name for id_ in replica.cluster.looked_at] == ["web"]


def test_what_its_owner_stops_meanwhile_is_woken_up_by_nothing(replica: Replica) -> None:
    replica.cycle(6)
    replica.cluster.owner_sets(0)
    back = undone(replica.cluster.workload(), "released by command")
    assert back is not None
    assert (back.change, back.replicas) == (Change.FORGET, 0)
    assert replica.cycle(6).writes == {("yield", "written"): 1}
    assert replica.cycle(6).writes == {}
    assert replica.cluster.workload().replicas == 0


def test_a_pipeline_that_replaces_the_workload_without_our_marks_every_minute_gets_two_writes_an_hour(
    replica: Replica,
) -> None:
    for _ in range(60):
        replica.cycle(6)
        version = str(int(replica.cluster.workload().version) + 1)
        replica.cluster.workloads[WEB] = replace(live_scale_of(), version=version)
    assert [write.change for write in replica.cluster.recorded] == ["raise", "yield"]
    assert replica.cycle(6).states == {"second-writer": 1}


def test_before_anything_is_offered_nothing_is_undone(replica: Replica) -> None:
    replica.cycle(6)
    other = Replica(replica.cluster)
    assert other.actuator.act(NOON).writes == {}
    assert replica.cluster.workload().replicas == 6


def test_offers_of_another_cycle_are_not_acted_on(replica: Replica) -> None:
    replica.cycle(6)
    replica.cluster.change(replicas=5)
    assert replica.actuator.act(replica.now).writes == {}


def test_what_an_hpa_scales_is_refused_and_said_once() -> None:
    replica = Replica(FakeScales.of_all(live_scale_of()), hpas=("web",))
    assert replica.cycle(6).states == {"owned": 1}
    replica.cycle(6)
    ((event, facts),) = replica.log.lines
    assert event == "writes_refused"
    assert facts["first"] == ["Deployment shop/web: HPA web scales it; mode scale is for what nothing else scales"]


@pytest.mark.parametrize(
    ("beside", "why"),
    [
        (Neighbours(scaled_objects=[ScaledObject("web", WEB, "")]), "ScaledObject web scales it"),
        (
            Neighbours(scaled_objects=[ScaledObject("web", WEB, "autoscaling.keda.sh/paused")]),
            "ScaledObject web (paused by autoscaling.keda.sh/paused) scales it",
        ),
        (Neighbours(vpas=[VpaNeighbour("web", WEB, "Auto", {})]), "VPA web writes its requests"),
        (Neighbours(unknown={SCALED_OBJECTS: "403 forbidden"}), f"{SCALED_OBJECTS} is not known: 403 forbidden"),
        (Neighbours(unknown={VPAS: "403 forbidden"}), f"{VPAS} is not known: 403 forbidden"),
    ],
    ids=["keda", "keda-paused", "vpa", "keda-unknown", "vpa-unknown"],
)
def test_what_keda_scales_or_a_vpa_sizes_is_refused_and_so_is_what_is_not_known(beside: Neighbours, why: str) -> None:
    replica = Replica(FakeScales.of_all(live_scale_of()))
    replica.beside = beside
    effected = replica.cycle(6)
    assert (effected.writes, effected.states) == ({}, {"owned": 1})
    assert replica.log.lines[0][1]["first"][0].startswith(f"Deployment shop/web: {why}")


@pytest.mark.parametrize(
    "vpa",
    [VpaNeighbour("web", WEB, "Off", {}), VpaNeighbour("web", WEB, "Auto", {}, frozenset({"memory"}))],
    ids=["off", "memory-alone"],
)
def test_a_vpa_that_writes_no_cpu_request_holds_no_count(vpa: VpaNeighbour) -> None:
    replica = Replica(FakeScales.of_all(live_scale_of()))
    replica.beside = Neighbours(vpas=[vpa])
    assert replica.cycle(6).writes == {("raise", "written"): 1}


def test_a_count_of_ours_stays_while_a_vpa_writes_requests_and_is_left_to_a_scaled_object(replica: Replica) -> None:
    replica.cycle(6)
    replica.beside = Neighbours(vpas=[VpaNeighbour("web", WEB, "Auto", {})])
    assert replica.cycle(8).writes == {}
    assert (replica.cluster.workload().replicas, replica.cluster.workload().before) == (6, 3)
    replica.beside = Neighbours(scaled_objects=[ScaledObject("web", WEB, "")])
    assert replica.cycle(8).writes == {("forget", "written"): 1}
    assert (replica.cluster.workload().replicas, replica.cluster.workload().before) == (6, None)


def test_another_mode_brings_the_owners_count_back(replica: Replica) -> None:
    replica.cycle(6)
    other = Replica(replica.cluster, mode="publish")
    other.now = replica.now
    for _ in range(5):
        other.cycle(6)
    scale = replica.cluster.workload()
    assert (scale.replicas, scale.before, scale.marked) == (3, None, False)


def test_leaving_the_mode_takes_away_nothing_that_the_measured_demand_needs(replica: Replica) -> None:
    """The owner stated three pods and the load needs five: five stay until it is gone."""
    for _ in range(3):
        replica.cycle(9)
    other = Replica(replica.cluster, mode="publish")
    other.now = replica.now
    for _ in range(20):
        other.cycle(9, reactive=5)
    assert (replica.cluster.workload().replicas, replica.cluster.workload().before) == (5, 3)
    assert [refusal.code for refusal in other.actuator.writer.lasting.values()] == []
    other.cycle(None)
    assert replica.cluster.workload().replicas == 5  # unknown demand lowers nothing
    for _ in range(20):
        other.cycle(9, reactive=1)
    assert (replica.cluster.workload().replicas, replica.cluster.workload().marked) == (3, False)


def test_a_fail_over_of_a_region_is_answered_in_one_cycle(replica: Replica) -> None:
    """Limits of a cycle ration forecasts, not measured demand."""
    replica.cycle(20, reactive=20)
    assert replica.cluster.workload().replicas == 20


def test_a_write_that_was_cut_off_after_the_owners_count_was_kept_is_finished(replica: Replica) -> None:
    replica.cluster.dies = True
    replica.cycle(6)
    assert (replica.cluster.workload().replicas, replica.cluster.workload().before) == (3, 3)
    replica.cluster.dies = False
    replica.cycle(6)
    assert (replica.cluster.workload().replicas, replica.cluster.workload().before) == (6, 3)


def test_what_measured_demand_raises_while_another_writers_count_stands_is_lowered_by_nothing() -> None:
    """`helm upgrade` sets ten; soon the load needs twelve, then three again, and the hour's pause goes on."""
    server = FakeApiServer()
    server.add(path_of("scale", "shop"), object_of("scale"))
    hands = Hands(server, "scale")
    hands.cycles(2)
    owner_sets(server, "scale", "shop", 10)
    hands.cycle()
    hands.reactive, hands.wished = 12, 12
    hands.cycle()
    assert value_of(server.objects[path_of("scale", "shop")]) == 12
    hands.reactive, hands.wished = 3, 3
    hands.cycles(50)
    assert value_of(server.objects[path_of("scale", "shop")]) == 12
    hands.cycles(20)
    assert value_of(server.objects[path_of("scale", "shop")]) == 3


def test_a_custom_resource_that_states_null_replicas_keeps_no_other_from_its_count() -> None:
    server = FakeApiServer()
    for namespace in ("bad", "shop"):
        server.add(path_of("scale", namespace), object_of("scale"))
    bad = server.objects[path_of("scale", "bad")]
    bad["metadata"]["labels"], bad["spec"]["replicas"] = {LABEL: "scaled"}, None
    assert [scale.replicas for scale in Scales(server.client(), BUILT_IN_KINDS).marked()] == [1]


def test_what_a_controller_writes_after_our_mark_is_no_conflict(replica: Replica) -> None:
    decided = ScaleWrite(live_scale_of(), Change.RAISE, 6, "a test", before=3)
    marked = replace(live_scale_of(), version="2", before=3, marked=True, writers=frozenset())
    assert decided.on(marked) == replace(decided, subject=marked)
    assert decided.on(replace(marked, replicas=4)) is None
    assert decided.on(replace(marked, writers=frozenset({"kubectl"}))) is None


def read(*managers: str, **metadata: Any) -> Any:
    owned = {"f:spec": {"f:replicas": {}}}
    document = {
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "1",
            "resourceVersion": "9",
            "managedFields": [{"manager": manager, "operation": "Update", "fieldsV1": owned} for manager in managers],
            **metadata,
        },
        "spec": {"replicas": 4},
    }
    return live_scale(msgspec.json.decode(msgspec.json.encode(document), type=Object), "Deployment")


class TestReading:
    def test_a_count_of_ours_is_read_with_what_undoes_it(self) -> None:
        scale = read("forecaster", annotations={BEFORE: "2"}, labels={LABEL: "scaled"})
        assert (scale.replicas, scale.before, scale.marked, scale.other_writers, scale.owner) == (4, 2, True, "", "")

    @pytest.mark.parametrize(
        ("scale", "owner"),
        [
            (read("argocd-controller"), "Argo CD writes its count (field manager argocd-controller)"),
            (read("kubectl", labels={"kustomize.toolkit.fluxcd.io/name": "a"}), "Flux applies it"),
            (read("kubectl", annotations={"argocd.argoproj.io/tracking-id": "a"}), "Argo CD applies it"),
            (read("keda"), "KEDA writes its count (field manager keda)"),
            (read(ownerReferences=[{"kind": "Shop", "name": "a", "controller": True}]), "it is made from Shop a"),
        ],
        ids=lambda each: each if isinstance(each, str) else "",
    )
    def test_another_owner_is_named(self, scale: Any, owner: str) -> None:
        assert scale.owner.startswith(owner)

    @pytest.mark.parametrize(("later", "others"), [(-5, ""), (5, "kubectl")], ids=["since before", "after"])
    def test_another_writer_is_one_that_wrote_after_our_mark(self, later: int, others: str) -> None:
        count, mark = {"f:spec": {"f:replicas": {}}}, {"f:metadata": {"f:annotations": {}}}
        written_at = (NOON + timedelta(seconds=later)).isoformat()
        managed = [
            {"manager": "kubectl", "time": written_at, "fieldsV1": count},
            {"manager": "forecaster", "time": NOON.isoformat(), "fieldsV1": mark},
        ]
        assert read(managedFields=managed, labels={BEFORE: "2"}).other_writers == others

    def test_a_backup_that_came_back_with_our_marks_is_no_other_writer(self) -> None:
        owned = {"f:spec": {"f:replicas": {}}, "f:metadata": {"f:labels": {f"f:{BEFORE}": {}}}}
        managed = [{"manager": "velero-server", "operation": "Update", "fieldsV1": owned}]
        assert read(managedFields=managed, labels={BEFORE: "2"}).other_writers == ""

    def test_marks_of_an_earlier_release_are_read_where_there_are_none_of_ours(self) -> None:
        older = {BEFORE: "2", BACK_OFF: "2026-03-01T12:00:00Z"}
        scale = read(annotations=older)
        assert (scale.before, scale.backed_off_until) == (2, NOON)
        scale = read(annotations=older, labels={BEFORE: "3", BACK_OFF: "20260301T130000Z"})
        assert (scale.before, scale.backed_off_until) == (3, NOON + timedelta(hours=1))

    def test_an_owners_count_that_is_none_stops_everything(self) -> None:
        scale = read(labels={BEFORE: "many"})
        assert scale.fault == (
            "label forecaster.dev/replicas-before is 'many', not a count; write the owner's replicas there"
        )


@pytest.mark.parametrize(("count", "change"), [(7, Change.RAISE), (3, Change.LOWER)])
def test_part_of_an_undo_keeps_the_marks_that_say_what_the_rest_is(count: int, change: Change) -> None:
    scale = replace(live_scale_of("web", 4), before=9, marked=True)
    part = ScaleWrite(scale, Change.RESTORE, 9, "another mode").bounded(count, "by its rate limits")
    assert (part.change, part.replicas, part.before) == (change, count, 9)
