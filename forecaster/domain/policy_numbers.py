"""Numbers of a horizontal policy, as their fields declare them: column, range, slider and search follow from the field.

A field with `Decides` among its annotations is such a number. Its type, range, default and meaning come from the field
itself; `Decides` adds the rule that reads it and the values that `tune` tries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from math import inf, nan
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.settings import Decides


class PolicyNumber(NamedTuple):
    """One number of a policy. Durations are seconds; a number that is not stated is NaN."""

    name: str
    kind: type
    """float, int or timedelta."""
    default: float
    lowest: float
    highest: float
    open: bool
    """Whether the lowest number itself is out of range."""
    decides: Decides

    @property
    def unit(self) -> str:
        """Unit of the column."""
        return self.decides.unit or {timedelta: "s", int: "replicas"}.get(self.kind, "ratio")

    def value(self, number: float) -> float | int | timedelta:
        """Return this number in the type of the setting."""
        return timedelta(seconds=number) if self.kind is timedelta else self.kind(number)


@cache
def policy_numbers() -> Mapping[str, PolicyNumber]:
    """Return every number of a horizontal policy by the name of its setting, in the order of the fields."""
    return {
        name: _number(name, field, note)
        for name, field in HorizontalPolicy.model_fields.items()
        for note in field.metadata
        if isinstance(note, Decides)
    }


@cache
def stated_numbers() -> tuple[str, ...]:
    """Return the numbers that a policy alone decides, without those that an HPA or a measurement states, too."""
    return tuple(name for name, number in policy_numbers().items() if not number.decides.resolved)


def as_number(value: float | timedelta | None) -> float:
    """A setting as its column has it.

    >>> as_number(timedelta(minutes=5)), as_number(3), as_number(None)
    (300.0, 3.0, nan)
    """
    if value is None:
        return nan
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _number(name: str, field: FieldInfo, decides: Decides) -> PolicyNumber:
    bounds = {kind: as_number(bound) for kind, bound in bounds_of(field)}
    kind = next(kind for kind in (timedelta, int, float) if kind in value_types(field.annotation))
    return PolicyNumber(
        name=name,
        kind=kind,
        default=as_number(field.default),
        lowest=bounds.get("ge", bounds.get("gt", -inf)),
        highest=bounds.get("le", bounds.get("lt", inf)),
        open="gt" in bounds,
        decides=decides,
    )


def bounds_of(field: FieldInfo) -> Iterator[tuple[str, Any]]:
    """Yield the bounds of a field and of the parts of its type, as in `Annotated[int, Field(ge=1)] | None`."""
    nested = [note for part in get_args(field.annotation) for note in getattr(part, "__metadata__", ())]
    for note in (*field.metadata, *(each for group in nested for each in getattr(group, "metadata", (group,)))):
        for kind in ("ge", "gt", "le", "lt"):
            if (bound := getattr(note, kind, None)) is not None:
                yield kind, bound


def value_types(annotation: Any) -> tuple[Any, ...]:
    """Return the types that a value may have: the parts of a union, without their annotations.

    >>> value_types(Annotated[int, "of pods"] | None)
    (<class 'int'>, <class 'NoneType'>)
    """
    if get_origin(annotation) is Annotated:
        return value_types(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        return tuple(kind for part in get_args(annotation) for kind in value_types(part))
    return (annotation,)
