"""The seam to statsmodels: its warnings kept quiet, its errors turned into a reason, one series after the other.

statsmodels raises what its optimisers and linear algebra raise; nothing of it leaves the files that call it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Found = TypeVar("Found")
Asked = ParamSpec("Asked")
LIBRARY_ERRORS = (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class Failed:
    """The library could not fit a series, and why."""

    reason: str


def attempted(name: str, fit: Callable[Asked, Found], *args: Asked.args, **kwargs: Asked.kwargs) -> Found | Failed:
    """What `fit` gives, or why the library failed `name`."""
    if find_spec("statsmodels") is None:
        return Failed(f"{name} needs statsmodels: pip install 'kube-forecaster[models]'; the last value is held")
    import statsmodels.tools.sm_exceptions  # noqa: F401, PLC0415  it sets filters when first imported; ours come after

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return fit(*args, **kwargs)
    except LIBRARY_ERRORS as error:
        return Failed(f"{name} could not be fitted ({type(error).__name__}: {error}); the last value is held")


def failures(keys: Sequence[str], found: Sequence[object]) -> dict[str, str]:
    """Reason per series for which the library failed."""
    return {key: one.reason for key, one in zip(keys, found, strict=True) if isinstance(one, Failed)}
