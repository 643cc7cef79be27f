"""Every integration promises to give the number that was decided, the same one as all others."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.quantity import parse_quantity
from forecaster.domain.workload import Resources, Target, TargetType
from forecaster.horizontal.decide import decide as decide_columns
from forecaster.horizontal.gate_states import Gate, GateState
from forecaster.publish.reader import TableReader
from forecaster.publish.remote_write import ForecastInstants, samples_of
from forecaster.publish.settings import RemoteWriteSettings
from forecaster.publish.table_file import TableFile
from forecaster.serving.app import create_app
from forecaster.serving.keda import externalscaler_pb2 as wire
from forecaster.serving.keda.service import ScalerService, TriggerValues
from forecaster.vertical.sizing.containers import NO_SIZING
from forecaster.vertical.sizing.pod import size
from tests.support.asgi import Client
from tests.support.builders import NO_SAMPLE, hpa, minutes, outlooks, workload
from tests.support.decided_records import RecordPublisher
from tests.support.horizontal import NOTHING_BEFORE, recommended_before
from tests.support.one_row import Subject, decide_one, inputs_of_one
from tests.support.published import FleetOfOne
from tests.support.recommendations import NOON

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from forecaster.domain.workload import Workload
    from forecaster.horizontal.state import State
    from forecaster.publish.publisher import OfferedCycle
    from tests.support.outlook import SignalForecast

NOW = NOON + timedelta(seconds=20)
DEMAND, REPLICAS, FLOOR = "forecaster_demand", "forecaster_replicas", "forecaster_floor"
METRICS = (DEMAND, REPLICAS, FLOOR)
WEB = "/api/v1/namespaces/shop/workloads/Deployment/web"
POD = 0.35
"""Cores of a pod at its target."""
BY_DEMAND = workload(
    replicas=6,
    autoscaler=hpa(Target(DEMAND, TargetType.AVERAGE_VALUE, POD), lowest=2, highest=60),
    resources=Resources(cpu_request=0.5),
)


class Story(NamedTuple):
    """One decision: its outlooks, and its rules."""

    outlooks: Mapping[Any, SignalForecast]
    horizontal: Mapping[str, Any] = {}
    mode: str = "publish"
    abstain: str = "auto"
    workload: Workload = BY_DEMAND
    state: State = NOTHING_BEFORE
    gate: Gate | None = None

    @property
    def policy(self) -> Policy:
        return Policy.model_validate(
            {
                "mode": self.mode,
                "publish": {"abstain": self.abstain},
                "horizontal": {"gate": False, **self.horizontal},
            }
        )

    def decided(self) -> FleetOfOne:
        rules = self.policy.horizontal
        record, _ = decide_one(self.workload, self.outlooks, rules, self.state, NOON, gate=self.gate)
        shut = "learning: no days yet" if self.gate and rules.gate else ""
        subject = Subject(self.workload, rules, self.outlooks, shut)
        record = replace(record, resources=size(self.workload, NO_SIZING, self.policy.vertical))
        return FleetOfOne(
            record, decide_columns(inputs_of_one(subject, NOON), self.state, NOON.timestamp())[0], subject
        )


class Received:
    """Numbers that leave the process in one cycle."""

    def receive(self, cycle: OfferedCycle) -> None:
        self.cycle = cycle


class Offered:
    """A cycle that was published, with every way in which it is read."""

    def __init__(self, folder: Path, story: Story) -> None:
        self.remote = Received()
        self.story = story
        table = TableFile(folder / "table", interval=timedelta(minutes=1), version="1", gauges="all")
        fleet = story.decided()
        publisher = RecordPublisher(Policies(story.policy), {"table": table, "remote": self.remote})
        publisher.publish(NOON, fleet)
        self.reader = TableReader(table.path, lambda: NOW)
        self.reader.refresh()
        self.client = Client(create_app(self.reader))


def external(offered: Offered, metric: str) -> float | None:
    signal = ",signal=cpu" if metric == DEMAND else ""
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/{metric}?labelSelector=workload=web{signal}"
    return _item(offered, path)


def custom(offered: Offered, metric: str) -> float | None:
    signal = "?metricLabelSelector=signal=cpu" if metric == DEMAND else ""
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/deployments.apps/web/{metric}{signal}"
    return _item(offered, path)


def _item(offered: Offered, path: str) -> float | None:
    answer = offered.client.get(path)
    return parse_quantity(answer.json()["items"][0]["value"]).as_float() if answer.status_code == 200 else None


class _AbortedError(Exception):
    """A call that ended with an error."""


class _Context:
    async def abort(self, *_: Any) -> None:
        raise _AbortedError


def keda_scaler(offered: Offered, metric: str) -> float | None:
    """Read the number as KEDA's operator does over gRPC."""
    metadata = {"metric": metric.removeprefix("forecaster_"), "workload": "web"}
    metadata |= {"signal": "cpu", "target": str(POD)} if metric == DEMAND else {}
    service = ScalerService(TriggerValues(offered.reader))
    reference = wire.ScaledObjectRef(name="web", namespace="shop", scalerMetadata=metadata)
    try:
        answer = asyncio.run(service.get_metrics(reference, cast("Any", _Context())))
    except _AbortedError:
        return None
    return float(answer.metricValues[0].metricValueFloat)


def rest(offered: Offered, metric: str) -> float | None:
    """Read the number as KEDA's metrics-api trigger does."""
    signal = "?signal=cpu" if metric == DEMAND else ""
    answer = offered.client.get(f"{WEB}/metrics/{metric}/forecast{signal}")
    return float(answer.json()["value"]) if answer.status_code == 200 else None


def rest_beside(offered: Offered, metric: str) -> float | None:
    """The count that stands beside every value."""
    answer = offered.client.get(f"{WEB}/metrics/{DEMAND}/forecast?signal=cpu")
    return answer.json()["replicas"]["recommended"] if answer.status_code == 200 else None


