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
    """Values with those components that change it."""

    @classmethod
    def of(cls, base: Any, by_component: Mapping[str, Any]) -> Variants:
        """Keep the values of the components that change the base's."""
        return cls(base, {name: value for name, value in by_component.items() if value != base})

    def at(self, key: str) -> Variants:
        """One field of mappings."""
        return self._each(lambda mapping: mapping.get(key, ABSENT))

    def item(self, identity: str) -> Variants:
        """One item of lists."""
        return self._each(lambda items: next((part for part in items if identity_of(part) == identity), ABSENT))

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
        """Variants without the components that remove the value; what is only added counts as the base."""
        present_values = {name: value for name, value in self.changed.items() if value is not ABSENT}
        if self.base is not ABSENT:
            return Variants(self.base, present_values)
        first, *others = present_values.values()
        return Variants.of(first if all(value == first for value in others) else type(first)(), present_values)


class Template:
    """Lines of a template. `special` may take a field's or an item's place, `text` the place of a scalar's text."""

    def __init__(self, special: Special, text: Callable[[str], str]) -> None:
        self._special, self._text = special, text

    @staticmethod
    def guarded(variants: Variants, indent: int, lines: Callable[[Variants], list[str]]) -> list[str]:
        """Lines of a value, within the condition under which it is there at all."""
        inner = lines(variants.where_present())
        if variants.adding:
            return [*condition(variants.adding, indent), *inner, end(indent)]
        if variants.dropping:
            return [*condition(variants.dropping, indent, negated=True), *inner, end(indent)]
        return inner

    def mapping(self, variants: Variants, path: Path, indent: int) -> list[str]:
        """The fields of a mapping; one without a condition comes first, so that a dash may stand before it."""
        keys = list(dict.fromkeys(key for mapping in present(variants) for key in mapping))
        keys.sort(key=lambda key: (key != "name", bool(variants.at(key).changed)))
        lines: list[str] = []
        for key in keys:
            lines += self._field(key, variants.at(key), (*path, key), indent)
        return lines

    def _field(self, key: str, variants: Variants, path: Path, indent: int) -> list[str]:
        return self.guarded(variants, indent, lambda inner: self._value(key, inner, path, indent))

    def _value(self, key: str, variants: Variants, path: Path, indent: int) -> list[str]:
        values = list(present(variants))
        head = f"{' ' * indent}{self._scalar(key)}:"
        if all(isinstance(value, dict) for value in values) and any(values):
            inner = [head, *self.mapping(variants, path, indent + 2)]
        elif all(isinstance(value, list) for value in values) and any(values):
            inner = [head, *self.sequence(variants, path, indent + 2)]
        else:
            inner = self._chosen(head, variants, indent)
        return self._special(variants, path, indent, inner)

    def _chosen(self, head: str, variants: Variants, indent: int) -> list[str]:
        """A scalar, or one of several."""
        if not variants.changed:
            return self._written(head, variants.base, indent)
        lines: list[str] = []
        for number, (name, value) in enumerate(variants.changed.items()):
            opened = condition([name], indent)[0]
            lines += [opened.replace("{{- if", "{{- else if") if number else opened]
            lines += self._written(head, value, indent)
        return [*lines, f"{' ' * indent}{{{{- else }}}}", *self._written(head, variants.base, indent), end(indent)]

    def _written(self, head: str, value: Any, indent: int) -> list[str]:
        if isinstance(value, str) and "\n" in value:
            keep = "" if value.endswith("\n") else "-"
            return [
                f"{head} |{keep}",
                *(f"{' ' * (indent + 2)}{self._text(line)}".rstrip() for line in value.splitlines()),
            ]
        return [f"{head} {self._scalar(value)}"]

    def sequence(self, variants: Variants, path: Path, indent: int) -> list[str]:
        """The items of a list: those of the base, then those that components add."""
        items = list(dict.fromkeys(identity_of(item) for sequence in present(variants) for item in sequence))
        lines: list[str] = []
        for identity in items:
            lines += self._item(variants.item(identity), path, indent)
        return lines

    def _item(self, variants: Variants, path: Path, indent: int) -> list[str]:
        return self.guarded(variants, indent, lambda inner: self._dashed(inner, path, indent))

    def _dashed(self, variants: Variants, path: Path, indent: int) -> list[str]:
        if not isinstance(variants.base, dict):
            return [f"{' ' * indent}- {self._scalar(variants.base)}"]
        lines = self.mapping(variants, (*path, "-"), indent + 2)
        dash = f"{' ' * indent}- {lines[0].lstrip()}"
        return self._special(variants, (*path, "-"), indent, [dash, *lines[1:]])

    def _scalar(self, value: Any) -> str:
        written = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
        return self._text(written.removesuffix("\n").removesuffix("\n..."))


def present(variants: Variants) -> Iterator[Any]:
    """The base's value and those of the components, where there are any."""
    return (value for value in (variants.base, *variants.changed.values()) if value is not ABSENT)


def identity_of(item: Any) -> str:
    """Identity of an item among those of its list: its name, or all of it."""
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        return str(item["name"])
    return json.dumps(item, sort_keys=True)


def condition(components: Sequence[str], indent: int, *, negated: bool = False) -> list[str]:
    """The line that opens a part for one of these components, or for none of them."""
    expression = " ".join(f".Values.components.{camel(name)}" for name in components)
    if len(components) > 1:
        expression = f"or {expression}"
    if negated:
        expression = f"not ({expression})" if len(components) > 1 else f"not {expression}"
    return [f"{' ' * indent}{{{{- if {expression} }}}}"]


def end(indent: int) -> str:
    """The line that closes it."""
    return f"{' ' * indent}{{{{- end }}}}"


def camel(name: str) -> str:
    """A name with dashes, as values of a chart are named."""
    return re.sub(r"-(\w)", lambda match: match[1].upper(), name)
