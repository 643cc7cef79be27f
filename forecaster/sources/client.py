"""One Prometheus over HTTP: the thin layer between questions and answers."""

from __future__ import annotations

from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit, urlunsplit

import requests
from prometheus_api_client import PrometheusConnect
from urllib3.exceptions import HTTPError, MaxRetryError, ReadTimeoutError
from urllib3.util.retry import Retry

from forecaster.errors import SourceRefused, SourceUnavailable
from forecaster.sources import wire
from forecaster.sources.authentication import identity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta
    from types import TracebackType

    from urllib3.connectionpool import ConnectionPool
    from urllib3.response import BaseHTTPResponse

    from forecaster.sources.settings import PrometheusSettings
    from forecaster.sources.wire import Answer, Question

_SHOWN = 200
"""Characters of an answer that a message may quote."""

_UNAVAILABLE = {429, 500, 502, 503, 504}
_DENIED = {401, 403, 407}
_PASSING = frozenset({429, 502, 503, 504})
_TOO_MANY_SAMPLES = ("too many samples", "exceeded maximum resolution")


class TooMuch(SourceRefused):
    """The server would answer a smaller question of the same kind."""


class Denied(SourceRefused):
    """The server does not accept who we are."""


class Patience(Retry):
    """Asks again what is worth asking again: queries change nothing, so POST is as safe as GET.

    Not worth it: an error in JSON, which is the server's verdict on this very query and would only cost another full
    evaluation, and a read timeout, because a server that slow would be slower with the same question twice.
    """

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        """One attempt fewer, or the end of patience."""
        if isinstance(error, ReadTimeoutError):
            raise error
        if _pool and response is not None and "json" in response.headers.get("Content-Type", ""):
            raise MaxRetryError(_pool, url or "")
        return super().increment(method, url, response, error, _pool, _stacktrace)


class PrometheusClient(PrometheusConnect):  # type: ignore[misc]  # the library has no types
    """`PrometheusConnect` with queries that are sent as forms, decoded late and limited in time."""

    def __init__(self, settings: PrometheusSettings) -> None:
        super().__init__(
            url=settings.url,
            headers={name: value.get_secret_value() for name, value in settings.headers.items()},
            retry=_patience(settings),
            auth=identity(settings),
            session=_session(settings),
            timeout=(settings.connect_timeout_seconds, settings.read_timeout_seconds),
            method="POST",
        )
        self._server_timeout = f"{max(settings.read_timeout_seconds - 1, settings.read_timeout_seconds / 2):.3f}"

    def custom_query(self, query: str, at: datetime, name: str = "query") -> Answer:
        """Every series of `query` at one instant."""
        return self.ask(wire.at_instant(name, query, at))

    def custom_query_range(
        self, query: str, start: datetime, end: datetime, step: timedelta, name: str = "query"
    ) -> Answer:
        """Every series of `query` over a range, both ends included."""
        return self.ask(wire.over_range(name, query, start, end, step))

    def ask(self, question: Question) -> Answer:
        """Send one question and decode its answer.

        Raises `SourceUnavailable` when nobody answers in time, `TooMuch` when a smaller question may be answered, and
        `SourceRefused` for everything else that is no answer.
        """
        with _translated(question.name, self.url):
            response = self._post(question)
        return _understood(response, question.name, self.url)

    def status(self, topic: str) -> dict[str, str]:
        """What the server says of itself under /api/v1/status; empty where it says nothing, as Thanos and Mimir do."""
        with _translated(f"status {topic}", self.url):
            response = self._session.get(
                f"{self.url}/api/v1/status/{topic}",
                headers=self.headers,
                auth=self.auth,
                verify=self._session.verify,
                timeout=self._timeout,
                allow_redirects=False,
            )
        return wire.facts_of(response.content) if response.ok else {}

    def _post(self, question: Question) -> requests.Response:
        return self._session.post(  # type: ignore[no-any-return]
            self.url + question.path,
            data={**question.form, "timeout": self._server_timeout},
            headers={**self.headers, "Accept-Encoding": "identity"},
            auth=self.auth,
            verify=self._session.verify,  # a session's own is overruled by REQUESTS_CA_BUNDLE
            timeout=self._timeout,
            allow_redirects=False,
        )


