"""The Prometheus HTTP API: questions as forms, answers as series of raw samples, failures as errors of the source.

    SourceRefused
    ├── Denied     the server does not accept these credentials
    └── TooMuch    the server would answer a smaller question of the same kind

Messages name the query, the address and what came instead; never a secret, and never more than a line of a body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
import requests
from urllib3.exceptions import HTTPError, ReadTimeoutError

from forecaster.errors import SourceRefused, SourceTimeout, SourceUnavailable, masked, shown_url


@dataclass(frozen=True, slots=True)
class Query:
    """One call of the API. `name` is its name in messages."""

    name: str
    path: str
    form: Mapping[str, str]


class Series(msgspec.Struct, gc=False):
    """Undecoded labels and samples of one series. Native histograms come without either of the two."""

    labels: msgspec.Raw = msgspec.field(name="metric")
    value: msgspec.Raw = msgspec.Raw()
    values: msgspec.Raw = msgspec.Raw()

    @property
    def metric(self) -> dict[str, str]:
        """The labels. Raises `MalformedAnswer`."""
        try:
            return _decode_labels(self.labels)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise MalformedAnswer(str(error)) from error

    @property
    def samples(self) -> msgspec.Raw:
        """Return the samples: one `[time, "value"]` of an instant query or a list of them."""
        return self.values or self.value


class _Data(msgspec.Struct):
    result: list[Series]


class _Success(msgspec.Struct):
    data: _Data
    warnings: list[str] = []
    infos: list[str] = []
    isPartial: bool = False  # noqa: N815  the spelling of VictoriaMetrics


class _Status(msgspec.Struct):
    data: dict[str, object] = {}


class QueryAnswer(msgspec.Struct, frozen=True):
    """Series of a successful answer, and the server's remarks about them."""

    series: list[Series]
    remarks: tuple[str, ...] = ()
    partial: str = ""
    """Part of the answer that is missing, as the server says; empty where it is whole."""


class ServerError(msgspec.Struct, frozen=True):
    """An error that the API itself states, where the status says so."""

    status: str
    kind: str = msgspec.field(name="errorType", default="")
    message: str = msgspec.field(name="error", default="")


class MalformedAnswer(ValueError):
    """The bytes do not follow the API."""


_ABOUT_NAMES = "PromQL info: metric might not be a counter"
"""Remark about every counter whose name does not end in `_total`, such as those of ingress-nginx; of no use."""

_ABOUT_QUERY = "PromQL "
"""Prefix of Prometheus' remarks about the text of a query."""

_decode_labels = msgspec.json.Decoder(dict[str, str]).decode
_decode_success = msgspec.json.Decoder(_Success).decode
_decode_status = msgspec.json.Decoder(_Status).decode
_decode_error = msgspec.json.Decoder(ServerError).decode


def at_instant(name: str, query: str, at: datetime) -> Query:
    """The value of `query` at one time."""
    return Query(name, "/api/v1/query", {"query": query, "time": _seconds(at)})


def by_its_own_clock(name: str, query: str) -> Query:
    """The value of `query` at the time that the server takes for now."""
    return Query(name, "/api/v1/query", {"query": query})


def over_range(name: str, query: str, start: datetime, end: datetime, step: timedelta) -> Query:
    """The values of `query` from `start` to `end`, both included."""
    form = {"query": query, "start": _seconds(start), "end": _seconds(end), "step": f"{step.total_seconds():.3f}"}
    return Query(name, "/api/v1/query_range", form)


