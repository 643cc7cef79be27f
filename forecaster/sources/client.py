"""One Prometheus over HTTP: the thin layer between questions and answers."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import requests
from prometheus_api_client import PrometheusConnect

from forecaster.sources import wire
from forecaster.sources.authentication import identity
from forecaster.sources.failures import translated, understood
from forecaster.sources.patience import patience

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from forecaster.sources.settings import PrometheusSettings
    from forecaster.sources.wire import Answer, Question


class PrometheusClient(PrometheusConnect):  # type: ignore[misc]  # the library has no types
    """`PrometheusConnect` with queries that are sent as forms, decoded late and limited in time."""

    def __init__(self, settings: PrometheusSettings) -> None:
        super().__init__(
            url=settings.url,
            headers={name: value.get_secret_value() for name, value in settings.headers.items()},
            retry=patience(settings),
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
        with translated(question.name, self.url):
            response = self._post(question)
        return understood(response, question.name, self.url)

    def status(self, topic: str) -> dict[str, str]:
        """What the server says of itself under /api/v1/status; empty where it says nothing, as Thanos and Mimir do."""
        with translated(f"status {topic}", self.url):
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
