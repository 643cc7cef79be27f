"""What settings are made of: sections, durations (`90s`, `1h30m`), amounts (`100m`, `64Mi`) as Kubernetes has them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from forecaster.domain.amounts import duration_text
from forecaster.domain.quantity import QuantityError, parse_quantity, right_spelling


class Section(BaseModel):
    """A frozen record that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


_DURATION_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])", re.ASCII)
DURATION_PATTERN = r"^(0|(\d+(\.\d+)?(ms|[dhms]))+)$"
"""For editors."""
_WHOLE_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[dhms]))+", re.ASCII)


def parse_duration(value: object) -> object:
    """A duration of text like `1h30m`; a bare `0` is one, too. Other types pass, for pydantic to judge.

    Raises:
        ValueError: text that is no duration, or a number without a unit: whether 3 are seconds or minutes is a guess.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and value:
        raise ValueError(f"a duration has a unit: {value:g}m for minutes, {value:g}s for seconds")
    if not isinstance(value, str):
        return timedelta(0) if value == 0 and not isinstance(value, bool) else value
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


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(duration_text, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN}),
]


def parse_amount(value: object) -> object:
    """A number, or text of a Kubernetes quantity such as `100m` or `64Mi`. Other types pass, for pydantic to judge.

    Raises:
        ValueError: text that is no quantity; with the spelling that was probably meant.
    """
    if not isinstance(value, str):
        return value
    try:
        return parse_quantity(value.strip()).as_float()
    except QuantityError as error:
        meant = right_spelling(value)
        raise ValueError(f"write {meant}" if meant else str(error)) from error


def parse_bytes(value: object) -> object:
    """The same for bytes, of which there are no parts.

    Raises:
        ValueError: as above, or `64m`, which are 0.064 bytes.
    """
    amount = parse_amount(value)
    if isinstance(value, str) and isinstance(amount, float) and 0 < amount < 1:
        raise ValueError(f"{value} are {amount:g} bytes; write {value.strip().rstrip('mun')}Mi for mebibytes")
    return amount


QUANTITY_PATTERN = r"^[+-]?[0-9.]+([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$"
_QUANTITY = WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": QUANTITY_PATTERN}]})
Amount = Annotated[float, BeforeValidator(parse_amount), _QUANTITY]
"""A number in the unit that its setting names; as text with the suffixes of Kubernetes."""
Bytes = Annotated[float, BeforeValidator(parse_bytes), _QUANTITY]
Positive = Annotated[Duration, Field(gt=timedelta(0))]
Ratio = Annotated[float, Field(gt=0, le=1)]
