"""Names of models with their settings, as configuration has them: `nearest-day(nearest=4)`, `ours:Trees(depth=3)`.

A model of one's own is named by its import path, and checked against the contract before anything relies on it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import NamedTuple, TypeVar, cast

from .errors import ContractError, QuestionError
from .model import Model

LITERALS = (bool, int, float, str, tuple, list, dict, set, type(None))
"""Types of settings in brackets; other types, such as a calendar, can be given in Python only."""
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
    match = WITH_SETTINGS.fullmatch(text.strip())
    if match is None:
        return ModelName(text, {})
    try:
        return ModelName(match[1].strip(), dict(_literals(match[2])))
    except (SyntaxError, ValueError) as error:
        raise QuestionError(f"the settings of {text!r} cannot be read ({error}); write {match[1]}(days=5)") from error


def _literals(text: str) -> Iterator[tuple[str, object]]:
    call = ast.parse(f"f({text})", mode="eval").body
    if not isinstance(call, ast.Call) or call.args:
        raise ValueError("every setting has a name")
    for keyword in call.keywords:
        if keyword.arg is None:
            raise ValueError("every setting has a name")
        yield keyword.arg, ast.literal_eval(keyword.value)


def with_settings(text: str, make: Callable[..., Made], settings: Mapping[str, object]) -> Made:
    """Make a value with these settings.

    Raises:
        QuestionError: there is no such setting, or it is of another type.
    """
    default = make() if settings else None
    if default is not None and is_dataclass(default):
        names = [field.name for field in fields(default) if field.init and field.name != "name"]
        known = {name: value for name in names if isinstance(value := getattr(default, name), LITERALS)}
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


@cache
def imported(path: str) -> Model:
    """Return the model named `package.module:Name`: a class or function without required arguments, or a spec.

    `package.module:Name(days=5)` makes it with these settings.

    The module must be importable, so its folder is in PYTHONPATH or it is installed. Importing runs its code: the
    author of this setting is trusted like the author of the program. The contract is checked once for each process.

    Raises:
        QuestionError: the path is no path, its module does not import, or has no such name.
        ContractError: what it names cannot be made, is no model, or breaks a promise of `models.checks`.
    """
    bare, settings = parsed_name(path)
    model = _made(path, _named(bare), settings)
    missing = [name for name in ("name", "fit") if not hasattr(model, name)]
    if missing:
        raise ContractError(
            f"{path} is a {type(model).__name__} without {missing[0]!r}; a model has a name and fit(panel)"
        )
    from .checks import check_model  # noqa: PLC0415  only a model of one's own is checked

    check_model(cast("Model", model))
    return cast("Model", model)


def _named(path: str) -> object:
    module, _, name = path.partition(":")
    if not module or not name:
        raise QuestionError(f"{path!r} names no model; write it as package.module:Name")
    try:
        return getattr(import_module(module), name)
    except AttributeError as error:
        raise QuestionError(f"module {module!r} has no {name!r}; the model {path!r} needs it") from error
    except Exception as error:  # whatever a foreign module does while it is imported
        cause = f"{type(error).__name__}: {error}"
        raise QuestionError(
            f"the model {path!r} does not import ({cause}); is its folder in PYTHONPATH, are its packages installed?"
        ) from error


def _made(path: str, model: object, settings: Mapping[str, object]) -> object:
    if not callable(model):
        if settings:
            raise QuestionError(f"{path!r} names a model that is made already; name its class to give it settings")
        return model
    try:
        return with_settings(path, model, settings)
    except QuestionError:
        raise
    except Exception as error:  # as above
        cause = f"{type(error).__name__}: {error}"
        raise ContractError(
            f"{path} cannot be made without arguments ({cause}); give every setting a default"
        ) from error
