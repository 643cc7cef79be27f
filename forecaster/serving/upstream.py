"""The upstream adapter, which had the API group before. Requests for metrics that are not ours are passed on to it.

We have no certificate of the front proxy, so the adapter sees our own account and not the caller: callers are
authorised here first, for the very metric they ask for, and our account needs `list` there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from forecaster.domain.published import METRICS
from forecaster.kube.client import AsyncApiClient, UnreachableError
from forecaster.kube.connections import RawAnswer, RawRequest
from forecaster.serving.discovery import EXTERNAL, GROUPS, ApiGroup, ApiResource, Discovery
from forecaster.serving.external_metrics import ApiRequest, ExternalValue, value_call
from forecaster.serving.reply import HttpReply, failure

THREADS = 16
WAITING = 256
UPSTREAM_TIMEOUT_SECONDS = 5.0
UPSTREAM_CHECK_SECONDS = 30.0
DISCOVERY = f"/apis/{EXTERNAL.group_version}"
BUSY = failure(HTTPStatus.SERVICE_UNAVAILABLE, "the upstream metrics adapter has too many questions now")
AWAY = failure(HTTPStatus.SERVICE_UNAVAILABLE, "the upstream metrics adapter does not answer")


class UpstreamAdapter:
    """Passes value calls on, and adds the adapter's metrics to discovery."""

    def __init__(
        self,
        connections: AsyncApiClient,
        learned: Callable[[Discovery], None],
        clock: Callable[[], float],
        fails: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare the way to the adapter; `fails` hears why it did not answer, or answered with an error of its own."""
        self._connections = connections
        self._learned, self._fails = learned, fails
        self._clock = clock
        self._breaker = Breaker()
        self._waiting = 0
        self._known: tuple[ApiResource, ...] = ()

    def has(self, request: ApiRequest) -> bool:
        """Whether the upstream adapter answers this: a value of the external group with a name that is not ours."""
        call = value_call(request.path) if request.method == "GET" else None
        return isinstance(call, ExternalValue) and call.version == EXTERNAL.group_version and call.metric not in METRICS

    async def answer(self, request: ApiRequest) -> HttpReply:
        """Return the adapter's answer, also if it refuses."""
        if self._waiting >= WAITING:
            return BUSY
        if self._breaker.open(self._clock()):
            return AWAY
        self._waiting += 1
        try:
            answer = await self._exchange(target_of(request))
        except UnreachableError:
            self._breaker.failed(self._clock())
            return AWAY
        finally:
            self._waiting -= 1
        self._breaker.answered()
        return HttpReply(answer.status, answer.body, answer.content_type.encode("latin-1") or b"application/json")

    async def _exchange(self, target: str) -> RawAnswer:
        """Send one request, and report a failure. Raises UnreachableError."""
        try:
            answer = await self._connections.exchange(RawRequest("GET", target))
        except UnreachableError as error:
            self._fails(str(error))
            raise
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._fails(f"it answered {answer.status}")
        return answer

    async def refresh(self) -> None:
        """Read which metrics it has. While it is away, they stay listed: they will be back."""
        try:
            answer = await self._exchange(DISCOVERY)
        except UnreachableError:
            return
        resources = _resources(answer)
        if resources and resources != self._known:
            self._known = resources
            self._learned(Discovery([_with(group, resources) if group is EXTERNAL else group for group in GROUPS]))

    async def keep_current(self) -> None:
        """Learn again every `UPSTREAM_CHECK_SECONDS`."""
        while True:
            await self.refresh()
            await asyncio.sleep(UPSTREAM_CHECK_SECONDS)


def target_of(request: ApiRequest) -> str:
    """The request, spelled anew: nothing that our own parser let pass can mean something else there."""
    query = quote(request.query.decode("latin-1"), safe="=&%+,()!._-~")
    return quote(request.path, safe="/") + (f"?{query}" if query else "")


class _ResourceList(msgspec.Struct, frozen=True):
    resources: tuple[dict[str, Any], ...] = ()


def _resources(answer: RawAnswer) -> tuple[ApiResource, ...]:
    """Return the resources of the adapter's discovery; empty where that is not understood."""
    if answer.status != HTTPStatus.OK:
        return ()
    try:
        listed = msgspec.json.decode(answer.body, type=_ResourceList).resources
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()
    names = (resource.get("name") for resource in listed)
    return tuple(ApiResource(name, "ExternalMetricValueList") for name in names if isinstance(name, str) and name)


def _with(group: ApiGroup, upstream_resources: tuple[ApiResource, ...]) -> ApiGroup:
    """Return a group with the upstream resources before its own: `kubectl get` takes the last one of a kind."""
    others = tuple(resource for resource in upstream_resources if resource.name not in METRICS)
    return group._replace(resources=(*others, *group.resources))


FAILURES = 5
PAUSE_SECONDS = 10.0


@dataclass(slots=True)
class Breaker:
    """Circuit breaker: after `FAILURES` in a row a server gets no request for `PAUSE_SECONDS`, then one as a trial.

    Time goes in as seconds of any clock that only goes forward.
    """

    failures: int = 0
    until: float = 0.0

    def open(self, now: float) -> bool:
        """Whether to leave it alone. The first one after the pause may pass, and no other before it has answered."""
        if self.failures < FAILURES:
            return False
        if now < self.until:
            return True
        self.until = now + PAUSE_SECONDS
        return False

    def answered(self) -> None:
        """Record an answer."""
        self.failures = 0

    def failed(self, now: float) -> None:
        """Record a failure."""
        self.failures += 1
        if self.failures >= FAILURES:
            self.until = now + PAUSE_SECONDS
