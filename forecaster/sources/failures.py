"""What it means when a question fails: errors of the network and answers that are none, as errors of the source.

    SourceRefused
    ├── Denied     the server does not accept who we are
    └── TooMuch    the server would answer a smaller question of the same kind

Messages name the query, the address and what came instead; never a secret, and never more than a line of a body.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import requests
from urllib3.exceptions import HTTPError

from forecaster.errors import SourceRefused, SourceUnavailable
from forecaster.sources import wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.sources.wire import Answer

_SHOWN = 200
"""Characters of an answer that a message may quote."""

_UNAVAILABLE = {429, 500, 502, 503, 504}
_DENIED = {401, 403, 407}
_TOO_MANY = ("too many samples", "exceeded maximum resolution")


class TooMuch(SourceRefused):
    """The server would answer a smaller question of the same kind."""


class Denied(SourceRefused):
    """The server does not accept who we are."""


@contextmanager
def translated(name: str, url: str) -> Iterator[None]:
    """Errors of the network, met while asking `name`, as errors of the source."""
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


def understood(response: requests.Response, name: str, url: str) -> Answer:
    """The answer in a response; raises when there is none. The samples in it are decoded later."""
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
    if verdict.kind == "timeout" or any(phrase in verdict.message for phrase in _TOO_MANY):
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
