"""Objects of the first release are valid today: no field is gone, none means another type, none is newly demanded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
FIRST = ROOT / "tests" / "data" / "definitions-0.1.0.yaml"
TODAY = ROOT / "deploy" / "chart" / "definitions" / "definitions.yaml"


def versions(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The schema of each version of each definition."""
    definitions = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    return {
        (definition["metadata"]["name"], version["name"]): version["schema"]["openAPIV3Schema"]
        for definition in definitions
        for version in definition["spec"]["versions"]
        if version["served"]
    }


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field that a schema names, with its own schema."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from fields(part, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from fields(schema[name], f"{path}[]")


@pytest.fixture(scope="module", params=sorted(versions(FIRST)), ids="/".join)
def fields_then_and_now(request: pytest.FixtureRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    today = versions(TODAY)
    assert request.param in today
    return dict(fields(versions(FIRST)[request.param])), dict(fields(today[request.param]))


def test_no_field_is_gone_or_of_another_type(fields_then_and_now: tuple[dict[str, Any], dict[str, Any]]) -> None:
    then, now = fields_then_and_now
    assert len(then) > 30
    assert then.keys() <= now.keys()
    assert {path: schema.get("type") for path, schema in then.items()} == {path: now[path].get("type") for path in then}


def test_what_was_allowed_is_allowed(fields_then_and_now: tuple[dict[str, Any], dict[str, Any]]) -> None:
    then, now = fields_then_and_now
    for path, schema in then.items():
        assert set(now[path].get("required", ())) <= set(schema.get("required", ())), path
        if "enum" in now[path]:
            assert set(schema.get("enum", ("not listed before",))) <= set(now[path]["enum"]), path
