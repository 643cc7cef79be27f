"""Output of `forecaster settings`: all settings as commented YAML, one explained, the origin of each, the schema."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from forecaster.config.settings import ENVIRONMENT_PREFIX, Settings, layers, setting_paths
from forecaster.domain.settings import DURATION_PATTERN, QUANTITY_PATTERN, plain_default
from forecaster.errors import UnknownName

WIDTH = 116
EIGHTY = 80
INDENT = "  "
_as_json = partial(json.dumps, ensure_ascii=False)


def settings_text() -> str:
    """YAML that parses to the defaults; above each setting its meaning, unit and range."""
    return "\n".join(_section(Settings(), 0)) + "\n"


def _section(section: BaseModel, depth: int) -> Iterator[str]:
    # Constructed, not validated: a default that stands for something longer (a query) is shown as it is written.
    plain = type(section).model_construct().model_dump(mode="json")
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from _heading(name, type(value), depth)
            yield from _section(value, depth + 1)
        else:
            yield from _setting(name, field, plain[name], depth)


def _heading(name: str, section: type[BaseModel], depth: int) -> Iterator[str]:
    if depth == 0:
        yield ""
    yield from _comment((section.__doc__ or "").strip().splitlines()[0], depth)
    yield f"{INDENT * depth}{name}:"


def _setting(name: str, field: FieldInfo, value: Any, depth: int) -> Iterator[str]:
    yield from _comment(field.description or "", depth)
    # JSON is YAML: quoting and lists need no rules of our own.
    yield f"{INDENT * depth}{name}: {json.dumps(value, ensure_ascii=False)}"


def _comment(text: str, depth: int) -> Iterator[str]:
    for line in textwrap.wrap(text, WIDTH - len(INDENT) * depth):
        yield f"{INDENT * depth}# {line}"


# One setting, as `kubectl explain` has it.


def explained_setting(path: str) -> str:
    """Return path, type, default, range and meaning of a setting; for a section its settings.

    Raises:
        UnknownName: there is no such setting.
    """
    known = dict(setting_paths())
    if path not in known:
        raise UnknownName("setting", path, known)
    field = known[path]
    section = field.annotation
    if isinstance(section, type) and issubclass(section, BaseModel):
        heads = {name: _first_sentence(part) for name, part in section.model_fields.items()}
        lines = [f"{path}:", *_wrapped((section.__doc__ or "").strip().splitlines()[0]), ""]
        return "\n".join([*lines, *(f"  {name:<26} {text}".rstrip() for name, text in heads.items())])
    allowed = _allowed(path, schema_of_settings())
    lines = [
        f"{path}: {_as_json(plain_default(field))}",
        *_wrapped(field.description or ""),
        *([f"  Allowed: {allowed}"] if allowed else []),
        f"  From the environment: {ENVIRONMENT_PREFIX}{path.upper().replace('.', '__')}",
    ]
    return "\n".join(lines)


class SettingRow(NamedTuple):
    """One setting for a reference."""

    section: str
    name: str
    default: str
    meaning: str
    allowed: str


def setting_rows() -> Iterator[SettingRow]:
    """Every setting, section by section, without the sections themselves."""
    schema = schema_of_settings()
    for path, field in setting_paths():
        if not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            section, _, name = path.rpartition(".")
            default, meaning = _as_json(plain_default(field)), field.description or ""
            yield SettingRow(section, name, default, meaning, _allowed(path, schema))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, EIGHTY, initial_indent=INDENT, subsequent_indent=INDENT)


def _first_sentence(field: FieldInfo) -> str:
    section = field.annotation
    of_section = isinstance(section, type) and issubclass(section, BaseModel)
    text = ((section.__doc__ or "").strip().splitlines()[0] if of_section else field.description) or ""
    return textwrap.shorten(text, EIGHTY - 30, placeholder=" …")


WORDS = {"exclusiveMinimum": "above", "minimum": "at least", "exclusiveMaximum": "below", "maximum": "at most"}

PATTERNS = {
    DURATION_PATTERN: "a duration such as 90s, 5m or 1h30m",
    QUANTITY_PATTERN: "a quantity such as 250m or 64Mi",
}


def _allowed(path: str, schema: Mapping[str, Any]) -> str:
    """Type and range in words, from the schema."""
    part: Any = schema
    for name in path.split("."):
        part = schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        part = part["properties"][name]
    kinds = [variant for variant in part.get("anyOf", [part]) if variant.get("type") != "null"]
    texts = [_kind(variant) for variant in kinds]
    return " or ".join(dict.fromkeys(filter(None, texts)))


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(filter(None, schema["enum"]))
    bounds = [f"{word} {schema[key]}" for key, word in WORDS.items() if key in schema]
    kind = PATTERNS.get(schema.get("pattern", "")) or schema.get("type", "")
    return ", ".join([kind, *bounds]).strip(", ")


# Which settings are set, and where.


def origins_of(path: Path | None, given: Mapping[str, object]) -> dict[str, str]:
    """Return the origin (file, environment, command line) of each setting that is stated, by path; the last counts.

    Raises:
        ConfigError: a file cannot be read.
    """
    return {setting: origin for origin, layer in layers(path, given) for setting in _leaves(layer)}


def _leaves(layer: Mapping[str, object], before: str = "") -> Iterator[str]:
    for name, value in layer.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield before + name


def schema_of_settings() -> dict[str, Any]:
    """JSON Schema of a file of settings, for editors; an override is a part of a policy."""
    schema = Settings.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Settings of forecaster"
    schema["$defs"]["Override"]["properties"]["policy"] = {"$ref": "#/$defs/Policy"}
    return schema
