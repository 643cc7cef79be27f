"""Lists of recommendations: filters, pages, and the token that leads to the next page. Pure."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from forecaster.serving.problem import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forecaster.publish.table import TableEntry

FILTERS = ("namespace", "kind", "verdict", "reason")
LIMIT = 500
LIMIT_MAX = 5000
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Query:
    """What a list was asked for."""

    wanted: tuple[tuple[str, str], ...] = ()
    limit: int = LIMIT
    after: Key | None = None

    def accepts(self, entry: TableEntry) -> bool:
        """Does this row pass every filter?"""
        return all(getattr(entry, field) == value for field, value in self.wanted)


def parse_query(parameters: Mapping[str, str]) -> Query:
    """The query of a URL.

    Raises:
        ProblemError: an unknown parameter, or a value out of range.
    """
    unknown = sorted(set(parameters) - {*FILTERS, "limit", "continue"})
    if unknown:
        raise _bad(f"unknown parameter {unknown[0]!r}", f"Use {', '.join(FILTERS)}, limit or continue.")
    return Query(
        wanted=tuple((field, parameters[field]) for field in FILTERS if field in parameters),
        limit=_limit(parameters.get("limit", str(LIMIT))),
        after=_key(parameters["continue"]) if "continue" in parameters else None,
    )


def page(entries: Sequence[TableEntry], query: Query) -> tuple[list[TableEntry], str | None]:
    """The rows of one page and the token of the next, None on the last.

    The token names the last row, not a position: it stays good when the table is replaced between two pages.
    """
    start = 0 if query.after is None else bisect_right(entries, query.after, key=lambda entry: entry.key)
    found = _first(entries[start:], query, query.limit + 1)
    rows = found[: query.limit]
    return rows, _token(rows[-1].key) if len(found) > query.limit else None


def _first(entries: Iterable[TableEntry], query: Query, count: int) -> list[TableEntry]:
    found: list[TableEntry] = []
    for entry in entries:
        if query.accepts(entry):
            found.append(entry)
            if len(found) == count:
                break
    return found


def _limit(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= len(str(LIMIT_MAX)) and 1 <= int(text) <= LIMIT_MAX:
        return int(text)
    raise _bad(f"limit {text[:20]!r} is not allowed", f"Use a whole number from 1 to {LIMIT_MAX}.")


def _token(key: Key) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def _key(token: str) -> Key:
    try:
        raw = base64.urlsafe_b64decode(token.encode() + b"=" * (-len(token) % 4))
        key: Key = msgspec.json.decode(raw, type=Key)
    except (binascii.Error, msgspec.DecodeError, UnicodeEncodeError) as error:
        raise _bad("the continue token is not one of ours", "Start again without it.") from error
    return key


def _bad(detail: str, remedy: str) -> ProblemError:
    return ProblemError(HTTPStatus.BAD_REQUEST, detail, remedy)
