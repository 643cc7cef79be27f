"""An object as the base has it and as components change it: lines of a template, with conditions around them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Path = tuple[str, ...]
    Special = Callable[["Variants", Path, int, list[str]], list[str]]

ABSENT = object()
"""A field that a variant does not have."""


class Variants(NamedTuple):
    """A value as the base has it, and as it is with each component alone."""

    base: Any
    changed: Mapping[str, Any]
    """Of the components with which it is another one."""

    @classmethod
    def of(cls, base: Any, by_component: Mapping[str, Any]) -> Variants:
        """Those that differ."""
        return cls(base, {name: value for name, value in by_component.items() if value != base})

    def at(self, key: str) -> Variants:
        """One field of mappings."""
        return self._each(lambda mapping: mapping.get(key, ABSENT))

    def item(self, identity: str) -> Variants:
        """One item of lists."""
        return self._each(lambda items: next((one for one in items if identity_of(one) == identity), ABSENT))

    def _each(self, part: Callable[[Any], Any]) -> Variants:
        return Variants.of(part(self.base), {name: part(value) for name, value in self.changed.items()})

    @property
    def adding(self) -> list[str]:
        """Components that have it where the base has not."""
        return [name for name in self.changed if self.base is ABSENT]

    @property
    def dropping(self) -> list[str]:
        """Components that take it away."""
        return [name for name, value in self.changed.items() if value is ABSENT]

    def where_present(self) -> Variants:
        """The same without the components that take it away; what is only added counts as the base."""
        kept = {name: value for name, value in self.changed.items() if value is not ABSENT}
        if self.base is not ABSENT:
            return Variants(self.base, kept)
        first, *others = kept.values()
        return Variants.of(first if all(one == first for one in others) else type(first)(), kept)


class Template:
    """Lines of a template. `special` may take a field's or an item's place, `text` the place of a scalar's text."""

    def __init__(self, special: Special, text: Callable[[str], str]) -> None:
        self._special, self._text = special, text

    @staticmethod
    def guarded(found: Variants, indent: int, lines: Callable[[Variants], list[str]]) -> list[str]:
        """Lines of a value, within the condition under which it is there at all."""
        inner = lines(found.where_present())
        if found.adding:
            return [*condition(found.adding, indent), *inner, end(indent)]
        if found.dropping:
            return [*condition(found.dropping, indent, negated=True), *inner, end(indent)]
        return inner

    def mapping(self, found: Variants, path: Path, indent: int) -> list[str]:
        """The fields of a mapping; one without a condition comes first, so that a dash may stand before it."""
        keys = list(dict.fromkeys(key for one in present(found) for key in one))
        keys.sort(key=lambda key: (key != "name", bool(found.at(key).changed)))
        lines: list[str] = []
        for key in keys:
            lines += self._field(key, found.at(key), (*path, key), indent)
        return lines

    def _field(self, key: str, found: Variants, path: Path, indent: int) -> list[str]:
        return self.guarded(found, indent, lambda there: self._value(key, there, path, indent))

    def _value(self, key: str, found: Variants, path: Path, indent: int) -> list[str]:
        values = list(present(found))
        head = f"{' ' * indent}{self._scalar(key)}:"
        if all(isinstance(one, dict) for one in values) and any(values):
            inner = [head, *self.mapping(found, path, indent + 2)]
        elif all(isinstance(one, list) for one in values) and any(values):
            inner = [head, *self.sequence(found, path, indent + 2)]
        else:
            inner = self._chosen(head, found, indent)
        return self._special(found, path, indent, inner)

    def _chosen(self, head: str, found: Variants, indent: int) -> list[str]:
        """A scalar, or one of several."""
        if not found.changed:
            return self._written(head, found.base, indent)
        lines: list[str] = []
        for number, (name, value) in enumerate(found.changed.items()):
            opened = condition([name], indent)[0]
            lines += [opened.replace("{{- if", "{{- else if") if number else opened]
            lines += self._written(head, value, indent)
        return [*lines, f"{' ' * indent}{{{{- else }}}}", *self._written(head, found.base, indent), end(indent)]

    def _written(self, head: str, value: Any, indent: int) -> list[str]:
        if isinstance(value, str) and "\n" in value:
            keep = "" if value.endswith("\n") else "-"
            return [
                f"{head} |{keep}",
                *(f"{' ' * (indent + 2)}{self._text(line)}".rstrip() for line in value.splitlines()),
            ]
        return [f"{head} {self._scalar(value)}"]

    def sequence(self, found: Variants, path: Path, indent: int) -> list[str]:
        """The items of a list: those of the base, then those that components add."""
        items = list(dict.fromkeys(identity_of(item) for one in present(found) for item in one))
        lines: list[str] = []
        for identity in items:
            lines += self._item(found.item(identity), path, indent)
        return lines

    def _item(self, found: Variants, path: Path, indent: int) -> list[str]:
        return self.guarded(found, indent, lambda there: self._dashed(there, path, indent))

    def _dashed(self, found: Variants, path: Path, indent: int) -> list[str]:
        if not isinstance(found.base, dict):
            return [f"{' ' * indent}- {self._scalar(found.base)}"]
        lines = self.mapping(found, (*path, "-"), indent + 2)
        dash = f"{' ' * indent}- {lines[0].lstrip()}"
        return self._special(found, (*path, "-"), indent, [dash, *lines[1:]])

    def _scalar(self, value: Any) -> str:
        written = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
        return self._text(written.removesuffix("\n").removesuffix("\n..."))


def present(found: Variants) -> Iterator[Any]:
    """The base's value and those of the components, where there are any."""
    return (one for one in (found.base, *found.changed.values()) if one is not ABSENT)


def identity_of(item: Any) -> str:
    """What tells an item of a list from the others: its name, or all of it."""
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        return str(item["name"])
    return json.dumps(item, sort_keys=True)


def condition(components: Sequence[str], indent: int, *, negated: bool = False) -> list[str]:
    """The line that opens what is there with one of these components, or with none of them."""
    asked = " ".join(f".Values.components.{camel(name)}" for name in components)
    if len(components) > 1:
        asked = f"or {asked}"
    if negated:
        asked = f"not ({asked})" if len(components) > 1 else f"not {asked}"
    return [f"{' ' * indent}{{{{- if {asked} }}}}"]


def end(indent: int) -> str:
    """The line that closes it."""
    return f"{' ' * indent}{{{{- end }}}}"


def camel(name: str) -> str:
    """A name with dashes, as values of a chart are named."""
    return re.sub(r"-(\w)", lambda found: found[1].upper(), name)
