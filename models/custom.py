"""Models of one's own: a spec named by its import path, checked against the contract before anything relies on it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from .checks import check_model
from .errors import ContractError, QuestionError
from .named import parsed_name, with_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .model import Model


@cache
def imported(path: str) -> Model:
    """The model that `package.module:Name` names: a class or function without required arguments, or a spec.

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
    _check(path, cast("Model", model))
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


def _made(path: str, found: object, settings: Mapping[str, object]) -> object:
    if not callable(found):
        if settings:
            raise QuestionError(f"{path!r} names a model that is made already; name its class to give it settings")
        return found
    try:
        return with_settings(path, found, settings)
    except QuestionError:
        raise
    except Exception as error:  # as above
        cause = f"{type(error).__name__}: {error}"
        raise ContractError(
            f"{path} cannot be made without arguments ({cause}); give every setting a default"
        ) from error


def _check(path: str, model: Model) -> None:
    try:
        check_model(model)
    except ContractError:
        raise
    except Exception as error:  # a model that raises breaks the contract; say which one
        cause = f"{type(error).__name__}: {error}"
        raise ContractError(
            f"{path} breaks the contract: it raises {cause}; models.checks.check_model shows where"
        ) from error
