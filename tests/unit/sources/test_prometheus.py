"""Slices, halving and detection against a server that plays along."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.signal import CPU, REQUESTS
from forecaster.domain.workload import WorkloadId
from forecaster.errors import SourceRefused, SourceUnavailable
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.http_server import Server, matrix, page, vector, verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from forecaster.domain.window import Block
    from tests.support.http_server import HttpRequest, Reply

NOON = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WEB = {"namespace": "shop", "workload_kind": "Deployment", "workload": "web"}
HPA = {"namespace": "shop", "horizontalpodautoscaler": "web"}
SCALES_WEB = {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}
TOO_MANY = verdict(422, "execution", "query processing would load too many samples into memory in query execution")


def points_of(request: HttpRequest) -> list[float]:
    start, end, step = (float(request.form[name]) for name in ("start", "end", "step"))
    return [start + step * index for index in range(round((end - start) / step) + 1)]


def one_workload(request: HttpRequest) -> Reply:
    """Answer with one workload whose value is the minute of the epoch, so that a lost or doubled point shows."""
    return matrix((WEB, [(at, str(at / 60)) for at in points_of(request)]))


def history(
    respond: Callable[[HttpRequest], Reply], minutes: int, queries: Queries | None = None, **settings: Any
) -> tuple[list[Block], list[HttpRequest]]:
    with Server(respond) as server:
        chosen = PrometheusSettings(url=server.url, retries=0, **settings)
        with closing(PrometheusSource(chosen, queries or Queries(requests_from="none"))) as source:
            blocks = list(source.history(CPU, NOON, NOON + minutes * MINUTE, MINUTE))
    return blocks, server.requests


def assert_whole(blocks: list[Block], minutes: int) -> None:
    values = np.hstack([block.values for block in blocks])
    first = NOON.timestamp() / 60
    np.testing.assert_array_equal(values, [first + np.arange(minutes + 1)])
    for earlier, later in pairwise(blocks):
        assert later.start == earlier.end + MINUTE


def test_slices_follow_each_other_without_gap_or_overlap() -> None:
    blocks, requests = history(one_workload, 5_000, samples_per_answer=1_000)
    assert_whole(blocks, 5_000)
    assert max(len(points_of(request)) for request in requests) == 1_000


def test_no_slice_exceeds_the_most_points_of_the_server() -> None:
    blocks, requests = history(one_workload, 30_000)
    assert_whole(blocks, 30_000)
    assert max(len(points_of(request)) for request in requests) == 11_000


def test_a_slice_that_is_too_much_is_halved_and_stays_small() -> None:
    def strict(request: HttpRequest) -> Reply:
        return one_workload(request) if len(points_of(request)) <= 300 else TOO_MANY

    blocks, requests = history(strict, 2_000)
    assert_whole(blocks, 2_000)
    refused = [request for request in requests if len(points_of(request)) > 300]
    assert len(refused) == 3  # 1989 → 994 → 497 → 248, and never too large again


@pytest.mark.parametrize(
    "refusal",
    [
        verdict(422, "execution", "expanding series: exceeded samples limit: limit 1000 violated (got 2000)"),
        verdict(422, "422", "cannot process more than 1000 samples; see -search.maxSamplesPerQuery"),
        verdict(400, "bad_data", "the query time range exceeds the limit (query length: 720h, limit: 5h)"),
        page(413, "Request Entity Too Large"),
        page(504, "upstream request timeout"),
    ],
    ids=["Thanos", "VictoriaMetrics", "Cortex", "gateway", "timeout of a gateway"],
)
def test_a_limit_by_any_name_is_kept_once_an_hour_was_answered(refusal: Reply) -> None:
    """Only what Prometheus and Mimir call their limits was known: of other stores no history was read."""
    blocks, _ = history(lambda request: one_workload(request) if len(points_of(request)) <= 300 else refusal, 2_000)
    assert_whole(blocks, 2_000)


def test_what_is_refused_from_the_beginning_is_asked_once() -> None:
    with Server(lambda _: verdict(422, "execution", "no")) as server:
        chosen = PrometheusSettings(url=server.url, retries=0)
        with closing(PrometheusSource(chosen, Queries())) as source, pytest.raises(SourceRefused):
            list(source.history(CPU, NOON, NOON + 2_000 * MINUTE, MINUTE))
    assert len(server.requests) == 1


def test_a_single_point_that_is_too_much_is_refused() -> None:
    with pytest.raises(SourceRefused, match="too many samples"):
        history(lambda _: TOO_MANY, 100)


def test_nobody_is_an_answer() -> None:
    blocks, _ = history(lambda _: matrix(), 20)
    assert [block.ids for block in blocks] == [(), ()]
    assert sum(block.values.shape[1] for block in blocks) == 21


def test_a_sample_that_is_no_number_names_the_query_and_the_address() -> None:
    with pytest.raises(SourceRefused, match=r"query 'cpu' to http://localhost.*not a number"):
        history(lambda _: matrix((WEB, [(NOON.timestamp(), "many")])), 1)


def test_a_history_that_ends_before_it_starts_asks_nothing() -> None:
    blocks, requests = history(one_workload, -1)
    assert (blocks, requests) == ([], [])


def test_without_a_query_for_requests_nothing_is_asked() -> None:
    with Server(one_workload) as server:
        settings = PrometheusSettings(url=server.url)
        with closing(PrometheusSource(settings, Queries(requests_from="none"))) as source:
            latest = source.latest(REQUESTS, NOON)
            blocks = list(source.history(REQUESTS, NOON, NOON + 5 * MINUTE, MINUTE))
    assert latest.values.shape == (0, 1)
    assert [block.values.shape for block in blocks] == [(0, 6)]
    assert server.requests == []


def test_after_a_silence_the_next_cycle_begins_with_all_its_patience() -> None:
    """A server that is slow, and not away, would be given up for ever."""
    plain = Queries(requests_from="none")
    with (
        Server(lambda _: vector()) as server,
        closing(PrometheusSource(PrometheusSettings(url=server.url), plain)) as source,
    ):
        source.client.silent = True
        source.inventory(NOON)
    assert server.requests[0].form["timeout"] == "29.000"


def test_the_origin_of_requests_is_asked_for_until_it_is_known() -> None:
    series: list[tuple[dict[str, str], str]] = []

    def mesh(request: HttpRequest) -> Reply:
        if "group(" in request.form["query"]:
            return vector(*series)
        return vector((WEB, "5"), at=NOON.timestamp())

    with Server(mesh) as server, closing(PrometheusSource(PrometheusSettings(url=server.url), Queries())) as source:
        before = source.latest(REQUESTS, NOON)
        series.append(({"preset": "linkerd"}, "1"))
        after = [source.latest(REQUESTS, NOON) for _ in range(2)]
        assert source.request_origins.active == ("linkerd",)
    assert before.ids == ()
    assert [block.ids for block in after] == [(WorkloadId("shop", "Deployment", "web"),)] * 2
    assert sum("group(" in request.form["query"] for request in server.requests) == 2


class TestAPartialAnswer:
    """When one of the stores behind Thanos is down, objects missing from an answer are not known to be gone."""

    def test_about_an_hpa_leaves_the_earlier_answer(self) -> None:
        down: list[str] = []

        def stores(request: HttpRequest) -> Reply:
            query = request.form["query"]
            if "horizontalpodautoscaler" in query or "count(" in query:
                rows = [(HPA | MEANING.get(query, {}), "9")] if not down else []
                return vector(*rows, warnings=down, at=NOON.timestamp())
            return vector((WEB, "3"), at=NOON.timestamp())

        queries = Queries(requests_from="none")
        MEANING = {  # noqa: N806
            queries.fact("hpa_scale_targets", frozenset()): SCALES_WEB,
            queries.fact("hpa_metric_targets", frozenset()): {"metric_name": "cpu", "metric_target_type": "average"},
        }
        with Server(stores) as server, closing(PrometheusSource(PrometheusSettings(url=server.url), queries)) as source:
            before = source.inventory(NOON)
            down.append("receive series from 10.0.0.7:10901: connection refused")
            after = source.inventory(NOON + 10 * MINUTE)
        assert before.workloads == after.workloads
        assert after.workloads[0].autoscaler
        assert (before.partial, before.faults) == ("", ())
        assert any("the answer is partial: receive series from 10.0.0.7" in fault for fault in after.faults)

    def test_about_counts_is_noted_with_the_list(self) -> None:
        with Server(lambda _: vector((WEB, "3"), at=NOON.timestamp(), warnings=["a store is down"])) as server:
            settings = PrometheusSettings(url=server.url)
            with closing(PrometheusSource(settings, Queries(requests_from="none"))) as source:
                inventory = source.inventory(NOON)
        assert [workload.id.name for workload in inventory.workloads] == ["web"]
        assert inventory.partial == "a store is down"
        assert inventory.partly == {inventory.workloads[0].id: "whether an HPA scales it is not known yet"}

    def test_about_containers_is_nothing_known(self) -> None:
        """The hottest pod may be in the part that is missing."""
        labels = WEB | {"container": "web"}
        series = (labels, [(NOON.timestamp(), "0.5")])
        for warnings, expected in (([], [0.5]), (["a store is down"], [np.nan])):
            with Server(lambda _, remarks=warnings: matrix(series, warnings=remarks)) as server:
                settings = PrometheusSettings(url=server.url)
                with closing(PrometheusSource(settings, Queries())) as source:
                    (block,) = source.container_usage(CPU, NOON, NOON, 5 * MINUTE)
            np.testing.assert_array_equal(block.values, [expected])


class TestClocks:
    """A server whose clock is another answers questions about the present by samples of another time."""

    @pytest.mark.parametrize(("ahead", "words"), [(600, "ahead of"), (-600, "behind")])
    def test_the_present_is_not_read_where_they_differ_and_the_message_says_by_how_much(
        self, ahead: float, words: str
    ) -> None:
        by = "(9m5[0-9]s|10m([0-9]s)?)"  # whole seconds, and the answer takes some time
        with pytest.raises(SourceUnavailable, match=f"its clock is {by} {words} this machine's; run a time service on"):
            self.latest(ahead, datetime.now(UTC))

    @pytest.mark.parametrize(("ahead", "at"), [(60, datetime.now(UTC)), (600, NOON)], ids=["a minute", "the past"])
    def test_the_past_is_and_what_differs_little(self, ahead: float, at: datetime) -> None:
        assert len(self.latest(ahead, at).ids) == 1

    def latest(self, ahead: float, at: datetime) -> Block:
        """The demand at an instant, by a server with such a clock."""
        stated = {"Content-Type": "application/json", "Date": formatdate(time.time() + ahead, usegmt=True)}
        with Server(lambda _: replace(vector((WEB, "1"), at=at.timestamp()), headers=stated)) as server:
            chosen = PrometheusSettings(url=server.url, retries=0)
            with closing(PrometheusSource(chosen, Queries(requests_from="none"))) as source:
                return source.latest(CPU, at)
