"""A Prometheus-compatible HTTP endpoint over a recording, on loopback, for the demo and for tests.

It is not Prometheus and has no PromQL engine. It recognises the exact text of every query that the `Queries` it was
given generate, for any window, and answers what those queries mean: mean demand over the window for rates, the latest
minute for levels, the live `RecordedFleet` for the inventory. Any other query gets the error of the API (400,
`bad_data`). The protocol in between is the real one: forms by POST or GET, the JSON of the API, its limit of points,
its error codes.
"""

from __future__ import annotations

import json
import math
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from datetime import timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import compress
from typing import Any, Self, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.settings import parse_duration
from forecaster.domain.signal import CPU, MEMORY, PODS, Signal
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import Autoscaler, Workload
from forecaster.sources import promql
from forecaster.sources.blocks import SAMPLES_OF_A_POD, SAMPLES_OF_PODS, SETTLED_PODS
from forecaster.sources.facts import TARGET_WORDS
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import RecordedFleet, Recording, RunningSums

_MAX_POINTS = 11_000
_SERVED_PRESET = "istio"
"""The mesh that recorded request rates claim to come from when the client finds that out by itself."""
_APP = {"container": "app"}
"""A recording knows no containers: each pod has one, and all pods of a workload use the same."""
_ROUNDING = 1e-9
_SENTINEL = timedelta(seconds=35_999)
"""A window that no other text contains, to find where the window stands."""


_NARROWER = re.compile(
    r'(?:pod|replicaset)=~"\((?P<owner>[^"]*?)\)(?:-\.\+|\(-\.\+\)\?)",'
    r'|(?:deployment|statefulset|daemonset|workload|scaletargetref_name)=~"(?P<name>[^"]*)",'
)
"""Matchers that `promql.about_workloads` writes, with the names that they mean."""
_NAMESPACES = re.compile(r'namespace=~"([^"]*)"')


def _unquoted(text: str) -> str:
    return text.replace("\\\\", "\\")


_OF_JOBS = "kube_job_owner{"
"""Metric in every query about runs of CronJobs."""


class BadQuestion(ValueError):
    """A parameter or query that is not understood; the text is the API's `error`."""


Labels: TypeAlias = "dict[str, str]"
Fact: TypeAlias = "tuple[Labels, float]"


