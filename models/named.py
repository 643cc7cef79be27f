"""Names of models with their settings, as configuration has them: `nearest-day(nearest=4)`, `ours:Trees(depth=3)`."""

from __future__ import annotations

import ast
import re
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .errors import QuestionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

WITH_SETTINGS = re.compile(r"([^()]+)\((.*)\)", re.DOTALL)
Made = TypeVar("Made")


class ModelName(NamedTuple):
    """A model by its bare name, and the settings in which it differs from its defaults."""

    name: str
    settings: Mapping[str, object]


def parsed_name(text: str) -> ModelName:
    """Name and settings; the settings are literals, and nothing of them is run.

    Raises:
        QuestionError: the brackets hold something else than `name=literal`.
    """
    found = WITH_SETTINGS.fullmatch(text.strip())
    if found is None:
        return ModelName(text, {})
    try:
        return ModelName(found[1].strip(), dict(_literals(found[2])))
    except (SyntaxError, ValueError) as error:
        raise QuestionError(f"the settings of {text!r} cannot be read ({error}); write {found[1]}(days=5)") from error


def _literals(text: str) -> Iterator[tuple[str, object]]:
    call = ast.parse(f"f({text})", mode="eval").body
    if not isinstance(call, ast.Call) or call.args:
        raise ValueError("every setting has a name")
    for one in call.keywords:
        if one.arg is None:
            raise ValueError("every setting has a name")
        yield one.arg, ast.literal_eval(one.value)


def with_settings(text: str, make: Callable[..., Made], settings: Mapping[str, object]) -> Made:
    """What is made with these settings.

    Raises:
        QuestionError: there is no such setting, or it is of another type.
    """
    default = make() if settings else None
    if default is not None and is_dataclass(default):
        known = {one.name: getattr(default, one.name) for one in fields(default) if one.init and one.name != "name"}
        for name, value in settings.items():
            _check(text, name, value, known)
    return make(**settings)


def _check(text: str, name: str, value: object, known: Mapping[str, object]) -> None:
    if name not in known:
        raise QuestionError(f"{text!r}: there is no setting {name!r}; it has {', '.join(known) or 'none'}")
    usual = known[name]
    whole = isinstance(usual, float) and isinstance(value, int) and not isinstance(value, bool)
    if isinstance(usual, (bool, int, float, str)) and type(value) is not type(usual) and not whole:
        kind = type(usual).__name__
        raise QuestionError(f"{text!r}: {name} is a {kind}, by default {usual!r}, and {value!r} is none")
