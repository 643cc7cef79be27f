"""Label selectors in their string form, as `scale.status.selector` carries them (HPA rules §3)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

Operator = Literal["in", "notin", "exists", "absent"]

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY = re.compile(rf"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_NAME}")
_VALUE = re.compile(rf"({_NAME})?")
_SET = re.compile(r"(\S+?)\s+(in|notin)\s*\((.*)\)", re.DOTALL)
_EQUALITY = re.compile(r"([^=!\s]+)\s*(==|=|!=)\s*(\S*)")
_SIGN = re.compile("[(),]")
_LONGEST = 63
SELECTOR_MAX = 4096
"""Characters of a selector that is read of a stranger: what an HPA builds from its own has some dozens."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """A label that is absent satisfies `notin`, as it does in the API."""
        present = self.key in labels
        if self.operator == "in":
            return present and labels[self.key] in self.values
        if self.operator == "notin":
            return not present or labels[self.key] not in self.values
        return present if self.operator == "exists" else not present


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements together; none at all matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether every requirement holds for these labels."""
        for requirement in self.requirements:  # noqa: SIM110 - a generator would double the time of the hottest call
            if not requirement.matches(labels):
                return False
        return True


class SelectorError(ValueError):
    """The text is no selector; the message names the part that is wrong."""


@lru_cache(maxsize=512)  # a stranger's may take 100 kB each
def parse_selector(text: str) -> Selector:
    """A selector from text such as `app=web,tier in (a, b),!legacy`; raises SelectorError."""
    return Selector(tuple(_requirement(part.strip()) for part in _parts(text)))


def _parts(text: str) -> Iterator[str]:
    """Split at commas outside parentheses, in one look at each character: owners may write a megabyte of them."""
    begin, inside = 0, False
    for sign in _SIGN.finditer(text) if text.strip() else ():
        if sign[0] != ",":
            inside = sign[0] == "("
        elif not inside:
            yield text[begin : sign.start()]
            begin = sign.end()
    if text.strip():
        yield text[begin:]


def _requirement(part: str) -> Requirement:
    if match := _SET.fullmatch(part):
        key, operator, inside = match.groups()
        values = frozenset(_value(value.strip(), part) for value in inside.split(","))
        return Requirement(_key(key, part), "in" if operator == "in" else "notin", values)
    if match := _EQUALITY.fullmatch(part):
        key, sign, value = match.groups()
        return Requirement(_key(key, part), "notin" if sign == "!=" else "in", frozenset({_value(value, part)}))
    if part.startswith("!"):
        return Requirement(_key(part[1:].strip(), part), "absent")
    return Requirement(_key(part, part), "exists")


def _key(key: str, part: str) -> str:
    if not _KEY.fullmatch(key) or len(key.rpartition("/")[2]) > _LONGEST:
        raise SelectorError(f"unable to parse requirement {part!r}: {key!r} is no label key")
    return key


def _value(value: str, part: str) -> str:
    if not _VALUE.fullmatch(value) or len(value) > _LONGEST:
        raise SelectorError(f"unable to parse requirement {part!r}: {value!r} is no label value")
    return value


def selector_text(selector: Mapping[str, Any]) -> str:
    """The string form of a label selector in its wire form, `matchLabels` and `matchExpressions`."""
    labels = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    return ",".join([*labels, *map(_expression_text, selector.get("matchExpressions") or ())])


def _expression_text(expression: Mapping[str, Any]) -> str:
    key, values = expression.get("key") or "", ",".join(expression.get("values") or ())
    match expression.get("operator"):
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case "NotIn":
            return f"{key} notin ({values})"
        case _:
            return f"{key} in ({values})"
