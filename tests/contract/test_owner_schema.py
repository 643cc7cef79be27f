"""All values that an owner can write into a PredictiveAutoscaler are bounded: by the API server, and at reading."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from forecaster.domain.policy import Policy
from forecaster.domain.policy_numbers import value_types
from forecaster.resources.definitions import definitions

if TYPE_CHECKING:
    from collections.abc import Iterator

AUTOSCALER = definitions()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def leaves(schema: dict[str, Any], path: str = "spec") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every value that may be written, and every list and map, by path."""
    if "properties" in schema:
        for name, part in schema["properties"].items():
            yield from leaves(part, f"{path}.{name}")
        return
    yield path, schema
    if schema.get("type") == "array":
        yield from leaves(schema["items"], f"{path}[]")


def bounded(schema: dict[str, Any]) -> bool:
    """Whether the API server refuses values that are too long, too many or too large."""
    kind, rules = schema.get("type"), [validation["rule"] for validation in schema.get("x-kubernetes-validations", ())]
    if kind == "array":
        return "maxItems" in schema
    if kind == "integer":
        return {"minimum", "maximum"} <= schema.keys()
    if kind == "string":
        return bool({"enum", "format", "maxLength"} & schema.keys())
    return kind == "boolean" or any("<= " in rule or "< " in rule for rule in rules)


LEAVES = dict(leaves(AUTOSCALER))


@pytest.mark.parametrize(("path", "schema"), LEAVES.items(), ids=LEAVES)
def test_the_api_server_bounds_it(path: str, schema: dict[str, Any]) -> None:
    assert bounded(schema), f"{path} has no bound: {schema}"


def numbers(section: type[BaseModel], before: str = "") -> Iterator[tuple[str, list[object]]]:
    """Yield every number and duration of a policy by its path, with the bounds of its field."""
    for name, field in section.model_fields.items():
        kinds = value_types(field.annotation)
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from numbers(kind, f"{before}{name}.")
        if {int, float, timedelta} & {kind for kind in kinds if isinstance(kind, type)}:
            yield before + name, [*field.metadata, repr(field.annotation)]


NUMBERS = dict(numbers(Policy))


@pytest.mark.parametrize(("path", "notes"), NUMBERS.items(), ids=NUMBERS)
def test_reading_bounds_it(path: str, notes: list[object]) -> None:
    """Reading refuses it also where a definition of another version let it in, and in annotations."""
    bounds = " ".join(map(repr, notes))
    assert "Le(" in bounds or "Lt(" in bounds or "le=" in bounds, f"policy.{path} has no upper bound"
