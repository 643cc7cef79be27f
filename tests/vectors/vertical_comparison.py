"""Comparisons of answers with the expectations of the vertical vectors; empty text means that they agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forecaster.domain.quantity import QuantityError, parse_quantity

Json = dict[str, Any]
Compare = Callable[[Any, Any], str]


@dataclass(frozen=True)
class Suite:
    """One kind of vectors: from the input of a case to our answer, and what counts as agreement."""

    answer: Callable[[Any], Any]
    compare: Compare


def exact(expected: object, answered: object) -> str:
    """Compare value and type; true is not 1."""
    same = expected == answered and isinstance(expected, bool) == isinstance(answered, bool)
    return "" if same else f"expected {expected!r}, got {answered!r}"


def relative(tolerance: float, absolute: float = 0.0) -> Compare:
    """Floats to a relative (and absolute) tolerance, all else exact; lists and maps item by item."""

    def leaf(expected: object, answered: object) -> str:
        if not isinstance(expected, float | int) or isinstance(expected, bool):
            return exact(expected, answered)
        if not isinstance(answered, float | int) or isinstance(answered, bool):
            return f"expected {expected!r}, got {answered!r}"
        near = math.isclose(expected, answered, rel_tol=tolerance, abs_tol=absolute)
        return "" if near else f"expected {expected!r}, got {answered!r}"

    return each(leaf)


def quantities(expected: object, answered: object) -> str:
    """Texts that are quantities by their number, all else exact; remarks as sets."""
    return each(_quantity)(expected, answered)


def as_set(expected: Sequence[Any], answered: Sequence[Any]) -> str:
    """Compare the members in any order."""
    return exact(sorted(expected), sorted(answered))


def each(leaf: Compare) -> Compare:
    """Go down lists and maps together; every key must be in both, and remarks are sets."""

    def compare(expected: object, answered: object, at: str = "") -> str:
        if isinstance(expected, Mapping):
            return _maps(compare, expected, answered, at)
        if isinstance(expected, list):
            return _lists(compare, expected, answered, at)
        wrong = leaf(expected, answered)
        return f"{at or 'answer'}: {wrong}" if wrong else ""

    return compare


def listed(compare: Compare) -> Compare:
    """Only the keys that the case expects, but all of those."""

    def only(expected: Json, answered: Json) -> str:
        return compare(expected, {key: value for key, value in answered.items() if key in expected})

    return only


def _maps(compare: Callable[..., str], expected: Mapping[str, Any], answered: object, at: str) -> str:
    if not isinstance(answered, Mapping) or set(expected) != set(answered):
        return f"{at or 'answer'}: expected {expected!r}, got {answered!r}"
    wrong = [compare(_sorted(key, expected), _sorted(key, answered), f"{at}.{key}".strip(".")) for key in expected]
    return "; ".join(filter(None, wrong))


def _lists(compare: Callable[..., str], expected: list[Any], answered: object, at: str) -> str:
    if not isinstance(answered, list | tuple) or len(expected) != len(answered):
        return f"{at or 'answer'}: expected {expected!r}, got {answered!r}"
    pairs = zip(expected, answered, strict=True)
    return "; ".join(filter(None, (compare(value, got, f"{at}[{i}]") for i, (value, got) in enumerate(pairs))))


def _sorted(key: str, holder: Mapping[str, Any]) -> object:
    """The value under a key; remarks sorted, also where they are listed by container."""
    value = holder[key]
    if key != "remarks" or value is None:
        return value
    return {name: sorted(names) for name, names in value.items()} if isinstance(value, Mapping) else sorted(value)


def _quantity(expected: object, answered: object) -> str:
    if not isinstance(expected, str) or not isinstance(answered, str):
        return exact(expected, answered)
    try:
        same = parse_quantity(expected).nano == parse_quantity(answered).nano
    except QuantityError:
        return exact(expected, answered)
    return "" if same else f"expected {expected!r}, got {answered!r}"