def _patience(settings: PrometheusSettings) -> Patience:
    return Patience(
        total=settings.retries,
        backoff_factor=settings.retry_backoff_seconds,
        status_forcelist=_PASSING,
        allowed_methods=None,
        raise_on_status=False,
        redirect=False,
        respect_retry_after_header=False,
    )


def _session(settings: PrometheusSettings) -> requests.Session:
    session = requests.Session()
    session.trust_env = not _on_loopback(settings.url)  # a proxy of the environment would look for it on its own host
    session.verify = False if settings.insecure_skip_verify else str(settings.ca_file or "") or True
    if settings.client_certificate_file:
        key = settings.client_key_file or settings.client_certificate_file
        session.cert = (str(settings.client_certificate_file), str(key))
    return session


def _on_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _translated(name: str, url: str) -> Iterator[None]:
    """Errors of the network as errors of the source."""
    where = f"query {name!r} to {shown_url(url)}"
    try:
        yield
    except requests.exceptions.SSLError as error:
        raise SourceRefused(f"{where}: TLS failed: {_root(error)}") from error
    except requests.exceptions.ConnectTimeout as error:
        raise SourceUnavailable(f"{where}: no connection in time") from error
    except requests.exceptions.Timeout as error:
        raise SourceUnavailable(f"{where}: no answer in time") from error
    except ValueError:
        # Not chained: the cause quotes the header, and headers carry secrets.
        raise SourceRefused(f"{where}: a header, token or address has signs that HTTP does not allow") from None
    except (requests.exceptions.RequestException, OSError) as error:
        raise SourceUnavailable(f"{where}: {_root(error)}") from error


def _understood(response: requests.Response, name: str, url: str) -> Answer:
    where = f"query {name!r} to {shown_url(url)}"
    if response.status_code != requests.codes.ok:
        raise _refusal(response, where)
    try:
        return wire.answer_of(response.content)
    except wire.MalformedAnswer as error:
        raise SourceRefused(
            f"{where}: status 200, but not an answer of the Prometheus API ({error}): {_quoted(response)}"
        ) from error


def _refusal(response: requests.Response, where: str) -> SourceUnavailable | SourceRefused:
    status = response.status_code
    if response.is_redirect:
        target = shown_url(response.headers["Location"])
        return SourceRefused(f"{where}: status {status}, redirected to {target}; state the final address as url")
    if status in _DENIED:
        return Denied(f"{where}: status {status}: {_quoted(response)}")
    verdict = wire.verdict_of(response.content)
    if verdict is None:
        kind = SourceUnavailable if status in _UNAVAILABLE else SourceRefused
        return kind(f"{where}: status {status}: {_quoted(response)}")
    message = f"{where}: status {status}, {verdict.kind}: {_cut(verdict.message)}"
    if verdict.kind == "timeout" or any(phrase in verdict.message for phrase in _TOO_MANY_SAMPLES):
        return TooMuch(message)
    return SourceUnavailable(message) if status in _UNAVAILABLE else SourceRefused(message)


def shown_url(url: str) -> str:
    """An address fit for messages: without credentials and query, which may carry secrets."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _quoted(response: requests.Response) -> str:
    return repr(_cut(response.content[: 4 * _SHOWN].decode(errors="replace"))) if response.content else "an empty body"


def _cut(text: str) -> str:
    printable = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return printable if len(printable) <= _SHOWN else printable[:_SHOWN] + "…"


def _root(error: BaseException) -> str:
    """The innermost reason, without the objects and addresses that the layers above wrap around it."""
    while isinstance(deeper := error.__cause__ or error.__context__, (OSError, HTTPError)):
        error = deeper
    return _cut(str(error)) or type(error).__name__
