"""Series that a tenant's pods export into Prometheus never change the decisions about others."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from forecaster.domain.window import MINUTE
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.wire import QueryAnswer, Series
from tests.support.builders import NOON, workload
from tests.support.composed import composed, recorded_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.composed import Cluster

HOSTILE = "tenant"
TEXTS = ("", "web", "shop", "Deployment", "StatefulSet", "cpu", "a\nb", "\u2028", "<img src=x>", "x" * 5000, "\u0000")
VALUES = ("NaN", "+Inf", "-Inf", "-1", "0", "1e308", "1e-308", "2000000016", "1e400")
POLICY = {"mode": "publish", "horizontal": {"gate": False}}


def samples_of(raw: msgspec.Raw, random: random.Random) -> msgspec.Raw:
    """Samples at the same times with odd values; of a range some are missing, twice, out of order, or of no time."""
    if not raw:
        return raw
    samples = json.loads(bytes(raw))
    if not isinstance(samples[0], list):
        return msgspec.Raw(json.dumps([samples[0], random.choice(VALUES)]).encode())
    odd: list[Any] = [[at, random.choice(VALUES)] for at, _ in samples if random.random() < 0.9]
    odd += [*odd[:1], [0, "1"], [1e15, "1"]] if random.random() < 0.3 else []
    random.shuffle(odd)
    return msgspec.Raw(json.dumps(odd).encode())


def odd_series(like: Series, random: random.Random) -> Series:
    """A series of the tenant: labels of another one, some of them odd, missing or more."""
    labels = {name: text if random.random() < 0.5 else random.choice(TEXTS) for name, text in like.metric.items()}
    labels.pop(random.choice([*labels]))
    labels |= {random.choice(("container", "what", "resource", "workload")): random.choice(TEXTS)}
    raw = msgspec.Raw(json.dumps(labels | {"namespace": HOSTILE}).encode())
    return Series(raw, samples_of(like.value, random), samples_of(like.values, random))


def beside(answer: QueryAnswer, random: random.Random) -> QueryAnswer:
    """An answer with series of the tenant in it, others each time."""
    like = [series for series in answer.series if "namespace" in series.metric]
    return msgspec.structs.replace(
        answer,
        series=[*answer.series, *(odd_series(series, random) for series in like for _ in range(random.randint(0, 4)))],
    )


def decided(cluster: Cluster, directory: Path, hostile: random.Random | None) -> Iterator[list[bytes]]:
    """The decisions about the workloads of others, by cycle."""
    with composed(cluster, directory, policy=POLICY) as service:
        source = service.cycle.source  # type: ignore[union-attr]  # a cycle of one process
        service.cycle.seconds = lambda: 0.0
        assert isinstance(source, PrometheusSource)
        if hostile:
            ask = source.client.ask
            source.client.ask = lambda question: beside(ask(question), hostile)  # type: ignore[method-assign]
        for minute in range(4):
            outcome = service.cycle.run(NOON + minute * MINUTE)
            service.metrics.record(outcome.report)
            assert all(recommendation.replicas.reason for recommendation in outcome.recommendations)
            assert [*text_string_to_metric_families(service.metrics.text())]
            assert all(line.isprintable() and len(line) < 1000 for line in outcome.report.failures)
            yield [
                msgspec.json.encode(recommendation)
                for recommendation in outcome.recommendations
                if recommendation.id.namespace != HOSTILE
            ]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(2))
def test_decisions_about_others_are_equal_to_the_byte(seed: int, tmp_path: Path) -> None:
    with recorded_cluster([workload("web"), workload("plain", autoscaler=None)]) as cluster:
        alone = [*decided(cluster, tmp_path / "alone", None)]
        assert [*decided(cluster, tmp_path / "beside", random.Random(seed))] == alone  # noqa: S311  no secret
