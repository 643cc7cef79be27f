"""An HPA on one container is handled like one on the pod, from history to external metric."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.domain.policies import Policies
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU, CPU_CONTAINER, PODS, Signal
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import NamedContainer, Resources, Target, TargetType
from forecaster.publish.values import Moment
from forecaster.serving.external_metrics import ApiRequest, MetricsApi
from forecaster.store.history import HistorySettings
from tests.support.builders import NOON, hpa, workload
from tests.support.fakes import CycleOnFakes, Load, steady
from tests.support.published import table_of

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from forecaster.cycle.run import Outcome

DAYS = HistorySettings(minutes_kept=timedelta(hours=3), weeks_kept=timedelta(days=6))
GATED = Policies(Policy(mode="publish", horizontal=HorizontalPolicy(gate=True)))


def wave(at: datetime) -> float:
    """Demand of four cores at noon, rising."""
    return 4.0 + 3.0 * math.sin(at.timestamp() / 86_400 * 2 * math.pi)


def judged(signal: Signal, container: str) -> Outcome:
    """First cycle of a workload whose HPA aims at half a core of its pod, or of one of its containers."""
    half = Target("cpu", TargetType.UTILIZATION, 0.5, container)
    app = NamedContainer("app", Resources(cpu_request=1.0))
    web = replace(workload(autoscaler=hpa(half), replicas=8), containers=(app,) if container else ())
    demand = {CPU: steady(80.0), PODS: steady(8.0), signal: wave}
    return CycleOnFakes(Load(web, demand), policies=GATED, model="seasonal-naive-day", settings=DAYS).run()


@pytest.fixture(scope="module")
def of_container() -> Outcome:
    return judged(CPU_CONTAINER, "app")


def test_it_is_forecast_judged_and_decided_as_the_pod_would_be(of_container: Outcome) -> None:
    of_pod = judged(CPU, "")
    (by_container,), (by_pod,) = of_container.recommendations, of_pod.recommendations
    assert of_container.report.states == of_pod.report.states
    assert of_container.report.states.total() == 1
    assert by_container.recommended_replicas == by_pod.recommended_replicas == 8
    forecast, same = by_container.signals[0].forecast, by_pod.signals[0].forecast
    assert forecast is not None
    assert same is not None
    assert (forecast.peak, forecast.model) == (same.peak, same.model)


def test_its_demand_is_what_an_hpa_reads_by_its_name(of_container: Outcome, tmp_path: Path) -> None:
    table = table_of(tmp_path / "table", *of_container.recommendations)
    api = MetricsApi(lambda: (table, Moment(NOON + timedelta(seconds=20), NOON, fresh=True)))
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/forecaster_demand"
    query = b"labelSelector=workload%3Dweb%2Csignal%3Dcpu_container"
    reply = api.answer(ApiRequest(method="GET", path=path, query=query))
    assert reply.status == 200
    (item,) = msgspec.json.decode(reply.body)["items"]
    assert item["metricLabels"]["signal"] == "cpu_container"
    (view,) = of_container.recommendations[0].signals
    assert item["value"] in {f"{math.ceil(view.measured * 1000)}m", f"{view.measured:g}"}  # type: ignore[operator]


def test_an_hpa_that_names_another_container_has_the_past_of_that_one_read() -> None:
    """The load of the proxy beside it says nothing about the app."""

    def aimed(container: str, cores: float) -> Load:
        named = tuple(NamedContainer(name, Resources(cpu_request=1.0)) for name in ("app", "proxy"))
        web = workload(autoscaler=hpa(Target("cpu", TargetType.UTILIZATION, 0.5, container)), replicas=8)
        demand = {CPU: steady(80.0), PODS: steady(8.0), CPU_CONTAINER: steady(cores)}
        return Load(replace(web, containers=named), demand)

    stage = CycleOnFakes(aimed("app", 4.0))
    stage.run_minutes(0, 2)
    stage.source.loads = [aimed("proxy", 1.0)]
    stage.run_minutes(3, 3)
    minutes = stage.history.window(CPU_CONTAINER, MINUTE).values
    assert set(minutes[minutes > 0].tolist()) == {1.0}
