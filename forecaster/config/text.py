"""All settings with their defaults as commented YAML: what `forecaster settings` prints and the documentation shows."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from forecaster.config.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

WIDTH = 116
INDENT = "  "


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
