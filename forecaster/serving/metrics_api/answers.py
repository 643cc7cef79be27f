"""Every request under /apis and /openapi, from the question to the reply."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from forecaster.serving.metrics_api.discovery import Discovery
from forecaster.serving.metrics_api.find import Found, Refusal, find
from forecaster.serving.metrics_api.lists import custom, external, print_table
from forecaster.serving.metrics_api.paths import KINDS, ExternalValue, value_call
from forecaster.serving.metrics_api.question import question
from forecaster.serving.metrics_api.repeated import Repeated
from forecaster.serving.metrics_api.reply import Reply, failure, success
from forecaster.serving.values import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.serving.metrics_api.paths import ObjectValue
    from forecaster.serving.reader import Table
    from forecaster.serving.values import Moment

GET = frozenset({"GET", "HEAD"})
EMPTY: Reply = failure(HTTPStatus.SERVICE_UNAVAILABLE, "nothing has been computed yet")


class Request(NamedTuple):
    """What matters of a request here."""

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

    def __init__(self, seen: Callable[[], tuple[Table, Moment] | None], discovery: Discovery | None = None) -> None:
        self._seen = seen
        self.discovery = discovery or Discovery()
        """Replaced as a whole where an adapter behind us has metrics of its own."""
        self._repeated = Repeated()

    def answer(self, request: Request) -> Reply:
        """One request."""
        if request.method not in GET:
            return failure(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.method} is not supported: values are only read")
        found = self.discovery.answer(request.path, request.accept, request.if_none_match)
        return found or self.value(request)

    def value(self, request: Request) -> Reply:
        """A value call, or nothing that exists."""
        seen = self._seen()
        if seen is not None and (reply := self._repeated.get(*seen, request)):
            return reply
        call = value_call(request.path)
        if call is None:
            return failure(HTTPStatus.NOT_FOUND, "the server could not find the requested resource")
        try:
            parameters = request.parameters()
        except ValueError:
            return failure(HTTPStatus.BAD_REQUEST, "too many query parameters")
        if parameters.get("watch", "") in {"1", "true"}:
            return failure(HTTPStatus.METHOD_NOT_ALLOWED, "values cannot be watched")
        return EMPTY if seen is None else self._value(call, parameters, request, *seen)

    def _value(
        self,
        call: ExternalValue | ObjectValue,
        parameters: dict[str, str],
        request: Request,
        table: Table,
        moment: Moment,
    ) -> Reply:
        if isinstance(call, ExternalValue):
            found = _external(table, moment, call, parameters.get("labelSelector", ""))
        else:
            found = _custom(table, moment, call, parameters.get("metricLabelSelector", ""))
        if isinstance(found, Refusal):
            return failure(*found)
        if request.wants_table:
            return Reply(HTTPStatus.OK, msgspec.json.encode(print_table(found, moment.now)))
        reply = success(external(found) if isinstance(call, ExternalValue) else custom(found))
        self._repeated.keep(request, reply, found.value)
        return reply


def _external(table: Table, moment: Moment, call: ExternalValue, selector: str) -> Found | Refusal:
    if call.metric not in METRICS:
        return Refusal(HTTPStatus.NOT_FOUND, f"no metric {call.metric[:64]}; there are {', '.join(METRICS)}")
    asked = question(selector)
    if isinstance(asked, str):
        return Refusal(HTTPStatus.BAD_REQUEST, asked)
    return find(table, moment, call.namespace, call.metric, asked)


def _custom(table: Table, moment: Moment, call: ObjectValue, selector: str) -> Found | Refusal:
    """The object is named by the path; a selector, if there is one, says which signal."""
    kind = KINDS.get(call.resource)
    if kind is None or call.metric not in METRICS:
        return Refusal(HTTPStatus.NOT_FOUND, f"no metric {call.metric[:64]} of {call.resource[:64]}")
    named = ",".join(filter(None, (f"workload={call.name}", f"kind={kind}", selector)))
    asked = question(named)
    if isinstance(asked, str):
        return Refusal(HTTPStatus.BAD_REQUEST, asked)
    return find(table, moment, call.namespace, call.metric, asked)
