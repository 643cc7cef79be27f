"""One Prometheus over HTTP: the thin layer between questions and answers, with retries and identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Self

import requests
from prometheus_api_client import PrometheusConnect
from requests.adapters import HTTPAdapter
from requests.auth import HTTPBasicAuth
from urllib3.exceptions import ConnectTimeoutError, InvalidHeader, MaxRetryError, NameResolutionError, ReadTimeoutError
from urllib3.util.retry import Retry

from forecaster.domain.amounts import duration_text
from forecaster.errors import SourceRefused, SourceTimeout, SourceUnavailable, shown_url
from forecaster.kube.connections import timed
from forecaster.sources.identity import PERMISSIONS, BearerAuth, cloud_identity, is_local
from forecaster.sources.wire import Denied, Query, QueryAnswer, body_of, facts_of, translated, understood

if TYPE_CHECKING:
    from requests import PreparedRequest
    from urllib3.response import BaseHTTPResponse

    from forecaster.sources.settings import PrometheusSettings

_NO_CACHE = {"nocache": "1"}
"""Without this parameter VictoriaMetrics hides the last 30 seconds, and so the latest minute; others ignore it."""
MAX_SKEW, PRESENT = 120.0, 300.0
"""Seconds by which the server's clock may differ from ours, in questions about the latest seconds by our clock."""
NO_POST = frozenset({403, 405, 501})  # of what takes questions in the address only, or lets its callers `get` alone
IMPATIENT = 1 / 3
"""Share of the time for an answer after a question without one: a server that stands still ends no cycle's minute."""


class PrometheusClient(PrometheusConnect):  # type: ignore[misc]  # the library has no types
    """`PrometheusConnect` with queries that are sent as forms, decoded late and limited in time."""

    def __init__(self, settings: PrometheusSettings) -> None:
        super().__init__(
            url=settings.url,
            headers={name: value.get_secret_value() for name, value in settings.headers.items()},
            auth=identity(settings),
            session=_session(settings),
        )
        self._session.mount(self.url, timed(HTTPAdapter(max_retries=query_retry(settings))))
        self._address = shown_url(self.url)
        self._permission = PERMISSIONS.get(settings.identity, "")
        self._settings, self._max_bytes, self._method = settings, settings.most_answer_mib << 20, "POST"
        self.silent = False  # whether the last question had no answer in time: the next one has a part of the time

    def ask(self, question: Query) -> QueryAnswer:
        """Send one question and decode its answer.

        Raises `SourceUnavailable` when no answer comes in time, `TooMuch` when a smaller question may be answered, and
        `SourceRefused` for everything else that is no answer.
        """
        patience = self._settings.read_timeout_seconds * (IMPATIENT if self.silent else 1.0)
        where, self.silent = self.where(question.name), False
        try:
            with translated(where):
                form = {**question.form, **_NO_CACHE, "timeout": f"{max(patience - 1, patience / 2):.3f}"}
                response = self._sent(self._method, question.path, patience, form)
                if response.status_code in NO_POST and response.request.method == "POST":
                    response.close()
                    response = self._sent("GET", question.path, patience, form)
                    self._method = "POST" if response.status_code in NO_POST else "GET"
                body = body_of(response, self._max_bytes)
            _compare_clocks(question, response.headers.get("Date", ""), where)
            return understood(response, body, where)
        except SourceTimeout:
            self.silent = True
            raise
        except Denied as error:
            raise Denied("; ".join(filter(None, (str(error), self._permission)))) from error

    def where(self, name: str) -> str:
        """Return the name of a query and the address, for messages."""
        return f"query {name!r} to {self._address}"

    def status(self, topic: str) -> dict[str, str]:
        """Return the server's answer under /api/v1/status; empty where it has none, as Thanos and Mimir."""
        with translated(self.where(f"status {topic}")):
            response = self._sent("GET", f"/api/v1/status/{topic}", self._settings.read_timeout_seconds)
            return facts_of(body_of(response, self._max_bytes)) if response.ok else {}

    def _sent(self, verb: str, path: str, patience: float, form: Mapping[str, str] | None = None) -> requests.Response:
        return self._session.request(  # type: ignore[no-any-return]
            verb,
            self.url + path,
            **{"data" if verb == "POST" else "params": form},
            headers={**self.headers, "Accept-Encoding": "identity"},
            auth=self.auth,
            verify=self._session.verify,  # a session's own is overruled by REQUESTS_CA_BUNDLE
            timeout=(self._settings.connect_timeout_seconds, patience),
            allow_redirects=False,
            stream=True,
        )


