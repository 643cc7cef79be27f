"""Which failed requests are sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from urllib3.exceptions import MaxRetryError, ReadTimeoutError
from urllib3.util.retry import Retry

if TYPE_CHECKING:
    from types import TracebackType

    from urllib3.connectionpool import ConnectionPool
    from urllib3.response import BaseHTTPResponse

    from forecaster.sources.settings import PrometheusSettings

_PASSING = frozenset({429, 502, 503, 504})


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


def patience(settings: PrometheusSettings) -> Patience:
    """As many attempts, with such pauses, as the settings say."""
    return Patience(
        total=settings.retries,
        backoff_factor=settings.retry_backoff_seconds,
        status_forcelist=_PASSING,
        allowed_methods=None,
        raise_on_status=False,
        redirect=False,
        respect_retry_after_header=False,
    )
