"""Names of settings as objects of Kubernetes have them: `lead_time` is `leadTime`; values stay as they are."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_WORD = re.compile(r"_([a-z0-9])")
_NESTED = (dict, list)
_CAPITAL = re.compile(r"([A-Z])")


def camel(name: str) -> str:
    """The name of a setting in an object.

    >>> camel("scale_in_by_forecast")
    'scaleInByForecast'
    """
    return _WORD.sub(lambda found: found[1].upper(), name)


@lru_cache(maxsize=1024)  # the API server drops other names than those of the schema
def snake(name: str) -> str:
    """The setting of a name in an object.

    >>> snake("scaleInByForecast")
    'scale_in_by_forecast'
    """
    return _CAPITAL.sub(lambda found: f"_{found[1].lower()}", name)


def in_settings(value: Any) -> Any:
    """A value of an object in the names of the settings, at every depth."""
    if isinstance(value, dict):
        return {snake(key): in_settings(each) if isinstance(each, _NESTED) else each for key, each in value.items()}
    return [in_settings(each) for each in value] if isinstance(value, list) else value
