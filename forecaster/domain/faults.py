"""Faults of a setting's value, in the words of settings files and of the API server's own rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from forecaster.domain.amounts import duration_text
from forecaster.errors import nearest

if TYPE_CHECKING:
    from pydantic import ValidationError

UNKNOWN_SETTING = "no such setting"
BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
TYPE_WORDS = {
    "bool": "true or false",
    "dict": "a section, with its settings below it",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "missing": "stated",
    "model": "a section, with its settings below it",
    "string": "a text",
    "tuple": "a list",
}
"""Words for the first word of pydantic's error type."""
OF_A_KIND = ("_type", "_parsing", "_from_float", "missing")
TIMEDELTA = re.compile(r"datetime\.timedelta\(((?:\w+=-?\d+(?:, )?)*)0?\)")
QUOTED = re.compile(r"'([^']*)'")
PERCENT, MIN_PERCENT = 100, 10
"""Smaller numbers may be meant otherwise."""
INPUT_SHOWN_MAX = 40
"""Characters of a value that are repeated."""


def sentences(error: ValidationError) -> Iterator[str]:
    """`horizontal.quantile is 95: must be at most 0.99` for each fault."""
    for fault in error.errors(include_url=False):
        where = ".".join(str(part) for part in fault["loc"])
        value = fault.get("input")
        given = f" is {str(value)[:INPUT_SHOWN_MAX]!r}" if isinstance(value, str | int | float) else ""
        yield f"{where}{given}: {allowed(fault)}" if where else allowed(fault)


def allowed(fault: Mapping[str, Any]) -> str:
    """Return the allowed value, with the right spelling where it can be guessed; `fault` is one of pydantic."""
    kind, message, value, context = fault["type"], fault["msg"], fault.get("input"), fault.get("ctx") or {}
    if kind == "extra_forbidden":
        return f"{UNKNOWN_SETTING}; see docs/configure.md for those there are"
    if kind in {"literal_error", "enum"}:
        return _one_of(QUOTED.findall(message), value)
    for bound, word in BOUNDS.items():
        if bound in context:
            return f"must be {word} {_bound(context[bound])}{_as_ratio(value, context)}"
    if kind.endswith(OF_A_KIND) and (expected := TYPE_WORDS.get(kind.partition("_")[0])):
        return f"must be {expected}"
    return str(message).removeprefix("Value error, ").replace("Input should be", "must be", 1)


def _one_of(there: Iterable[str], value: object) -> str:
    names = list(there)
    near = nearest(value, names, 1) if isinstance(value, str) else []
    return f"must be one of {', '.join(names)}" + (f"; did you mean {near[0]}?" if near else "")


def _bound(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else TIMEDELTA.sub(_duration, str(value))


def _duration(written: re.Match[str]) -> str:
    """Bounds of durations come as Python writes them."""
    parts = (part.split("=") for part in written[1].split(", ") if part)
    return duration_text(timedelta(**{name: int(amount) for name, amount in parts}))


def _as_ratio(value: object, context: Mapping[str, Any]) -> str:
    """The ratio where percent were stated."""
    most = context.get("le", context.get("lt"))
    try:
        percent = float(value)  # type: ignore[arg-type]  # what is no number is not one here either
    except (TypeError, ValueError, OverflowError):
        return ""
    meant = isinstance(most, int | float) and most <= 1 and MIN_PERCENT <= percent <= PERCENT * most
    return f"; for {percent:g} % write {percent / PERCENT:g}" if meant else ""