def _compare_clocks(question: Query, stated: str, where: str) -> None:
    """Refuse an answer about the present from a server with another clock: its present is another time."""
    now, instant = time(), float(question.form.get("end") or question.form.get("time") or 0.0)
    with suppress(ValueError, TypeError, OverflowError):
        ahead = parsedate_to_datetime(stated).timestamp() - now
        if abs(ahead) > MAX_SKEW and abs(instant - now) <= PRESENT:
            differs = f"{duration_text(timedelta(seconds=round(abs(ahead))))} {'ahead of' if ahead > 0 else 'behind'}"
            raise SourceUnavailable(f"{where}: its clock is {differs} this machine's; run a time service on both")


def _session(settings: PrometheusSettings) -> requests.Session:
    session = requests.Session()
    session.trust_env = not is_local(settings.url)  # a proxy of the environment would look for it on its own host
    session.verify = False if settings.insecure_skip_verify else str(settings.ca_file or "") or True
    if settings.client_certificate_file:
        key = settings.client_key_file or settings.client_certificate_file
        session.cert = (str(settings.client_certificate_file), str(key))
    return session


_PASSING = frozenset({429, 502, 503, 504})

LONGEST_WAIT = 5.0
"""Longest `Retry-After`, in seconds, that is waited for within a cycle: two of them leave most of the default time-out
to the answer. After a longer one the next cycle queries again."""


class QueryRetry(Retry):
    """Retries queries for which a retry can help: queries change nothing, so POST is as safe as GET.

    Where the server says when (`Retry-After` with 429 or 503, as limits of Mimir and of gateways do), then, if that is
    soon. Not worth it: an error in JSON without such a time, which is the server's verdict on this very query and would
    only cost another full evaluation, and a read timeout, because a server that slow would be slower with the same
    question twice. The system repeats its packets within the time for a connection and a name by itself.
    """

    def increment(
        self, *where: Any, response: BaseHTTPResponse | None = None, error: Exception | None = None, **more: Any
    ) -> Self:
        """Count an attempt, or raise when there are no more; `where` has the method and the URL."""
        if isinstance(error, ReadTimeoutError):
            raise error
        in_vain = isinstance(error, (ConnectTimeoutError, NameResolutionError))
        if in_vain or (response is not None and not self._retryable(response)):
            raise MaxRetryError(more["_pool"], where[1], error)
        return super().increment(where[0], where[1], response, error, **more)

    def _retryable(self, response: BaseHTTPResponse) -> bool:
        stated = self.get_retry_after(response)
        if stated is not None:
            return stated <= LONGEST_WAIT
        return "json" not in response.headers.get("Content-Type", "")

    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        """Return the seconds until the server wants the next request; None where it does not say, or not legibly."""
        try:
            return super().get_retry_after(response)
        except (InvalidHeader, ValueError, OverflowError):
            return None


def query_retry(settings: PrometheusSettings) -> QueryRetry:
    """Return the attempts and pauses of the settings."""
    return QueryRetry(
        total=settings.retries,
        backoff_factor=settings.retry_backoff_seconds,
        status_forcelist=_PASSING,
        allowed_methods=None,
        raise_on_status=False,
        redirect=False,
        respect_retry_after_header=True,
    )


def secret_in(file: Path) -> str:
    """The present content of a file, without surrounding white space.

    Raises:
        SourceRefused: it cannot be read; a person must look.
    """
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise SourceRefused(f"cannot read the secret file {file}: {reason}") from error


def anonymous(request: PreparedRequest) -> PreparedRequest:
    """Leave the request as it is. Without an authentication requests would look for one in the user's .netrc."""
    return request


def identity(settings: PrometheusSettings) -> Callable[[PreparedRequest], PreparedRequest]:
    """Return the authentication that the settings ask for."""
    if settings.identity:
        return cloud_identity(settings.identity, settings.url)
    if settings.bearer_token_file:
        return BearerAuth(partial(secret_in, settings.bearer_token_file))
    if file := settings.password_file:
        return lambda request: HTTPBasicAuth(settings.username, secret_in(file))(request)  # noqa: PLW0108  read each time
    return anonymous
