"""The real HPA controller reads what we publish."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from typing import TYPE_CHECKING, NamedTuple

import pytest
import yaml

from forecaster.app import telemetry
from forecaster.app.serve import build_service, state_directory
from forecaster.config.settings import parse
from forecaster.domain.signal import CPU
from forecaster.domain.window import MINUTE
from forecaster.publish.reader import TableReader
from forecaster.publish.values import OfferedValue
from forecaster.serving.answers import MetricRequest, answer
from tests.support.control_plane.commands import SYNC_SECONDS
from tests.support.control_plane.deployed import ROOT
from tests.support.control_plane.workloads import deployment, external_hpa
from tests.support.prometheus import RealPrometheus, find_binaries
from tests.support.ramp import FALL_IN, fill_ramp
from tests.support.recommendations import ahead, recommendation, signal_view, workload_id
from tests.support.tables import publish
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.app.service import Service
    from forecaster.domain.decision import Recommendation
    from tests.support.cluster_week import Week
    from tests.support.control_plane.api import Api
    from tests.support.control_plane.deployed import Deployed

pytestmark = [pytest.mark.usefixtures("serving"), pytest.mark.slow]

IN_TIME, ROUNDS = 4, 16
"""Changes that must be in time, and tries at most: others may want the cores just then, but not always."""
PER_REPLICA = 0.5
PLAYED_AGO = timedelta(hours=9)
"""A table of the future is not served: the ramp is played in the past of the real clock."""
"""Cores that one replica carries."""


def demands(namespace: str, cores: float, name: str = "web") -> Recommendation:
    """A workload whose forecast peak is this."""
    at = datetime.now(UTC)
    view = replace(signal_view("cpu", at), measured=0.1, forecast=replace(ahead(at), peak=cores))
    return replace(recommendation(workload_id(name, namespace), at=at), signals=(view,), clamps=())


def scaled(api: Api, namespace: str, name: str = "web", *, start: int = 1) -> None:
    """A Deployment and its HPA: one replica for each half core that is forecast."""
    api.create(deployment(name, start), namespace)
    api.create(external_hpa(name, target="500m"), namespace)


def desired(api: Api, namespace: str, name: str = "web") -> int:
    status = api.read("HorizontalPodAutoscaler", name, namespace).get("status", {})
    return int(status.get("desiredReplicas", -1))


def test_a_metric_that_is_published_changes_the_count_within_a_sync_and_a_second(
    deployed: Deployed, namespace: str
) -> None:
    """The sync as it is now on this machine: another HPA, of which we know nothing, gets a new minimum meanwhile."""
    api = deployed.cluster.api
    publish(deployed.table, demands(namespace, 1.0), at=datetime.now(UTC), mode="publish")
    scaled(api, namespace)
    scaled(api, namespace, "other")
    wait_until(lambda: desired(api, namespace) == 2, goal="the first count")
    late: list[dict[str, float]] = []
    for minimum, cores in enumerate(islice(cycle((4.0, 2.5, 6.0, 1.0)), ROUNDS), 2):
        begin = time.monotonic()
        publish(deployed.table, demands(namespace, cores), at=datetime.now(UTC), mode="publish")
        api.merge("HorizontalPodAutoscaler", "other", {"spec": {"minReplicas": minimum}}, namespace)
        waits = until_desired(api, namespace, {"web": round(cores * 2), "other": minimum}, begin)
        late += [waits] if waits["web"] >= max(SYNC_SECONDS, waits["other"]) + 1 else []
        if minimum - 1 - len(late) == IN_TIME:
            return
    raise AssertionError(f"{len(late)} of {ROUNDS} changes came too late: {late}")


def until_desired(api: Api, namespace: str, counts: dict[str, int], begin: float) -> dict[str, float]:
    """Seconds from `begin` until each HPA asked for its count."""
    waits: dict[str, float] = {}

    def all_seen() -> bool:
        for name in counts.keys() - waits.keys():
            if desired(api, namespace, name) == counts[name]:
                waits[name] = time.monotonic() - begin
        return len(waits) == len(counts)

    wait_until(all_seen, goal=f"{counts}")
    return waits


def test_kubectl_shows_our_value(deployed: Deployed, namespace: str) -> None:
    publish(deployed.table, demands(namespace, 1.75), at=datetime.now(UTC), mode="publish")
    scaled(deployed.cluster.api, namespace)
    wait_until(lambda: desired(deployed.cluster.api, namespace) == 4, goal="four replicas")
    shown = deployed.cluster.kubectl("get", "hpa", "web", f"--namespace={namespace}")
    assert "/500m (avg)" in shown
    raw = deployed.cluster.kubectl("get", "hpa", "web", f"--namespace={namespace}", "-o", "yaml")
    current = yaml.safe_load(raw)["status"]["currentMetrics"][0]["external"]["current"]
    assert current["averageValue"] in {"438m", "875m", "1750m"}  # 1.75 cores over the replicas of that moment


def test_the_example_scales_up_by_the_forecast_while_cpu_cannot_be_read(deployed: Deployed) -> None:
    api = deployed.cluster.api
    api.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    publish(deployed.table, demands("shop", 2.0), at=datetime.now(UTC), mode="publish")
    api.create(deployment("web", 2), "shop")
    deployed.cluster.kubectl("apply", "-f", str(ROOT / "deploy" / "examples" / "hpa.yaml"))
    wait_until(lambda: desired(api, "shop") == 6, goal="2 cores over 350m")


class Minute(NamedTuple):
    """Replicas that the HPA asked for, and replicas that the recorded load needed in that minute."""

    at: datetime
    granted: int
    needed: int


def test_it_scales_up_before_a_recorded_ramp_arrives_and_back_after_it(deployed: Deployed, tmp_path: Path) -> None:
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no prometheus and promtool: run .ci/prometheus")
    api, now = deployed.cluster.api, datetime.now(UTC).replace(second=0, microsecond=0) - PLAYED_AGO
    api.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    week = fill_ramp(tmp_path / "data", now, binaries)
    with RealPrometheus(binaries, tmp_path / "data") as prometheus, ExitStack() as parts:
        service = service_at(now, prometheus.url, deployed, parts)
        api.create(deployment("checkout", 1), "shop")
        api.create(external_hpa("checkout", target="500m"), "shop")
        rise = [minute(service, week, deployed, now + k * MINUTE) for k in range(2, 31, 2)]
        fall = [minute(service, week, deployed, now + FALL_IN + k * MINUTE) for k in range(0, 61, 6)]
    half = (rise[0].needed + rise[-1].needed) // 2
    assert rise[0].needed <= half / 1.5, "this is no ramp"
    early = first(rise, lambda each: each.needed >= half) - first(rise, lambda each: each.granted >= half)
    assert early >= 2 * MINUTE, [tuple(each) for each in rise]
    assert fall[-1].granted <= half, [tuple(each) for each in fall]


def first(minutes: list[Minute], met: object) -> datetime:
    return next(each.at for each in minutes if met(each))  # type: ignore[operator]


def service_at(now: datetime, url: str, deployed: Deployed, parts: ExitStack) -> Service:
    """The whole computing side, publishing to the process that serves."""
    given = {
        "prometheus": {"url": url},
        "queries": {"requests_from": "none"},
        "state": {"directory": str(deployed.table.parent)},
        "policy": {"mode": "publish", "horizontal": {"gate": False}},  # there is no day to judge it
    }
    settings = parse(given, "test")
    state = state_directory(settings.state)
    return build_service(settings, state, telemetry.logger(), parts, clock=lambda: now)


def minute(service: Service, week: Week, deployed: Deployed, at: datetime) -> Minute:
    """Run one cycle at `at`, and wait until the HPA has followed what it published."""
    service.clock = lambda: at + service.settings.delay
    service.tick()
    granted = asked_for(deployed.table, at)
    wait_until(lambda: desired(deployed.cluster.api, "shop", "checkout") == granted, goal=f"{granted} replicas")
    index = (at - week.start) // MINUTE
    return Minute(at, granted, math.ceil(week.demand[CPU][0, index] / PER_REPLICA))


def asked_for(table: Path, at: datetime) -> int:
    """The published demand in replicas, by the rule for an AverageValue."""
    reader = TableReader(table, lambda: at)
    reader.refresh()
    assert reader.table
    request = MetricRequest("shop", "checkout", signal="cpu", target=PER_REPLICA)
    value = answer(reader.table, request, reader.moment(reader.table))
    assert isinstance(value, OfferedValue)
    assert value.source in {"forecast", "measured"}
    return math.ceil(round(value.value, 3) / PER_REPLICA)
