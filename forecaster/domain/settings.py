"""What settings are made of: sections, and durations as Prometheus and Kubernetes write them: `90s`, `1h30m`, `14d`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from forecaster.domain.amounts import duration_text


class Section(BaseModel):
    """A frozen record that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_DURATION_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])", re.ASCII)
_WHOLE_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[dhms]))+", re.ASCII)


def parse_duration(value: object) -> object:
    """A duration of text like `1h30m`; a bare `0` is one, too. Other types pass, for pydantic to judge.

    Raises:
        ValueError: text that is no duration.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text == "0":
        return timedelta(0)
    if not _WHOLE_DURATION.fullmatch(text):
        raise ValueError("must be a duration like 90s, 5m, 1h30m or 14d")
    try:
        return timedelta(
            seconds=sum(float(amount) * _DURATION_UNITS[unit] for amount, unit in _DURATION_PART.findall(text))
        )
    except OverflowError:
        raise ValueError("must be a duration of less than 2.7 million years") from None


Duration = Annotated[timedelta, BeforeValidator(parse_duration), PlainSerializer(duration_text, when_used="json")]