def answer_of(body: bytes) -> QueryAnswer:
    """Decode a successful answer; the samples stay raw. Raises `MalformedAnswer`."""
    try:
        success = _decode_success(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedAnswer(str(error)) from error
    remarks = (remark for remark in success.warnings + success.infos if not remark.startswith(_ABOUT_NAMES))
    return QueryAnswer(success.data.result, tuple(remarks), _missing_part(success))


def _missing_part(success: _Success) -> str:
    """Warnings are about parts that did not answer (a store, a shard), but for those about the query itself."""
    warning = next((text for text in success.warnings if not text.startswith(_ABOUT_QUERY)), "")
    return _cut(warning) or ("the server calls its answer partial" if success.isPartial else "")


def verdict_of(body: bytes) -> ServerError | None:
    """The API's own error; None when the body is not one."""
    try:
        stated = _decode_error(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return stated if stated.status == "error" else None


def facts_of(body: bytes) -> dict[str, str]:
    """The facts of a status page; none when the body is something else."""
    try:
        return {name: str(fact) for name, fact in _decode_status(body).data.items()}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _seconds(at: datetime) -> str:
    return f"{at.timestamp():.3f}"


_CHUNK = 1 << 18
"""Bytes of a body read at a time."""
_QUOTED_LENGTH = 200
_SEARCHED_BYTES = 1 << 16
"""Characters of an answer that a message may quote."""

_KINDS = {504: SourceTimeout} | dict.fromkeys((429, 500, 502, 503), SourceUnavailable)
_DENIED = {401, 403, 407}
_TOO_MANY = (
    "too many samples",
    "exceeded maximum resolution",
    "err-mimir-max-",  # limits of a tenant of Mimir
)
_NO_TENANT = b"no org id"
"""Mimir's refusal of a request without a tenant."""
_TENANT = "state the tenant in prometheus.headers, e.g. {X-Scope-OrgID: NAME}"

PROXY = "no connection through the proxy of HTTPS_PROXY or HTTP_PROXY, which NO_PROXY goes around: "


class TooMuch(SourceRefused):
    """The server would answer a smaller question of the same kind."""


class TooLarge(Exception):
    """A body has more bytes than its argument allows."""


class Denied(SourceRefused):
    """The server does not accept these credentials."""


class Untrusted(SourceRefused):
    """The server's certificate is not trusted, or it speaks no TLS."""


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Errors of the network as errors of the source; `where` names query and address."""
    try:
        yield
    except requests.exceptions.SSLError as error:
        raise Untrusted(f"{where}: TLS failed: {_root(error)}") from error
    except requests.exceptions.ConnectTimeout as error:
        raise SourceUnavailable(f"{where}: no connection in time") from error
    except (requests.exceptions.Timeout, ReadTimeoutError) as error:
        raise SourceTimeout(f"{where}: no answer in time") from error
    except ValueError:
        # Not chained: the cause quotes the header, and headers carry secrets.
        raise SourceRefused(f"{where}: a header, token or address has signs that HTTP does not allow") from None
    except TooLarge as error:
        raise TooMuch(
            f"{where}: the answer is larger than {error.args[0] >> 20} MiB; ask for less (queries.namespaces), or "
            "raise prometheus.most_answer_mib"
        ) from error
    except (requests.exceptions.RequestException, HTTPError, OSError) as error:  # also damaged records of TLS
        way = PROXY if isinstance(error, requests.exceptions.ProxyError) else ""
        raise SourceUnavailable(f"{where}: {way}{_root(error)}") from error


def body_of(response: requests.Response, max_bytes: int) -> bytes:
    """The body of a response. Raises TooLarge where it has more than `max_bytes` bytes."""
    body = bytearray()
    while chunk := response.raw.read1(_CHUNK, decode_content=True):
        body += chunk
        if len(body) > max_bytes:
            response.close()
            raise TooLarge(max_bytes)
    return bytes(body)


def understood(response: requests.Response, body: bytes, where: str) -> QueryAnswer:
    """Return the answer in a response; raises when there is none. Its samples are decoded later."""
    if response.status_code != requests.codes.ok:
        raise _refusal(response, body, where)
    try:
        return answer_of(body)
    except MalformedAnswer as error:
        raise SourceRefused(
            f"{where}: status 200, but not an answer of the Prometheus API ({error}): {_quoted(response, body)}"
        ) from error


def _refusal(response: requests.Response, body: bytes, where: str) -> SourceUnavailable | SourceRefused:
    status = response.status_code
    kind = _KINDS.get(status, SourceRefused)
    if response.is_redirect:
        target = shown_url(response.headers["Location"])
        return SourceRefused(f"{where}: status {status}, redirected to {target}; state the final address as url")
    if status in _DENIED:
        remedy = f"; {_TENANT}" if _NO_TENANT in body else ""
        return Denied(f"{where}: status {status}: {_quoted(response, body)}{remedy}")
    verdict = verdict_of(body)
    if verdict is None:
        return kind(f"{where}: status {status}: {_quoted(response, body)}")
    message = f"{where}: status {status}, {verdict.kind}: {_cut(masked(verdict.message, response.request.headers))}"
    if verdict.kind == "timeout" or any(phrase in verdict.message for phrase in _TOO_MANY):
        return TooMuch(message)
    return kind(message)


def _quoted(response: requests.Response, body: bytes) -> str:
    text = masked(body[:_SEARCHED_BYTES].decode(errors="replace"), response.request.headers)
    return repr(_cut(text[: 4 * _QUOTED_LENGTH])) if body else "an empty body"


def _cut(text: str) -> str:
    printable = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return printable if len(printable) <= _QUOTED_LENGTH else printable[:_QUOTED_LENGTH] + "…"


def _root(error: BaseException) -> str:
    """The innermost reason, without the objects and addresses that the layers above wrap around it."""
    while isinstance(deeper := error.__cause__ or error.__context__, (OSError, HTTPError)):
        error = deeper
    return _cut(getattr(error, "strerror", None) or str(error)) or type(error).__name__
