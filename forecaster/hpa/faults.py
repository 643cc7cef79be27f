"""Faults of a manifest in the API server's words, and those of its shape (HPA rules §12).

The API server decodes before it validates. Values that it would refuse or drop there are faults of shape, with their
path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from forecaster.domain.quantity import QuantityError, parse_quantity
from forecaster.hpa.numbers import MAX_INT32, MIN_INT32

FaultType = Literal["FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden", "FieldValueNotSupported"]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_LABEL = 63
_LONGEST_SUBDOMAIN = 253
_ENDS = "and must start and end with an alphanumeric character"
_LABEL_RULE = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}"
_SUBDOMAIN_RULE = _LABEL_RULE.replace("label", "subdomain").replace(" or '-'", ", '-' or '.'")
_NAME_RULE = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"


class FieldFault(NamedTuple):
    """One thing the API server would refuse: where, of which type, and its sentence without the path."""

    path: str
    type: FaultType
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"


FieldFaults = Iterator[FieldFault]


def invalid(path: str, value: object, reason: str) -> FieldFault:
    """A value that is there and wrong."""
    return FieldFault(path, "FieldValueInvalid", f"Invalid value: {_written(value)}: {reason}")


def required(path: str, reason: str = "") -> FieldFault:
    """A value that is not there."""
    return FieldFault(path, "FieldValueRequired", f"Required value: {reason}" if reason else "Required value")


def forbidden(path: str, reason: str) -> FieldFault:
    """A value that may not be there."""
    return FieldFault(path, "FieldValueForbidden", f"Forbidden: {reason}")


def not_supported(path: str, value: object, supported: Iterable[str]) -> FieldFault:
    """A word outside a short list."""
    choices = ", ".join(map(_written, sorted(supported)))
    detail = f"Unsupported value: {_written(value)}: supported values: {choices}"
    return FieldFault(path, "FieldValueNotSupported", detail)


def _written(value: object) -> str:
    """The value as JSON; what YAML knows beyond JSON, such as a date, as text."""
    return json.dumps(value, default=str)


def path_segment_faults(path: str, name: str) -> FieldFaults:
    """HPA rules §12: kinds, names and metric names must be usable as one segment of a URL."""
    if name in {".", ".."}:
        yield invalid(path, name, f"may not be '{name}'")
        return
    for sign in "/%":
        if sign in name:
            yield invalid(path, name, f"may not contain '{sign}'")


def dns_label_faults(path: str, name: str) -> FieldFaults:
    """HPA rules §12: a container name is a DNS-1123 label."""
    if len(name) > _LONGEST_LABEL:
        yield invalid(path, name, f"must be no more than {_LONGEST_LABEL} characters")
    if not _LABEL.fullmatch(name):
        yield invalid(path, name, _LABEL_RULE)


def qualified_name_faults(path: str, name: str) -> FieldFaults:
    """HPA rules §12: a name, or a DNS subdomain and a name with a slash between."""
    prefix, slash, own = name.rpartition("/")
    reasons = {
        "prefix part must be non-empty": slash and not prefix,
        f"prefix part must be no more than {_LONGEST_SUBDOMAIN} bytes": len(prefix.encode()) > _LONGEST_SUBDOMAIN,
        f"prefix part {_SUBDOMAIN_RULE}": prefix and not _SUBDOMAIN.fullmatch(prefix),
        "name part must be non-empty": not own,
        f"name part must be no more than {_LONGEST_LABEL} bytes": len(own.encode()) > _LONGEST_LABEL,
        f"name part {_NAME_RULE}": not _QUALIFIED.fullmatch(own),
    }
    if "/" in prefix:
        reasons = {f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/'": True}
    return (invalid(path, name, reason) for reason, holds in reasons.items() if holds)


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


def shape_faults(path: str, value: Any, schema: Schema) -> Iterator[FieldFault]:
    """Every place where a value is not what its field holds; null counts as absent, as it does in the API."""
    if value is None:
        return
    if isinstance(schema, dict):
        yield from _mapping_faults(path, value, schema)
    elif isinstance(schema, list):
        yield from _list_faults(path, value, schema[0])
    elif problem := _scalar_problem(value, schema):
        yield FieldFault(path, "FieldValueInvalid", problem)


def _mapping_faults(path: str, value: Any, schema: dict[str, Any]) -> Iterator[FieldFault]:
    if not isinstance(value, Mapping):
        yield FieldFault(path, "FieldValueInvalid", f"must be a mapping, got {_shown_value(value)}")
        return
    for key, inner in value.items():
        if key in schema:
            yield from shape_faults(f"{path}.{key}", inner, schema[key])
        elif REST not in schema:
            yield FieldFault(f"{path}.{key}", "FieldValueForbidden", f'unknown field "{path}.{key}"')


def _list_faults(path: str, value: Any, schema: Schema) -> Iterator[FieldFault]:
    if not isinstance(value, list):
        yield FieldFault(path, "FieldValueInvalid", f"must be a list, got {_shown_value(value)}")
        return
    for index, inner in enumerate(value):
        if inner is None:
            yield FieldFault(f"{path}[{index}]", "FieldValueInvalid", "must not be empty")
        yield from shape_faults(f"{path}[{index}]", inner, schema)


def _scalar_problem(value: Any, schema: str) -> str:
    """Say why a single value is wrong; empty where it is not."""
    match schema:
        case "string":
            return "" if isinstance(value, str) else f"must be a string, got {_shown_value(value)}"
        case "integer":
            return _integer_problem(value)
        case "quantity":
            return _quantity_problem(value)
        case _:
            strings = isinstance(value, Mapping) and all(isinstance(word, str) for word in value.values())
            return "" if strings else "must be a mapping of strings"


def _integer_problem(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        return f"must be a whole number, got {_shown_value(value)}"
    return "" if MIN_INT32 <= value <= MAX_INT32 else f"{value} does not fit 32 bits"


def _quantity_problem(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return f"must be a quantity, got {_shown_value(value)}"
    try:
        parse_quantity(str(value))
    except QuantityError as error:
        return str(error)
    return ""


def _shown_value(value: Any) -> str:
    """The value as a reader of the manifest would name it; long ones by their type only."""
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"  # noqa: PLR2004 - what fits a line
