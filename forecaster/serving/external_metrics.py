"""Requests under /apis and /openapi: from the path to the reply.

External metrics are in external.metrics.k8s.io and in a group of our own, custom metrics in custom.metrics.k8s.io.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl

import msgspec

from forecaster.domain.published import METRICS
from forecaster.publish.reader import PublishedTable
from forecaster.publish.values import KNOWN, Moment, NotNamed, OfferedValue
from forecaster.serving.answers import NotThere, NoValue, WorkloadValue, find, workload_selector
from forecaster.serving.discovery import EXTERNAL, OWN, Discovery
from forecaster.serving.reply import HttpReply, custom, external, failure, print_table, success
from forecaster.serving.rest import MISSING

EXTERNAL_PATHS = {f"/apis/{group.group_version}/namespaces/": group.group_version for group in (EXTERNAL, OWN)}
"""Group and version of external metrics, by what their paths begin with."""
CUSTOM_PATH = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/"
KIND_OF_RESOURCE = {"deployments.apps": "Deployment", "statefulsets.apps": "StatefulSet"}
"""Resources whose objects have values."""
SUBRESOURCES = frozenset({"status", "finalize"})
"""The path of a metric of such a name means part of the namespace itself."""


class ExternalValue(NamedTuple):
    """A value call of an external group."""

    namespace: str
    metric: str
    version: str
    """Group and version that were asked, and answer."""


class ObjectValue(NamedTuple):
    """A value call of the custom group for one object."""

    namespace: str
    resource: str
    name: str
    metric: str


def value_call(path: str) -> ExternalValue | ObjectValue | None:
    """The value that a path asks for."""
    for start, version in EXTERNAL_PATHS.items():
        match path.removeprefix(start).split("/") if path.startswith(start) else ():
            case [namespace, metric] if namespace and metric and metric not in SUBRESOURCES:
                return ExternalValue(namespace, metric, version)
    match path.removeprefix(CUSTOM_PATH).split("/") if path.startswith(CUSTOM_PATH) else ():
        case [namespace, resource, name, metric] if namespace and resource and name and metric:
            return ObjectValue(namespace, resource, name, metric)
    return None


REPLIES_MAX = 20_000
"""Replies kept; at half a kilobyte each they are 10 MB."""
QUERY_MAX = 512
"""Bytes of a query that is worth keeping: an HPA's is a quarter of that, and others shall not fill the memory."""


class RecentReplies:
    """Replies of one fresh table, which do not change before the next one. A Table for people shows an age."""

    def __init__(self) -> None:
        self._table: PublishedTable | None = None
        self._replies: dict[str, HttpReply] = {}

    def get(self, table: PublishedTable, moment: Moment, request: ApiRequest) -> HttpReply | None:
        """The reply to the same request."""
        if self._table is not table or not moment.fresh:
            self._table, self._replies = table, {}
        return None if request.wants_table else self._replies.get(_key(request))

    def keep(self, request: ApiRequest, reply: HttpReply, value: OfferedValue) -> None:
        """Keep a reply for the next request, unless it depends on the time."""
        if value.source in KNOWN and len(self._replies) < REPLIES_MAX and len(request.query) <= QUERY_MAX:
            self._replies[_key(request)] = reply


def _key(request: ApiRequest) -> str:
    """One string: some thousand tuples would be work for the garbage collector."""
    return f"{request.path}?{request.query.decode('latin-1')}"


def watches(query: bytes) -> bool:
    """Whether a query asks for a watch: any first value of `watch` but 0 and false does, the empty one too."""
    if b"watch" not in query and b"%" not in query:
        return False
    parameters = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    first = next((value for name, value in parameters if name == "watch"), "false")
    return first.lower() not in {"0", "false"}


GET = frozenset({"GET", "HEAD"})
NOTHING_SERVED: HttpReply = failure(HTTPStatus.SERVICE_UNAVAILABLE, "nothing has been computed yet")


class ApiRequest(NamedTuple):
    """Parts of a request that matter here."""

    method: str
    path: str
    query: bytes = b""
    accept: str = ""
    if_none_match: bytes = b""

    def parameters(self) -> dict[str, str]:
        """Query parameters, the last of each name; those that mean nothing here are ignored, as other servers do."""
        text = self.query.decode("utf-8", "replace")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=32))

    @property
    def wants_table(self) -> bool:
        """Whether a person looks at it through `kubectl get`."""
        return "as=Table" in self.accept and "v=v1;" in self.accept + ";"


class MetricsApi:
    """Answers from whatever table is served at the moment."""

    def __init__(
        self, served: Callable[[], tuple[PublishedTable, Moment] | None], discovery: Discovery | None = None
    ) -> None:
        self._served = served
        self.discovery = discovery or Discovery()
        """Replaced as a whole where an adapter behind us has metrics of its own."""
        self._repeated = RecentReplies()

    def answer(self, request: ApiRequest) -> HttpReply:
        """Answer one request."""
        if request.method not in GET:
            return failure(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.method} is not supported: values are only read")
        reply = self.value(request) or self.discovery.answer(request.path, request.accept, request.if_none_match)
        return reply or failure(HTTPStatus.NOT_FOUND, "the server could not find the requested resource")

    def value(self, request: ApiRequest) -> HttpReply | None:
        """Answer a value call; None for any other."""
        served = self._served()
        if served is not None and (reply := self._repeated.get(*served, request)):
            return reply
        call = value_call(request.path)
        if call is None:
            return None
        try:
            parameters = request.parameters()
        except ValueError:
            return failure(HTTPStatus.BAD_REQUEST, "too many query parameters")
        if watches(request.query):
            return failure(HTTPStatus.METHOD_NOT_ALLOWED, "values cannot be watched")
        return NOTHING_SERVED if served is None else self._value(call, parameters, request, *served)

    def _value(
        self,
        call: ExternalValue | ObjectValue,
        parameters: dict[str, str],
        request: ApiRequest,
        table: PublishedTable,
        moment: Moment,
    ) -> HttpReply:
        answer = _lookup(table, moment, call, parameters)
        if not isinstance(answer, WorkloadValue):
            return failure(MISSING[type(answer)][0], answer.message)
        if request.wants_table:
            return HttpReply(HTTPStatus.OK, msgspec.json.encode(print_table(answer, moment.now)))
        reply = success(external(answer, call.version) if isinstance(call, ExternalValue) else custom(answer))
        self._repeated.keep(request, reply, answer.value)
        return reply


def _lookup(
    table: PublishedTable, moment: Moment, call: ExternalValue | ObjectValue, parameters: dict[str, str]
) -> WorkloadValue | NoValue:
    selector = _selector(call, parameters)
    selection = workload_selector(selector) if isinstance(selector, str) else selector
    if isinstance(selection, (NotNamed, NotThere)):
        return selection
    return find(table, moment, call.namespace, call.metric, selection)


def _selector(call: ExternalValue | ObjectValue, parameters: dict[str, str]) -> str | NotThere:
    """Return the selector of a call. An object is named by its path; a selector, if there is one, names the signal."""
    if isinstance(call, ExternalValue):
        if call.metric in METRICS:
            return parameters.get("labelSelector", "")
        return NotThere(f"no metric {call.metric[:64]}; there are {', '.join(METRICS)}")
    kind = KIND_OF_RESOURCE.get(call.resource)
    if kind is None or call.metric not in METRICS:
        return NotThere(f"no metric {call.metric[:64]} of {call.resource[:64]}")
    return ",".join(filter(None, (f"workload={call.name}", f"kind={kind}", parameters.get("metricLabelSelector"))))
