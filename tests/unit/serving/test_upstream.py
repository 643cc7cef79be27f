from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from forecaster.kube.client import UnreachableError
from forecaster.kube.connections import RawAnswer, RawRequest
from forecaster.serving.external_metrics import ApiRequest
from forecaster.serving.upstream import FAILURES, PAUSE_SECONDS, Breaker, UpstreamAdapter

if TYPE_CHECKING:
    from forecaster.serving.discovery import Discovery

SHOP = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop"
QUEUE = ApiRequest("GET", f"{SHOP}/s0-queue", b"labelSelector=scaledobject.keda.sh%2Fname%3Dweb")


class Adapter:
    """An adapter that gives the answer of a test, or none at all."""

    def __init__(self) -> None:
        self.answer: RawAnswer | None = RawAnswer(200, b'{"items":[]}', "application/json")
        self.asked: list[str] = []

    async def exchange(self, request: RawRequest) -> RawAnswer:
        self.asked.append(str(request))
        if self.answer is None:
            raise UnreachableError("timed out")
        return self.answer


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def previous(adapter: Adapter, learned: list[Discovery] | None = None, clock: Clock | None = None) -> UpstreamAdapter:
    return UpstreamAdapter(adapter, [].append if learned is None else learned.append, clock or Clock())


@pytest.mark.parametrize(
    ("request_", "belongs"),
    [
        (QUEUE, True),
        (ApiRequest("GET", f"{SHOP}/forecaster_demand"), False),
        (ApiRequest("GET", f"{SHOP}/a/b"), False),
        (ApiRequest("POST", f"{SHOP}/s0-queue"), False),
        (ApiRequest("GET", "/apis/external.metrics.k8s.io/v1beta1"), False),
        (ApiRequest("GET", "/apis/metrics.forecaster.dev/v1beta1/namespaces/shop/s0-queue"), False),
        (ApiRequest("GET", "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/deployments.apps/web/x"), False),
    ],
)
def test_values_of_other_names_are_the_adapters(request_: ApiRequest, belongs: bool) -> None:  # noqa: FBT001
    assert previous(Adapter()).has(request_) is belongs


def test_a_request_goes_on_as_it_came_and_so_does_the_answer() -> None:
    adapter = Adapter()
    adapter.answer = RawAnswer(404, b'{"kind":"Status","code":404}', "application/json")
    reply = asyncio.run(previous(adapter).answer(QUEUE))
    assert adapter.asked == [f"GET {SHOP}/s0-queue?labelSelector=scaledobject.keda.sh%2Fname%3Dweb"]
    assert (reply.status, reply.body, reply.headers) == (404, b'{"kind":"Status","code":404}', ())


@pytest.mark.parametrize("metric", ["a b", "a\r\nX-Remote-User: admin", "a?b", "é", "a#b", "%2e%2e"])
def test_odd_names_are_spelled_so_that_they_stay_one_name(metric: str) -> None:
    adapter = Adapter()
    asyncio.run(previous(adapter).answer(ApiRequest("GET", f"{SHOP}/{metric}", b"a=b c\r\n")))
    (request,) = adapter.asked
    path, _, query = request.removeprefix("GET ").partition("?")
    assert path.count("/") == SHOP.count("/") + 1
    assert request.isascii()
    assert request.removeprefix("GET ").isprintable()
    assert " " not in path + query


def test_an_adapter_that_is_away_is_left_alone_for_a_while() -> None:
    adapter, clock = Adapter(), Clock()
    adapter.answer = None
    upstream = previous(adapter, clock=clock)
    statuses = [asyncio.run(upstream.answer(QUEUE)).status for _ in range(FAILURES + 3)]
    assert statuses == [503] * len(statuses)
    assert len(adapter.asked) == FAILURES
    adapter.answer = RawAnswer(200, b"{}", "application/json")
    clock.now = PAUSE_SECONDS + 1
    assert asyncio.run(upstream.answer(QUEUE)).status == 200
    assert asyncio.run(upstream.answer(QUEUE)).status == 200


def test_after_the_pause_one_request_tries_and_the_others_wait_for_it() -> None:
    breaker = Breaker()
    for _ in range(FAILURES):
        breaker.failed(0.0)
    later = PAUSE_SECONDS + 1
    assert [breaker.open(later) for _ in range(3)] == [False, True, True]


def test_discovery_lists_both() -> None:
    adapter, learned = Adapter(), []
    resources = [{"name": "s0-queue"}, {"name": "forecaster_demand"}, {"name": 7}, {}]
    adapter.answer = RawAnswer(200, json.dumps({"resources": resources}).encode(), "application/json")
    upstream = previous(adapter, learned)
    asyncio.run(upstream.refresh())
    asyncio.run(upstream.refresh())
    (discovery,) = learned
    reply = discovery.answer("/apis/external.metrics.k8s.io/v1beta1")
    assert reply is not None
    names = [resource["name"] for resource in json.loads(reply.body)["resources"]]
    assert names == ["s0-queue", "forecaster_floor", "forecaster_replicas", "forecaster_demand"]
    own = discovery.answer("/apis/metrics.forecaster.dev/v1beta1")
    assert own is not None
    assert "s0-queue" not in own.body.decode()


@pytest.mark.parametrize(
    "answer", [None, RawAnswer(403, b"", ""), RawAnswer(200, b"<html>", "text/html"), RawAnswer(200, b"{}", "")]
)
def test_a_discovery_that_is_not_understood_changes_nothing(answer: RawAnswer | None) -> None:
    adapter, learned = Adapter(), []
    adapter.answer = answer
    asyncio.run(previous(adapter, learned).refresh())
    assert learned == []


def test_why_the_adapter_fails_is_reported() -> None:
    adapter, faults = Adapter(), list[str]()
    upstream = UpstreamAdapter(adapter, [].append, Clock(), faults.append)
    adapter.answer = None
    assert asyncio.run(upstream.answer(QUEUE)).status == 503
    adapter.answer = RawAnswer(502, b"", "text/plain")
    assert asyncio.run(upstream.answer(QUEUE)).status == 502
    asyncio.run(upstream.refresh())
    assert faults == ["timed out", "it answered 502", "it answered 502"]
