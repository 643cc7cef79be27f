"""Options in groups: a command takes a dataclass, and the command line has one option for each of its fields."""

from __future__ import annotations

import inspect
from dataclasses import fields
from functools import wraps
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its first parameter's type spelled out as options, before its own ones."""
    hints = get_type_hints(command, include_extras=True)
    first, *others = inspect.signature(command).parameters.values()
    group = hints[first.name]
    kinds, names = get_type_hints(group, include_extras=True), [one.name for one in fields(group)]
    spelled = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=kinds[one.name])
        for one in fields(group)
    ]
    own = [one.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[one.name]) for one in others]

    @wraps(command)
    def called(**given: object) -> None:
        command(group(**{name: given.pop(name) for name in names}), **given)

    called.__signature__ = Signature([*spelled, *own])  # type: ignore[attr-defined]  # what inspect, and so typer, reads
    called.__annotations__ = {one.name: one.annotation for one in (*spelled, *own)}
    return called
