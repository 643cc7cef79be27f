"""Specifications are read when they are needed, then in turn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from forecaster.domain.workload import Autoscaler, Resources, WorkloadId
from forecaster.sources.facts import SPECIFICATIONS, InstantRow
from forecaster.sources.inventory import Rotation

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WEB, API = WorkloadId("shop", "Deployment", "web"), WorkloadId("shop", "Deployment", "api")
HPA = {"namespace": "shop", "horizontalpodautoscaler": "web"}


class Cluster:
    """Says what is specified of web, and notes what was asked."""

    def __init__(self) -> None:
        self.most = 9.0
        self.asked: list[str] = []

    def ask(self, name: str) -> list[InstantRow]:
        self.asked.append(name)
        scaled = HPA | {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}
        cpu = {"namespace": "shop", "workload_kind": "Deployment", "workload": "web", "resource": "cpu"}
        rows = {
            "hpa_scale_targets": [InstantRow(scaled, 1.0)],
            "hpa_max_replicas": [InstantRow(HPA, self.most)],
            "pod_requests": [InstantRow(cpu, 0.5)],
        }
        return rows.get(name, [])

    def asked_since(self) -> list[str]:
        asked, self.asked = self.asked, []
        return asked


def test_the_first_cycle_asks_for_everything() -> None:
    cluster = Cluster()
    found = Rotation(6 * MINUTE).specifications(NOON, [WEB], cluster.ask)
    assert found.resources == {WEB: Resources(cpu_request=0.5)}
    assert found.autoscalers == {WEB: Autoscaler("web", 1, 9)}
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
