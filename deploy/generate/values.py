"""Meaning of each value in the chart's values.yaml: the schema that holds it, and the table in the chart's README."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from deploy.generate.conditional import camel
from deploy.generate.kustomized import DEPLOY, components
from forecaster.config.text import schema_of_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

CHART = DEPLOY / "chart"
EXPLAINS = {"title", "description", "default", "examples", "format", "writeOnly"}
"""Keywords that refuse nothing."""
TYPES = {bool: "boolean", dict: "object", int: "integer", list: "array", str: "string"}
HEADING = "\n## Values\n"


class Value(NamedTuple):
    """One value: its path, default, meaning, and what `# @schema` adds."""

    path: tuple[str, ...]
    default: Any
    meaning: str
    schema: dict[str, Any]


def values() -> Iterator[Value]:
    """Each value that has a meaning, in the order of the file."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    yield from _values(yaml.compose(text), text.splitlines(), ())


def _values(node: Any, lines: list[str], path: tuple[str, ...]) -> Iterator[Value]:
    for key, value in node.value:
        comments = list(_comments(lines, key.start_mark.line))
        meaning = " ".join(line.removeprefix("# -- ") for line in comments if line.startswith("# -- "))
        if meaning:
            stated = next((line for line in comments if line.startswith("# @schema ")), "# @schema {}")
            default = yaml.safe_load(yaml.serialize(value))
            yield Value((*path, key.value), default, meaning, yaml.safe_load(stated.removeprefix("# @schema ")))
        else:
            yield from _values(value, lines, (*path, key.value))


def _comments(lines: list[str], number: int) -> list[str]:
    """The comment right above a line."""
    first = number
    while first and lines[first - 1].strip().startswith("#"):
        first -= 1
    return [line.strip() for line in lines[first:number]]


def schema() -> str:
    """values.schema.json: a value that is misspelt is refused."""
    # Helm hands values of a parent chart to each of its parts.
    whole: dict[str, Any] = closed() | {"properties": {"global": {"type": "object"}}}
    for value in values():
        level = whole
        for name in value.path[:-1]:
            level = level["properties"].setdefault(name, closed())
        kind = {} if "$ref" in value.schema or value.default is None else {"type": TYPES[type(value.default)]}
        level["properties"][value.path[-1]] = {"description": value.meaning} | kind | value.schema
    if whole["properties"]["components"]["properties"].keys() != {camel(name) for name in components()}:
        raise SystemExit("deploy/chart/values.yaml: `components` are not those of deploy/components")
    head = {"$schema": "http://json-schema.org/draft-07/schema#", **whole, "$defs": settings_definitions()}
    return json.dumps(head, indent=1) + "\n"


def closed() -> dict[str, Any]:
    """An object that has no further fields."""
    return {"type": "object", "additionalProperties": False, "properties": {}}


def readme() -> str:
    """The chart's README with its values behind the part written by hand."""
    written = (CHART / "README.md").read_text(encoding="utf-8").partition(HEADING)[0]
    rows = [f"| `{'.'.join(value.path)}` | `{json.dumps(value.default)}` | {value.meaning} |" for value in values()]
    return "\n".join([f"{written}{HEADING}", "| value | default | meaning |", "| --- | --- | --- |", *rows, ""])


def settings_definitions() -> dict[str, Any]:
    """The schema of the settings by the names of its parts, without what explains them."""
    schema = schema_of_settings()
    definitions = schema.pop("$defs")
    definitions["Settings"] = {name: schema[name] for name in ("type", "additionalProperties", "properties")}
    return {name: bare(definitions[name]) for name in sorted(definitions)}


def bare(part: Any) -> Any:
    """A part of a schema with what it refuses alone."""
    if isinstance(part, list):
        return [bare(item) for item in part]
    if not isinstance(part, dict):
        return part
    keywords = {key: bare(value) for key, value in part.items() if key not in EXPLAINS}
    if "properties" in part:
        keywords["properties"] = {name: bare(value) for name, value in part["properties"].items()}
    return joined(keywords)


def joined(part: dict[str, Any]) -> dict[str, Any]:
    """A part with an `anyOf` of different types as one of several types: each keyword asks something of one alone."""
    among = part.get("anyOf", ())
    types = [option.get("type") for option in among]
    if len(set(types) - {None}) < max(len(types), 1) or any("enum" in option for option in among):
        return part
    return {key: value for option in among for key, value in option.items()} | {"type": types}