def gauge(offered: Offered, metric: str) -> float | None:
    """Read the number as KEDA's Prometheus trigger does."""
    families = text_string_to_metric_families(offered.client.get("/metrics").text)
    values = [sample.value for family in families if family.name == metric for sample in family.samples]
    return values[0] if values else None


def remote_write(offered: Offered, metric: str) -> float | None:
    samples = samples_of(offered.remote.cycle, RemoteWriteSettings(), ForecastInstants())
    return next((sample.value for sample in samples if sample.labels[0] == ("__name__", metric)), None)


def watermark(offered: Offered, metric: str) -> float | None:
    request = {"targetRef": {"kind": "Deployment", "name": "web", "namespace": "shop"}}
    answer = offered.client.post("/api/v1/recommenders/watermark", json.dumps(request).encode()).json()
    return float(answer["targetReplicas"]) if "targetReplicas" in answer else None


def kapacity(offered: Offered, metric: str) -> float | None:
    answer = offered.client.get(f"{WEB}/kapacity/web")
    if answer.status_code != 200:
        return None
    series = json.loads(answer.json()["data"]["timeSeries"])
    assert len(series) == 1
    return float(series[str(int(NOW.timestamp()))])


class Integration(NamedTuple):
    """Function that reads a number, and the metrics that an integration has."""

    read: Callable[[Offered, str], float | None]
    metrics: tuple[str, ...] = METRICS
    stores: bool = False
    """Whether values outlive their scrape and readers are not known: then a demand that only keeps a count by the
    target of its reader, and anything that is repeated, is left out."""


INTEGRATIONS = {
    "external metrics": Integration(external),
    "custom metrics": Integration(custom),
    "KEDA external scaler": Integration(keda_scaler),
    "KEDA metrics-api": Integration(rest),
    "the count beside a value": Integration(rest_beside, (REPLICAS,)),
    "gauges": Integration(gauge, stores=True),
    "remote write": Integration(remote_write, stores=True),
    "WatermarkPodAutoscaler": Integration(watermark, (REPLICAS,)),
    "Kapacity": Integration(kapacity, (REPLICAS,)),
}
WATCHED = Gate(GateState.OBSERVE)
EVENT = {"name": "sale", "start": NOON - minutes(10), "end": NOON + minutes(50)}


class Numbers(NamedTuple):
    """Numbers that every integration has to give: None where the number is not known or not offered."""

    demand: float | None
    replicas: float | None
    floor: float | None
    stored: tuple[str, ...] = ()
    """Metrics whose number keeps a count, which is nothing to be stored."""


STORIES = {
    "a forecast acts": (Story(outlooks(cpu=2.1, cpu_ahead=4.2)), Numbers(4.2, 12, 12)),
    "measured demand asks for more": (Story(outlooks(cpu=8.0, cpu_ahead=2.0)), Numbers(8.0, 23, 6)),
    "a forecast is only watched": (
        Story(outlooks(cpu=8.0, cpu_ahead=14.0), {"gate": True}, gate=WATCHED),
        Numbers(8.0, 23, 23),
    ),
    "a forecast below the measured demand is only watched": (
        Story(outlooks(cpu=8.0, cpu_ahead=2.0), {"gate": True}, gate=WATCHED),
        Numbers(8.0, 23, 23),
    ),
    "the policy observes": (Story(outlooks(cpu=8.0, cpu_ahead=2.0), mode="observe"), Numbers(None, None, None)),
    "the workload is frozen": (
        Story(outlooks(cpu=12.0, cpu_ahead=14.0), {"events": [{**EVENT, "freeze": True}]}),
        Numbers(6 * POD, 6, 6, stored=(DEMAND,)),
    ),
    "the blast radius holds the forecast": (
        Story(outlooks(cpu=2.1, cpu_ahead=14.0), {"surge": 1.0}),
        Numbers(12 * POD, 12, 12),
    ),
    "an event has a floor": (
        Story(outlooks(cpu=0.7, cpu_ahead=0.7), {"events": [{**EVENT, "replicas": 20}]}),
        Numbers(20 * POD, 20, 20),
    ),
    "an event has a floor while stabilization holds more": (
        Story(
            outlooks(cpu=0.7, cpu_ahead=0.7),
            {"events": [{**EVENT, "replicas": 20}], "scale_down_stabilization": "5m"},
            state=recommended_before((25, 2.0)),
        ),
        Numbers(20 * POD, 20, 20),
    ),
    "bounds and stabilization stay the HPA's": (
        Story(
            outlooks(cpu=30.0, cpu_ahead=31.5),
            {"scale_down_stabilization": "5m"},
            state=recommended_before((95, 2.0)),
        ),
        Numbers(31.5, 90, 90),
    ),
    "nothing was ever known": (Story(outlooks(cpu=NO_SAMPLE)), Numbers(6 * POD, 6, 6, stored=METRICS)),
    "nothing was ever known, and that is an error": (
        Story(outlooks(cpu=NO_SAMPLE), abstain="fail"),
        Numbers(None, None, None),
    ),
}


@pytest.mark.parametrize("name", INTEGRATIONS)
@pytest.mark.parametrize("title", STORIES)
def test_it_gives_the_number_that_was_decided(title: str, name: str, tmp_path: Path) -> None:
    story, expected = STORIES[title]
    integration, offered = INTEGRATIONS[name], Offered(tmp_path, story)
    for metric in integration.metrics:
        answer, number = integration.read(offered, metric), expected[METRICS.index(metric)]
        left_out = integration.stores and metric in expected.stored
        assert answer == (None if left_out or number is None else pytest.approx(number, abs=1e-3)), metric
