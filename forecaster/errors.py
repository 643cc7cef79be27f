"""The errors that callers may meet.

    ForecasterError
    ├── ConfigError        the configuration is wrong; `faults` names every one of them
    ├── SourceError        history could not be read
    │   ├── SourceUnavailable   no answer: worth asking again
    │   │   └── SourceTimeout       there is a server, and no answer in time: one question may be too much for it
    │   └── SourceRefused       an answer that says no, or that is no answer: a person must look
    ├── StoreError         something could not be kept; computing goes on
    └── UnknownName        a name that was asked for matches nothing; the text says which are near

What is expected to happen (no data, stale, too short) is a value with a reason, never one of these.
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit


class ForecasterError(Exception):
    """Root of everything raised on purpose here; its text is fit for a user."""


TRY_DOCTOR = "`forecaster doctor` tries each thing that is needed and says what to do."
OWN_PACKAGES = ("forecaster", "models", "forecaster_models")
"""Packages whose lines a report names."""


def unexpected(error: Exception) -> str:
    """Describe an error that was not raised on purpose: its text, and our line behind it."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, ForecasterError):
        return text
    places = ((Path(frame.filename).parts, frame.lineno) for frame in traceback.extract_tb(error.__traceback__))
    own_places = [f"{'/'.join(parts[-2:])}:{line}" for parts, line in places if set(OWN_PACKAGES) & set(parts[-3:-1])]
    return f"{text} ({own_places[-1]})" if own_places else text


WHOLE_FILE = "(file)"
"""Path of a fault that is not one of a setting."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a configuration; its value is Ellipsis where a whole section or list is meant."""

    path: str
    value: object
    allowed: str

    def __str__(self) -> str:
        if self.path == WHOLE_FILE:
            return self.allowed
        return f"{self.path}: {'' if self.value is ... else f'{self.value!r}: '}{self.allowed}"


class ConfigError(ForecasterError):
    """Every fault of a configuration at once."""

    def __init__(self, origin: str, faults: Sequence[Fault]) -> None:
        self.origin = origin
        self.faults = tuple(faults)
        whole = [fault.path for fault in self.faults] == [WHOLE_FILE]
        lines = f" {faults[0]}" if whole else "".join(f"\n  {fault}" for fault in self.faults)
        super().__init__(f"{origin}:{lines}")


class SourceError(ForecasterError):
    """History could not be read."""


class SourceUnavailable(SourceError):
    """No answer, or not in time."""


class SourceTimeout(SourceUnavailable):
    """There was no answer in time, of a server that accepts connections."""


class SourceRefused(SourceError):
    """The answer was a refusal or not what the protocol promises."""


class StoreError(ForecasterError):
    """A file or database that could not be written or read."""


MAX_NAMED = 10
MIN_SIMILARITY = 0.6
"""Similarity above which a name is suggested (`difflib`): the default of its `get_close_matches`."""


class UnknownName(ForecasterError):
    """A name that matches nothing, with those that are near it, or else the first of those there are."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        there = sorted(known)
        near = nearest(name, there)
        if near:
            remedy = f"; did you mean {' or '.join(near)}?"
        else:
            more = f" and {len(there) - MAX_NAMED} more" if len(there) > MAX_NAMED else ""
            remedy = f"; there are {', '.join(there[:MAX_NAMED])}{more}" if there else f"; there are none. {TRY_DOCTOR}"
        super().__init__(f"no {kind} matches {name!r}{remedy}")


def shown_url(url: str) -> str:
    """An address fit for messages: without credentials and query, which may carry secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{url.partition('://')[0]}://…"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


OPEN_HEADERS = frozenset({"accept", "connection", "content", "host", "user"})
"""The first words of headers that carry no secret."""
MIN_SECRET_LENGTH = 6
"""Characters: what is shorter, such as the number of a tenant, is none."""


def masked(text: str, sent: Mapping[str, str | bytes]) -> str:
    """A server's words without the headers that it was sent: proxies that find fault with a request may repeat it."""
    own = [value for name, value in sent.items() if name.lower().partition("-")[0] not in OPEN_HEADERS]
    words = {word for value in own for word in _text(value).split() if len(word) >= MIN_SECRET_LENGTH}
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, "***")
    return text


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that are most like this one, also where only the part behind the last `/` or `.` was typed."""
    by_part: dict[str, str] = {}
    for known_name in known:
        by_part[known_name.lower()] = known_name
        by_part.setdefault(known_name.lower().replace(".", "/").rpartition("/")[2], known_name)
    typed = name.lower().strip("*")
    close = difflib.get_close_matches(typed, by_part, max(1, len(by_part)), MIN_SIMILARITY)
    alike = {part: difflib.SequenceMatcher(None, part, typed).ratio() for part in close}
    best = max(alike.values(), default=0.0)
    best_parts = [part for part in close if alike[part] >= best - 0.1]
    return list(dict.fromkeys(by_part[part] for part in best_parts))[:most]
