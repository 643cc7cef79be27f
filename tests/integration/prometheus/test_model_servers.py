"""Servers of large models, two pods each: twenty minutes with a queue teach what a pod carries, by every preset."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest
import yaml

from forecaster.config.settings import parse
from forecaster.domain.published import COUNTS
from forecaster.domain.window import MINUTE
from forecaster.hpa.manifest import read_manifest
from forecaster.hpa.spec import HpaSpec
from forecaster.replay.setup import autoscaler_of
from forecaster.sources import factory
from tests.support.exposition import World
from tests.support.fakes import CycleOnFakes, named
from tests.support.prometheus import RealPrometheus, fill
from tests.support.snippets import snippets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
SERVERS = ("sglang", "tgi", "triton", "vllm")
PODS = 2
FULL, BUSY, WAITING = 8.0, 6.0, 5.0
"""Requests of one pod: those that it runs while others wait, those that it runs now, and those that waited."""


def running(minutes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(minutes < 20, 3.0, np.where(minutes < 40, FULL, BUSY))


def waiting(minutes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where((minutes >= 20) & (minutes < 40), WAITING, 0.0)


def served(world: World, server: str, pod: dict[str, str]) -> None:
    minutes = (world.times - START.timestamp()) / 60
    runs, waits = running(minutes), waiting(minutes)
    match server:
        case "vllm":
            for engine in ("0", "1"):  # the engines of one pod share its requests
                world.levels("vllm:num_requests_running", runs / 2, engine=engine, **pod)
                world.levels("vllm:num_requests_waiting", waits / 2, engine=engine, **pod)
        case "sglang":
            world.levels("sglang:num_running_reqs", runs, **pod)
            world.levels("sglang:num_queue_reqs", waits, **pod)
        case "tgi":
            for job in ("pods", "again"):  # scraped twice, counted once
                world.levels("tgi_batch_current_size", runs, job=job, **pod)
                world.levels("tgi_queue_size", waits, job=job, **pod)
        case _:
            world.total("nv_inference_request_duration_us", (runs + waits) * 1e6, model="a", **pod)
            world.total("nv_inference_queue_duration_us", waits * 1e6, model="a", **pod)


@pytest.fixture(scope="module")
def url(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("models") / "data"
    world = World("models", START.timestamp(), interval=30.0, scrapes=130)
    for server in SERVERS:
        world.deployed("ai", server, pods=PODS)
        for index in range(PODS):
            served(world, server, {"namespace": "ai", "pod": f"{server}-5d8f-{index}"})
    fill(data, world, prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running_server:
        yield running_server.url


def test_a_pod_is_to_carry_four_fifths_of_what_it_ran_while_more_waited(url: str) -> None:
    signals = {f"{server}_load": {"preset": server} for server in SERVERS}
    settings = parse(
        {"prometheus": {"url": url}, "signals": signals, "policy": {"horizontal": {"gate": False}}}, "test"
    )
    now = START.replace(second=0) + 62 * MINUTE
    with closing(factory.prometheus(settings.prometheus, settings.queries, settings.signals)) as source:
        stage = CycleOnFakes(start=now - 2 * MINUTE, policies=settings.policies)
        stage.cycle.source = source
        stage.run(now - MINUTE)
        played = stage.run(now)
    for server in SERVERS:
        decided = named(played, server)
        load = next(view for view in decided.signals if view.signal == f"{server}_load")
        assert load.measured == pytest.approx(PODS * BUSY, rel=0.02), server
        assert load.target.startswith("6.4 requests in flight a pod, full at 8 requests in flight"), load.target
        assert load.reactive_replicas == PODS  # 12 / 6.4


def test_the_documented_hpa_leaves_the_target_to_what_was_learned() -> None:
    (text,) = (
        snippet.text
        for snippet in snippets()
        if snippet.page.name == "model-servers.md" and "Autoscaler" in snippet.text
    )
    spec = read_manifest(yaml.safe_load(text))
    assert isinstance(spec, HpaSpec), spec
    (target,) = autoscaler_of(spec).targets
    assert target.metric in COUNTS
    assert target.value == 1.0
