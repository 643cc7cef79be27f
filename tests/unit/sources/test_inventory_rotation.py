"""Specifications are read when they are needed, then in turn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forecaster.domain.workload import Autoscaler, NamedContainer, Resources, Target, TargetType, WorkloadId
from forecaster.errors import SourceTimeout
from forecaster.sources.facts import SPECIFICATIONS, WITH_TARGETS, InstantRow
from forecaster.sources.inventory import HPA_COUNT, Rotation

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WEB, API = WorkloadId("shop", "Deployment", "web"), WorkloadId("shop", "Deployment", "api")
HPA = {"namespace": "shop", "horizontalpodautoscaler": "web"}


class Cluster:
    """Answers queries about the specification of web, and remembers their names."""

    def __init__(self) -> None:
        self.most = 9.0
        self.asked: list[str] = []
        self.hpas = 1
        self.slow: set[str] = set()

    def ask(self, name: str) -> list[InstantRow]:
        if name in self.slow:
            raise SourceTimeout(f"query {name!r}: no answer in time")
        if name == HPA_COUNT:
            return [InstantRow({}, float(self.hpas))]
        if name not in WITH_TARGETS:
            self.asked.append(name)
        scaled = HPA | {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}
        cpu = {"namespace": "shop", "workload_kind": "Deployment", "workload": "web", "resource": "cpu"}
        rows = {
            "hpa_scale_targets": [InstantRow(scaled, 1.0)],
            "hpa_max_replicas": [InstantRow(HPA, self.most)],
            "hpa_metric_targets": [InstantRow(HPA | {"metric_name": "cpu", "metric_target_type": "average"}, 0.5)],
            "pod_requests": [InstantRow(cpu, 0.5)],
        }
        return rows.get(name, [])

    def asked_since(self) -> list[str]:
        names, self.asked = self.asked, []
        return names


def test_the_first_cycle_asks_for_everything() -> None:
    cluster = Cluster()
    specifications = Rotation(6 * MINUTE).specifications(NOON, [WEB], cluster.ask)
    assert specifications.resources == {WEB: Resources(cpu_request=0.5)}
    assert specifications.autoscalers == {WEB: Autoscaler("web", 1, 9, (Target("cpu", TargetType.AVERAGE_VALUE, 0.5),))}
    assert cluster.asked == list(SPECIFICATIONS)


def test_then_each_minute_has_one_query() -> None:
    cluster, rotation = Cluster(), Rotation(6 * MINUTE)
    rotation.specifications(NOON, [WEB], cluster.ask)
    cluster.asked.clear()
    for minute in range(1, 13):
        rotation.specifications(NOON + minute * MINUTE, [WEB], cluster.ask)
        assert len(cluster.asked_since()) == 1


def test_a_change_is_known_within_the_period() -> None:
    cluster, rotation = Cluster(), Rotation(6 * MINUTE)
    rotation.specifications(NOON, [WEB], cluster.ask)
    cluster.most = 20.0
    later = [rotation.specifications(NOON + minute * MINUTE, [WEB], cluster.ask) for minute in range(1, 7)]
    assert later[-1].autoscalers[WEB].max_replicas == 20


def test_a_new_workload_has_everything_read_at_once() -> None:
    cluster, rotation = Cluster(), Rotation(6 * MINUTE)
    rotation.specifications(NOON, [WEB], cluster.ask)
    cluster.asked.clear()
    rotation.specifications(NOON + MINUTE, [WEB, API], cluster.ask)
    assert cluster.asked == list(SPECIFICATIONS)


def test_a_workload_that_goes_has_nothing_read() -> None:
    cluster, rotation = Cluster(), Rotation(timedelta(hours=1))
    rotation.specifications(NOON, [WEB, API], cluster.ask)
    cluster.asked.clear()
    rotation.specifications(NOON + MINUTE, [WEB], cluster.ask)
    assert cluster.asked == []


def test_after_longer_than_the_period_everything_is_due() -> None:
    cluster, rotation = Cluster(), Rotation(6 * MINUTE)
    rotation.specifications(NOON, [WEB], cluster.ask)
    cluster.asked.clear()
    rotation.specifications(NOON + 15 * MINUTE, [WEB], cluster.ask)
    assert cluster.asked == list(SPECIFICATIONS)


def test_a_period_of_zero_reads_everything_in_every_cycle() -> None:
    cluster, rotation = Cluster(), Rotation(timedelta(0))
    rotation.specifications(NOON, [WEB], cluster.ask)
    cluster.asked.clear()
    rotation.specifications(NOON + MINUTE, [WEB], cluster.ask)
    assert cluster.asked == list(SPECIFICATIONS)


def test_answers_from_the_future_of_another_time_are_not_used() -> None:
    cluster, rotation = Cluster(), Rotation(6 * MINUTE)
    rotation.specifications(NOON, [WEB], cluster.ask)
    cluster.asked.clear()
    rotation.specifications(NOON - timedelta(days=1), [WEB], cluster.ask)
    assert cluster.asked == list(SPECIFICATIONS)


def test_a_new_hpa_is_read_whole_in_the_cycle_in_which_it_is_there() -> None:
    cluster, rotation = Cluster(), Rotation(6 * MINUTE)
    rotation.specifications(NOON, [WEB], cluster.ask)
    cluster.asked.clear()
    cluster.hpas = 2
    rotation.specifications(NOON + MINUTE, [WEB], cluster.ask)
    assert {name for name in SPECIFICATIONS if name.startswith("hpa_")} <= set(cluster.asked)


def test_an_hpa_that_stays_in_part_is_not_asked_for_all_the_time() -> None:
    cluster, rotation = Cluster(), Rotation(6 * MINUTE)

    def ask(name: str) -> list[InstantRow]:
        rows = cluster.ask(name)
        return [] if name == "hpa_max_replicas" else rows

    counts = []
    for minute in range(30):
        rotation.specifications(NOON + minute * MINUTE, [WEB], ask)
        counts.append(len(cluster.asked_since()))
    assert min(counts[1:10]) >= 4
    assert max(counts[11:]) <= 2


class TestContainersOfTargets:
    """An HPA with a target for one container is used with the requests of that container, or not at all."""

    class Meshed(Cluster):
        def ask(self, name: str) -> list[InstantRow]:
            rows = super().ask(name)
            of_app = {"namespace": "shop", "workload_kind": "Deployment", "workload": "web", "container": "app"}
            match name:
                case "hpa_metric_targets":
                    target = HPA | {"metric_name": "cpu", "metric_target_type": "utilization", "container": "app"}
                    return [InstantRow(target, 70.0)]
                case "hpa_containers":
                    return [InstantRow(of_app | {"resource": "cpu", "what": "request"}, 0.3)]
                case _:
                    return rows

    def test_their_requests_are_read_in_the_cycle_of_the_targets(self) -> None:
        specifications = Rotation(6 * MINUTE).specifications(NOON, [WEB], self.Meshed().ask)
        assert specifications.containers == {WEB: (NamedContainer("app", Resources(cpu_request=0.3)),)}
        assert not specifications.partly

    def test_an_hpa_is_known_in_part_while_their_requests_are_not_and_they_are_queried_again(self) -> None:
        cluster, rotation = self.Meshed(), Rotation(6 * MINUTE)
        cluster.slow = {"hpa_containers"}
        specifications = rotation.specifications(NOON, [WEB], cluster.ask)
        assert specifications.partly == {WEB: "no series has the requests of the containers of its HPA web"}
        cluster.slow = set()
        assert not rotation.specifications(NOON + MINUTE, [WEB], cluster.ask).partly


class TestSlowQuery:
    """One slow query is one missing fact."""

    def test_keeps_its_last_answer_and_says_from_when_it_is(self) -> None:
        cluster, rotation = Cluster(), Rotation(timedelta(0))
        rotation.specifications(NOON, [WEB], cluster.ask)
        cluster.slow = {"pod_requests"}
        specifications = rotation.specifications(NOON + 5 * MINUTE, [WEB], cluster.ask)
        assert specifications.resources == {WEB: Resources(cpu_request=0.5)}
        fault = "query 'pod_requests': no answer in time; queried again at 12:06 UTC; that of 12:00 UTC is used"
        assert specifications.faults == (fault,)

    def test_does_not_keep_the_others_from_being_read(self) -> None:
        cluster = Cluster()
        cluster.slow = {"pod_limits"}
        specifications = Rotation(6 * MINUTE).specifications(NOON, [WEB], cluster.ask)
        assert specifications.resources == {WEB: Resources(cpu_request=0.5)}
        assert specifications.autoscalers.keys() == {WEB}
        assert specifications.faults == (
            "query 'pod_limits': no answer in time; queried again at 12:01 UTC; nothing is known of it yet",
        )

    def test_is_asked_less_and_less_often(self) -> None:
        cluster, rotation = Cluster(), Rotation(timedelta(0))
        minutes: list[int] = []
        cluster.slow = {"pod_limits"}
        for minute in range(120):

            def ask(name: str, at: int = minute) -> list[InstantRow]:
                if name == "pod_limits":
                    minutes.append(at)
                return cluster.ask(name)

            rotation.specifications(NOON + minute * MINUTE, [WEB], ask)
        assert minutes == [0, 1, 3, 7, 15, 31, 61, 91]

    def test_three_of_them_cost_two_time_outs_in_a_cycle(self) -> None:
        cluster, tried = Cluster(), []
        cluster.slow = {"hpa_max_replicas", "pod_limits", "pod_requests"}

        def ask(name: str) -> list[InstantRow]:
            tried.append(name)
            return cluster.ask(name)

        Rotation(6 * MINUTE).specifications(NOON, [WEB], ask)
        assert len(cluster.slow & set(tried)) == 2

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("hpa_scale_targets", "whether an HPA scales it is not known yet"),
            ("pod_requests", "what its pods request is not known yet"),
        ],
    )
    def test_about_hpas_or_requests_at_the_start_holds_every_workload(self, name: str, why: str) -> None:
        """Requests that could not be read were taken for none: `set one`, and a size that "changes the QoS class"."""
        cluster = Cluster()
        cluster.slow = {name}
        assert Rotation(6 * MINUTE).specifications(NOON, [WEB], cluster.ask).unknown == why
