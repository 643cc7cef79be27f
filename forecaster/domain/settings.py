"""Parts of settings: sections, durations (`90s`, `1h30m`), amounts (`100m`, `64Mi`) as Kubernetes writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter, WithJsonSchema
from pydantic.fields import FieldInfo

from forecaster.domain.amounts import duration_text
from forecaster.domain.quantity import Quantity, QuantityError, QuantityFormat, parse_quantity, right_spelling
from forecaster.errors import nearest

if TYPE_CHECKING:
    from pydantic import ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Decides:
    """Rule that a number of a policy belongs to, as an annotation of its field (domain/policy_numbers.py)."""

    clamp: str
    """Name of the clamp, or of the step before the clamps, that reads its column."""
    resolved: bool = False
    """Whether its column has the value of an HPA or a measurement where the policy leaves it open."""
    looks_back: bool = False
    """Whether its clamp looks back on recommendations for as long as the column says."""
    unit: str = ""
    """Unit of the column; by default `s` for a duration, `replicas` for a count, `ratio` for any other number."""
    step: float
    """Step of its what-if slider, in that unit."""
    most: float | None = None
    """Largest position of the slider; by default the range of the field, or twice the value in force."""
    tried: tuple[float, ...] = ()
    """Numbers that `forecaster tune` tries; none are tried by default."""


class Section(BaseModel):
    """A frozen record that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


AutoOrOff = Annotated[
    Literal["auto", "off"],
    BeforeValidator(lambda value: "off" if value is False else value),
    WithJsonSchema({"enum": ["auto", "off", False]}),
]
"""A bare `off` is False in YAML 1.1, by which PyYAML and Helm read it."""

_DURATION_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])", re.ASCII)
DURATION_PATTERN = r"^(0|(\d+(\.\d+)?(ms|[dhms]))+)$"
"""Pattern of durations for editors."""
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
    return _duration_of(value.strip())


@lru_cache(4096)
def _duration_of(text: str) -> timedelta:
    if text == "0":
        return timedelta(0)
    if not _WHOLE_DURATION.fullmatch(text):
        meant = right_duration(text)
        raise ValueError("must be a duration like 90s, 5m, 1h30m or 14d" + (f"; write {meant}" if meant else ""))
    try:
        return timedelta(
            seconds=sum(float(amount) * _DURATION_UNITS[unit] for amount, unit in _DURATION_PART.findall(text))
        )
    except OverflowError:
        raise ValueError("must be a duration of less than 2.7 million years") from None


_LOOSE_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", re.ASCII)
_WORDS = {"sec": "s", "second": "s", "min": "m", "minute": "m", "hr": "h", "hour": "h", "day": "d"}
_WORDS |= {unit: unit for unit in _DURATION_UNITS}


def right_duration(text: str) -> str:
    """Return the duration that a text was probably meant to be; empty where that cannot be guessed.

    >>> right_duration("4 minutes"), right_duration("1H"), right_duration("4"), right_duration("soon")
    ('4m', '1h', '4m or 4s', '')
    """
    match = _LOOSE_DURATION.fullmatch(text.strip())
    if match is None:
        return ""
    if not match[2]:
        return f"{match[1]}m or {match[1]}s"
    word = match[2].lower()
    unit = _WORDS.get(word) or _WORDS.get(word.removesuffix("s"))
    return f"{match[1]}{unit}" if unit else ""


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
    """Parse an amount of bytes, which has no fraction.

    Raises:
        ValueError: as above, or `64m`, which are 0.064 bytes.
    """
    amount = parse_amount(value)
    if isinstance(value, str) and isinstance(amount, float) and 0 < amount < 1:
        raise ValueError(f"{value} are {amount:g} bytes; write {value.strip().rstrip('mun')}Mi for mebibytes")
    return amount


def bytes_text(value: float) -> str | float:
    """Format a quantity such as `16Mi`; fractions of a byte, which do not exist, stay a number."""
    return str(Quantity(int(value) * _NANO, QuantityFormat.BINARY_SI)) if value == int(value) else value


def cores_text(value: float) -> str | float:
    """A quantity such as `10m`; a number where no quantity is read as the same."""
    text = str(Quantity(round(value * _NANO)))
    return text if parse_amount(text) == value else value