class Answers:
    """Bodies of answers, computed from the recording and the present fleet."""

    def __init__(self, recording: Recording, queries: Queries, fleet: RecordedFleet) -> None:
        if queries.detects_requests:
            queries = queries.with_requests_from(_SERVED_PRESET)
        self._recording = recording
        self._fleet = fleet
        self._selected = promql.escaped(queries.namespaces)
        self._namespaces = re.compile(queries.namespaces)
        self._within = self._names = re.compile(".*")
        self._detection = queries.detection()
        self._facts = {query: FACTS[name] for name, query in (queries.inventory() | queries.container_facts()).items()}
        self._facts[queries.hpa_count()] = lambda workloads: [({}, sum(1.0 for _ in _scaled(workloads)))]
        usage = [(_pattern(queries.signal(signal, _SENTINEL)), signal, False) for signal in recording.values]
        of_each = [(_pattern(queries.container_usage(signal, _SENTINEL)), signal, True) for signal in (CPU, MEMORY)]
        self._patterns = usage + of_each
        self._of_pods = _pattern(queries.of_pods(CPU, _SENTINEL))
        self._sums = {signal: RunningSums(values) for signal, values in recording.values.items()}

    def about(self, query: str) -> tuple[Answers, str]:
        """Return the answers narrowed to the query's namespaces and names, and the query without these matchers."""
        answers, narrower = copy(self), _NARROWER.search(query)
        if narrower:
            answers._names = re.compile(_unquoted(narrower["owner"] or narrower["name"]))  # noqa: SLF001  of a copy
            query = _NARROWER.sub("", query)
        namespaces = _NAMESPACES.search(query)
        if namespaces and namespaces[1] != self._selected:
            answers._within = re.compile(_unquoted(namespaces[1]))  # noqa: SLF001  of a copy
            query = query.replace(namespaces[0], f'namespace=~"{self._selected}"')
        return answers, query

    def instant(self, query: str, at: float) -> bytes:
        """`query` at one time."""
        rows = self._inventory(query)
        if rows is None:
            labels, values = self._demand(query, np.array([at], dtype=np.float64))
            rows = zip(labels, values[:, 0].tolist(), strict=True)
        return _success(
            "vector", (_row(series, "value", _sample(at, value)) for series, value in rows if not math.isnan(value))
        )

    def over_range(self, query: str, *, start: float, end: float, step: float) -> bytes:
        """`query` from `start` to `end`, both included."""
        if step <= 0 or end < start:
            raise BadQuestion("the step must be positive and the end not before the start")
        points = int((end - start) / step + _ROUNDING) + 1
        if points > _MAX_POINTS:
            raise BadQuestion("exceeded maximum resolution of 11,000 points per timeseries.")
        times = start + step * np.arange(points, dtype=np.float64)
        labels, values = self._demand(query, times)
        return _success("matrix", _matrix_rows(times.tolist(), labels, values))

    def _inventory(self, query: str) -> Iterable[Fact] | None:
        """Facts about the present fleet, which has no Jobs; None when `query` does not ask for any."""
        if query == self._detection:
            return [({"preset": _SERVED_PRESET}, 1.0)]
        if _OF_JOBS in query:
            return []
        fact = self._facts.get(query)
        return fact(workload for workload in self._fleet.workloads() if self._shows(workload)) if fact else None

    def _demand(self, query: str, times: NDArray[np.float64]) -> tuple[list[Labels], NDArray[np.float64]]:
        """Labels [series] and float64[series, time]; NaN where nothing was recorded."""
        if match := self._of_pods.fullmatch(query):
            return self._made_of(times, match)
        signal, window, per_container = self._meaning(query)
        values = self._values(signal, times, window)
        if per_container:
            pods = self._values(PODS, times, window)
            values = np.divide(values, pods, out=np.full(values.shape, np.nan), where=pods >= 1)
        labels, shown = self._shown()
        return [label_set | _APP if per_container else label_set for label_set in labels], values[shown]

    def _made_of(self, times: NDArray[np.float64], match: re.Match[str]) -> tuple[list[Labels], NDArray[np.float64]]:
        """Return every pod with a sample each quarter of a minute: the recording is complete."""
        pods, settled = self._values(PODS, times, 1), self._values(CPU, times, _minutes(match))
        pods[pods < 1] = np.nan
        samples = np.rint(pods) * (SAMPLES_OF_A_POD + 4 * _minutes(match))
        labels, shown = self._shown()
        all_labels = [label_set | {"what": kind} for kind in (SETTLED_PODS, SAMPLES_OF_PODS) for label_set in labels]
        return all_labels, np.vstack([settled[shown], samples[shown]])

    def _values(self, signal: Signal, times: NDArray[np.float64], window: int) -> NDArray[np.float64]:
        columns = np.floor((times - self._recording.start.timestamp()) / 60 + _ROUNDING).astype(np.intp)
        values = self._sums[signal].means(columns, window)
        if signal == PODS:
            self._overlay_changes(values, times)
        return values

    def _overlay_changes(self, pods: NDArray[np.float64], times: NDArray[np.float64]) -> None:
        """Overlay the ready pods of the fleet, from its first change on, over those of the recording."""
        for row, workload in zip(pods, self._recording.workloads, strict=True):
            for change in self._fleet.changes(workload.id):
                row[times >= change.since] = change.ready

    def _meaning(self, query: str) -> tuple[Signal, int, bool]:
        """The signal that `query` asks for, the minutes that one value covers, and whether it is about containers."""
        for pattern, signal, per_container in self._patterns:
            if match := pattern.fullmatch(query):
                return signal, _minutes(match), per_container
        raise BadQuestion(f"the embedded endpoint answers only the queries it was started with, not {query[:80]!r}")

    def _shown(self) -> tuple[list[Labels], list[bool]]:
        """Labels of the workloads that are shown, and for each row whether it is."""
        shown = [self._shows(workload) for workload in self._recording.workloads]
        return [_identity(workload) for workload in compress(self._recording.workloads, shown)], shown

    def _shows(self, workload: Workload) -> bool:
        namespaces = (self._namespaces, self._within)
        return all(pattern.fullmatch(workload.id.namespace) for pattern in namespaces) and (
            self._names.fullmatch(workload.id.name) is not None
        )


