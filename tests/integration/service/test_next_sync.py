"""Every explanation over HTTP ends with what the HPA does next, by what the computing process knows of it."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from forecaster.app.facts import FactsServer
from forecaster.app.serve import known_of
from forecaster.publish.reader import TableReader
from forecaster.publish.table import pictures_path
from forecaster.serving.app import create_app
from forecaster.serving.metrics import ServingMetrics
from forecaster.serving.what_if import AT_ONCE, CallerLimit
from forecaster.serving.workloads import RowExplanations
from tests.support.asgi import Client
from tests.support.builders import NOON, after, workload
from tests.support.composed import composed, published, recorded_cluster, scale, table_path, tick

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.composed import Cluster, Service

NOT_KNOWN = "  What HPA web-hpa does next is not known: "


class Story:
    """A composed service of two workloads, one of them without an HPA, and the pages over its table."""

    def __init__(self, cluster: Cluster, service: Service, directory: Path, parts: ExitStack) -> None:
        self.cluster, self.service, self.directory = cluster, service, directory
        self.facts = FactsServer(known_of(service.cycle), directory)
        self.facts.start()
        parts.callback(self.facts.close)
        self.reader = TableReader(table_path(directory), lambda: after(5))
        self.reader.refresh()
        self.metrics = ServingMetrics(self.reader)
        pictures = TableReader(pictures_path(table_path(directory)))
        paths = {"facts": str(self.facts.path), "metrics": self.metrics, "pictures": pictures}
        self.client = Client(create_app(self.reader, **paths))

    def lines(self, name: str = "web") -> list[str]:
        """Lines below the decision about the size."""
        answer = self.client.get(f"/api/v1/namespaces/shop/workloads/Deployment/{name}/explanation")
        lines: list[str] = answer.json()["lines"]
        (last,) = (place for place, line in enumerate(lines) if line.startswith("  => ") and "replicas" not in line)
        return lines[last + 1 :]


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with ExitStack() as parts:
        cluster = parts.enter_context(recorded_cluster([workload("web"), workload("cart", autoscaler=None)]))
        service = parts.enter_context(composed(cluster, tmp_path))
        tick(service, NOON)
        yield Story(cluster, service, tmp_path, parts)


def test_what_an_hpa_does_next_is_told_with_its_bounds(story: Story) -> None:
    first, *steps = story.lines()
    assert "your HPA will see 62 % of requested cpu in use / 50 % × 4 pods = 5 pods" in first
    assert any("bounds: minReplicas" in line for line in steps)
    assert steps[-1] == "  behavior: the default is assumed; what the HPA states is not known here"
    assert story.lines("cart") == []


def test_the_page_of_the_dashboard_has_the_same_lines(story: Story) -> None:
    page = story.client.get("/dashboard/workloads/shop/Deployment/web").json()["lines"]
    assert page[-len(story.lines()) :] == story.lines()


def test_a_count_that_has_changed_since_the_table_is_not_reasoned_about(story: Story) -> None:
    scale(story.cluster, "web", 9, 9, NOON)
    tick(story.service, after(1))
    assert story.lines() == [f"{NOT_KNOWN}the computing process is busy or gone."]


def test_without_the_computing_process_it_is_not_known(story: Story) -> None:
    story.facts.close()
    assert story.lines() == [f"{NOT_KNOWN}the computing process is busy or gone."]


def test_a_replica_that_copies_has_facts_of_another_time(story: Story) -> None:
    story.metrics.parent.follows = True
    assert story.lines() == [f"{NOT_KNOWN}only the replica that computes can say."]


def test_readers_that_ask_in_a_loop_cost_the_cycles_little(story: Story) -> None:
    explanations, table = RowExplanations(str(story.facts.path)), published(story.directory)
    explanations.limit = CallerLimit(lambda: 0.0)
    web = next(entry for entry in table.entries if entry.name == "web")

    async def asked_in_a_loop() -> list[str]:
        return [(await explanations.lines(table, web))[-1] for _ in range(int(AT_ONCE) + 1)]

    *answered, last = asyncio.run(asked_in_a_loop())
    assert all("behavior: " in line for line in answered)
    assert last == f"{NOT_KNOWN}too many ask; ask again in a moment."