_NANO = 10**9
QUANTITY_PATTERN = r"^[+-]?[0-9.]+([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$"
_QUANTITY = WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": QUANTITY_PATTERN}]})
Amount = Annotated[float, BeforeValidator(parse_amount), _QUANTITY]
"""A number in the unit that its setting names; as text with the suffixes of Kubernetes."""
Bytes = Annotated[float, BeforeValidator(parse_bytes), _QUANTITY, PlainSerializer(bytes_text, when_used="json")]
Cores = Annotated[float, BeforeValidator(parse_amount), _QUANTITY, PlainSerializer(cores_text, when_used="json")]
"""CPU in cores, printed as in manifests."""
Positive = Annotated[Duration, Field(gt=timedelta(0))]
Ratio = Annotated[float, Field(gt=0, le=1)]


def plain_default(field: FieldInfo) -> Any:
    """The default of a setting as JSON has it: durations and quantities as text."""
    value = field.get_default(call_default_factory=True)
    kind: Any = Annotated[(field.annotation, Field(), *field.metadata)]
    return TypeAdapter(kind).dump_python(value, mode="json", warnings=False)


# Faults of a setting's value, in the words of settings files and of the API server's own rules.


UNKNOWN_SETTING = "no such setting"
BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
TYPE_WORDS = {
    "bool": "true or false",
    "dict": "a section, with its settings below it",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "missing": "stated",
    "model": "a section, with its settings below it",
    "string": "a text",
    "tuple": "a list",
}
"""Words for the first word of pydantic's error type."""
OF_A_KIND = ("_type", "_parsing", "_from_float", "missing")
TIMEDELTA = re.compile(r"datetime\.timedelta\(((?:\w+=-?\d+(?:, )?)*)0?\)")
QUOTED = re.compile(r"'([^']*)'")
PERCENT, MIN_PERCENT = 100, 10
"""Smallest number that is taken for percent: smaller ones may be meant otherwise."""
INPUT_SHOWN_MAX = 40
"""Most characters of a value that a message repeats."""


def sentences(error: ValidationError) -> Iterator[str]:
    """`horizontal.quantile is 95: must be at most 0.99` for each fault."""
    for fault in error.errors(include_url=False):
        where = ".".join(str(part) for part in fault["loc"])
        value = fault.get("input")
        given = f" is {str(value)[:INPUT_SHOWN_MAX]!r}" if isinstance(value, str | int | float) else ""
        yield f"{where}{given}: {allowed(fault)}" if where else allowed(fault)


def allowed(fault: Mapping[str, Any]) -> str:
    """Return the allowed value, with the right spelling where it can be guessed; `fault` is one of pydantic."""
    kind, message, value, context = fault["type"], fault["msg"], fault.get("input"), fault.get("ctx") or {}
    if kind == "extra_forbidden":
        return f"{UNKNOWN_SETTING}; see docs/configure.md for those there are"
    if kind in {"literal_error", "enum"}:
        return _one_of(QUOTED.findall(message), value)
    for bound, word in BOUNDS.items():
        if bound in context:
            return f"must be {word} {_bound(context[bound])}{_as_ratio(value, context)}"
    if kind.endswith(OF_A_KIND) and (expected := TYPE_WORDS.get(kind.partition("_")[0])):
        return f"must be {expected}"
    return str(message).removeprefix("Value error, ").replace("Input should be", "must be", 1)


def _one_of(there: Iterable[str], value: object) -> str:
    names = list(there)
    near = nearest(value, names, 1) if isinstance(value, str) else []
    return f"must be one of {', '.join(names)}" + (f"; did you mean {near[0]}?" if near else "")


def _bound(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else TIMEDELTA.sub(_duration, str(value))


def _duration(written: re.Match[str]) -> str:
    """Bounds of durations come as Python writes them."""
    parts = (part.split("=") for part in written[1].split(", ") if part)
    return duration_text(timedelta(**{name: int(amount) for name, amount in parts}))


def _as_ratio(value: object, context: Mapping[str, Any]) -> str:
    """Return the ratio that a number of percent stands for."""
    most = context.get("le", context.get("lt"))
    try:
        percent = float(value)  # type: ignore[arg-type]  # what is no number is not one here either
    except (TypeError, ValueError, OverflowError):
        return ""
    meant = isinstance(most, int | float) and most <= 1 and MIN_PERCENT <= percent <= PERCENT * most
    return f"; for {percent:g} % write {percent / PERCENT:g}" if meant else ""