def _minutes(match: re.Match[str]) -> int:
    """The window of a query."""
    window = parse_duration(match.groupdict().get("window"))
    return max(1, window // MINUTE) if isinstance(window, timedelta) else 1


def _pattern(query: str) -> re.Pattern[str]:
    """Matches a query for any window, as the group `window` where the query has one."""
    text, marker = re.escape(query), re.escape(promql.duration(_SENTINEL))
    return re.compile(text.replace(marker, r"(?P<window>[\ddhms]+)", 1).replace(marker, r"(?P=window)"))


def _identity(workload: Workload) -> Labels:
    id_ = workload.id
    return {"namespace": id_.namespace, "workload_kind": id_.kind, "workload": id_.name}


def _resource_rows(workloads: Iterable[Workload], side: str) -> Iterator[Fact]:
    for workload in workloads:
        for resource in ("cpu", "memory"):
            amount = getattr(workload.resources, f"{resource}_{side}")
            if amount is not None:
                yield _identity(workload) | {"resource": resource}, amount


def _scaled(workloads: Iterable[Workload]) -> Iterator[tuple[Labels, Workload, Autoscaler]]:
    for workload in workloads:
        if workload.autoscaler:
            labels = {"namespace": workload.id.namespace, "horizontalpodautoscaler": workload.autoscaler.name}
            yield labels, workload, workload.autoscaler


def _target_rows(workloads: Iterable[Workload]) -> Iterator[Fact]:
    for labels, _, hpa in _scaled(workloads):
        for target in hpa.targets:
            word, unit = next((word, unit) for word, (kind, unit) in TARGET_WORDS.items() if kind is target.type)
            yield labels | {"metric_name": target.metric, "metric_target_type": word}, target.value * unit


_NOT_RECORDED = ("hpa_containers", "identity", "state_metrics", "init_containers", "oom_kills", "held_back")
FACTS: dict[str, Callable[[Iterable[Workload]], Iterable[Fact]]] = {
    **dict.fromkeys(_NOT_RECORDED, lambda _workloads: []),
    "replicas": lambda workloads: [(_identity(workload), workload.replicas) for workload in workloads],
    "ready_replicas": lambda workloads: [(_identity(workload), workload.ready_replicas) for workload in workloads],
    "pod_requests": lambda workloads: _resource_rows(workloads, "request"),
    "pod_limits": lambda workloads: _resource_rows(workloads, "limit"),
    "hpa_scale_targets": lambda workloads: [
        (labels | {"scaletargetref_kind": workload.id.kind, "scaletargetref_name": workload.id.name}, 1.0)
        for labels, workload, _ in _scaled(workloads)
    ],
    "hpa_min_replicas": lambda workloads: [(labels, hpa.min_replicas) for labels, _, hpa in _scaled(workloads)],
    "hpa_max_replicas": lambda workloads: [(labels, hpa.max_replicas) for labels, _, hpa in _scaled(workloads)],
    "hpa_metric_targets": _target_rows,
    "container_images": lambda workloads: [
        (_identity(workload) | _APP | {"image": f"recorded/{workload.id.name}"}, 1.0) for workload in workloads
    ],
    "container_requests": lambda workloads: [(labels | _APP, v) for labels, v in _resource_rows(workloads, "request")],
    "container_limits": lambda workloads: [(labels | _APP, v) for labels, v in _resource_rows(workloads, "limit")],
}
"""Answers to each query of the inventory, by its name in `Queries`."""


def _matrix_rows(times: list[float], labels: list[Labels], values: NDArray[np.float64]) -> Iterator[str]:
    for series, row in zip(labels, values, strict=True):
        present = ~np.isnan(row)
        if present.any():
            pairs = zip(times, row.tolist(), present.tolist(), strict=True)
            samples = ",".join(_sample(at, value) for at, value, there in pairs if there)
            yield _row(series, "values", f"[{samples}]")


def _sample(at: float, value: float) -> str:
    return f'[{at:.12g},"{value:.12g}"]'


def _row(labels: Labels, name: str, samples: str) -> str:
    return f'{{"metric":{json.dumps(labels)},"{name}":{samples}}}'


def _success(kind: str, rows: Iterable[str]) -> bytes:
    return f'{{"status":"success","data":{{"resultType":"{kind}","result":[{",".join(rows)}]}}}}'.encode()


class EmbeddedPrometheus(ThreadingHTTPServer):
    """Serves `recording` and `fleet` at `url` within a `with` block."""

    daemon_threads = True
    block_on_close = False  # connections are kept alive by clients that may outlive us

    def __init__(self, recording: Recording, queries: Queries, fleet: RecordedFleet, *, port: int = 0) -> None:
        self.answers = Answers(recording, queries, fleet)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """Address of the endpoint; the system chooses the port unless one was requested."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that leaves in the middle of an answer; report every other error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """The protocol: paths, forms, status codes."""

    server: EmbeddedPrometheus
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together

    def do_GET(self) -> None:
        """Parameters come in the address."""
        self._answer({})

    def do_POST(self) -> None:
        """Parameters come as a form."""
        self._answer(dict(parse_qsl(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is http.server's
        """Stay silent: the terminal belongs to the caller."""

    def _answer(self, form: Mapping[str, str]) -> None:
        address = urlsplit(self.path)
        parameters = {**dict(parse_qsl(address.query)), **form}
        try:
            body = self._body(address.path, parameters)
        except BadQuestion as error:
            self._send(HTTPStatus.BAD_REQUEST, _error("bad_data", str(error)))
        else:
            self._send(
                HTTPStatus.OK if body is not None else HTTPStatus.NOT_FOUND, body or _error("not_found", self.path)
            )

    def _body(self, path: str, parameters: Mapping[str, str]) -> bytes | None:
        answers = self.server.answers
        match path:
            case "/api/v1/query":
                answers, query = answers.about(_text(parameters, "query"))
                return answers.instant(query, _number(parameters, "time"))
            case "/api/v1/query_range":
                answers, query = answers.about(_text(parameters, "query"))
                return answers.over_range(
                    query,
                    start=_number(parameters, "start"),
                    end=_number(parameters, "end"),
                    step=_number(parameters, "step"),
                )
            case "/api/v1/status/buildinfo":
                return json.dumps({"status": "success", "data": {"version": "embedded"}}).encode()
            case "/-/ready" | "/-/healthy":
                return b"The embedded endpoint is ready.\n"
            case _:
                return None

    def _send(self, status: HTTPStatus, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if body.startswith(b"{") else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"status": "error", "errorType": kind, "error": message}).encode()


def _text(parameters: Mapping[str, str], name: str) -> str:
    if not parameters.get(name):
        raise BadQuestion(f'invalid parameter "{name}": missing')
    return parameters[name]


def _number(parameters: Mapping[str, str], name: str) -> float:
    text = _text(parameters, name)
    try:
        number = float(text)
    except ValueError as error:
        raise BadQuestion(f'invalid parameter "{name}": cannot parse {text!r}') from error
    if not math.isfinite(number):
        raise BadQuestion(f'invalid parameter "{name}": not finite')
    return number
