"""Whether a manifest has the shape of an HPA: fields known, numbers numbers, quantities quantities (HPA rules §12).

The API server decodes before it validates. What it would refuse or drop there is a fault here, with its path.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from forecaster.domain.quantity import QuantityError, parse_quantity
from forecaster.hpa.faults import Fault
from forecaster.hpa.numbers import MAX_INT32, MIN_INT32

Schema = str | dict[str, Any] | list[Any]

STRING, INTEGER, QUANTITY, LABELS = "string", "integer", "quantity", "labels"
REST = "*"  # a mapping with this key may have others, which are not looked at

METADATA: Schema = {"name": STRING, "namespace": STRING, "annotations": LABELS, REST: STRING}
_REFERENCE: Schema = {"apiVersion": STRING, "kind": STRING, "name": STRING}
_TARGET: Schema = {"type": STRING, "value": QUANTITY, "averageValue": QUANTITY, "averageUtilization": INTEGER}
_EXPRESSION: Schema = {"key": STRING, "operator": STRING, "values": [STRING]}
_SELECTOR: Schema = {"matchLabels": LABELS, "matchExpressions": [_EXPRESSION]}
_IDENTIFIER: Schema = {"name": STRING, "selector": _SELECTOR}
_RULES: Schema = {
    "stabilizationWindowSeconds": INTEGER,
    "selectPolicy": STRING,
    "policies": [{"type": STRING, "value": INTEGER, "periodSeconds": INTEGER}],
    "tolerance": QUANTITY,
}
SPEC: Schema = {
    "scaleTargetRef": _REFERENCE,
    "minReplicas": INTEGER,
    "maxReplicas": INTEGER,
    "metrics": [
        {
            "type": STRING,
            "object": {"describedObject": _REFERENCE, "metric": _IDENTIFIER, "target": _TARGET},
            "external": {"metric": _IDENTIFIER, "target": _TARGET},
            "pods": {"metric": _IDENTIFIER, "target": _TARGET},
            "resource": {"name": STRING, "target": _TARGET},
            "containerResource": {"name": STRING, "container": STRING, "target": _TARGET},
        }
    ],
    "behavior": {"scaleUp": _RULES, "scaleDown": _RULES},
}
SPEC_V1: Schema = {
    "scaleTargetRef": _REFERENCE,
    "minReplicas": INTEGER,
    "maxReplicas": INTEGER,
    "targetCPUUtilizationPercentage": INTEGER,
}


def shape_faults(path: str, value: Any, schema: Schema) -> Iterator[Fault]:
    """Every place where a value is not what its field holds; null counts as absent, as it does in the API."""
    if value is None:
        return
    if isinstance(schema, dict):
        yield from _mapping_faults(path, value, schema)
    elif isinstance(schema, list):
        yield from _list_faults(path, value, schema[0])
    elif problem := _scalar_problem(value, schema):
        yield Fault(path, "FieldValueInvalid", problem)


def _mapping_faults(path: str, value: Any, schema: dict[str, Any]) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield Fault(path, "FieldValueInvalid", f"must be a mapping, got {_kind(value)}")
        return
    for key, inner in value.items():
        if key in schema:
            yield from shape_faults(f"{path}.{key}", inner, schema[key])
        elif REST not in schema:
            yield Fault(f"{path}.{key}", "FieldValueForbidden", f'unknown field "{path}.{key}"')


def _list_faults(path: str, value: Any, schema: Schema) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield Fault(path, "FieldValueInvalid", f"must be a list, got {_kind(value)}")
        return
    for index, inner in enumerate(value):
        if inner is None:
            yield Fault(f"{path}[{index}]", "FieldValueInvalid", "must not be empty")
        yield from shape_faults(f"{path}[{index}]", inner, schema)


def _scalar_problem(value: Any, schema: str) -> str:
    """What is wrong with a single value; empty where nothing is."""
    match schema:
        case "string":
            return "" if isinstance(value, str) else f"must be a string, got {_kind(value)}"
        case "integer":
            return _integer_problem(value)
        case "quantity":
            return _quantity_problem(value)
        case _:
            strings = isinstance(value, Mapping) and all(isinstance(word, str) for word in value.values())
            return "" if strings else "must be a mapping of strings"


def _integer_problem(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        return f"must be a whole number, got {_kind(value)}"
    return "" if MIN_INT32 <= value <= MAX_INT32 else f"{value} does not fit 32 bits"


def _quantity_problem(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return f"must be a quantity, got {_kind(value)}"
    try:
        parse_quantity(str(value))
    except QuantityError as error:
        return str(error)
    return ""


def _kind(value: Any) -> str:
    """The value as a reader of the manifest would name it; long ones by their type only."""
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"  # noqa: PLR2004 - what fits a line
