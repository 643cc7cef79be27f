"""All values that an owner can write, enumerated from declarations: each field at, below and above its bounds, and odd.

A new field of a policy joins by itself: it is in the schema of PredictiveAutoscaler, and among the annotations.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from forecaster.kube.objects import ANNOTATION_PREFIX
from forecaster.resources.definitions import definitions
from forecaster.resources.objects import camel
from forecaster.sources.stated import ANNOTATION_SETTINGS, PAUSED

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]
AUTOSCALER: Schema = definitions()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
ENORMOUS = "9" * 5_000
NUMBER = re.compile(r"self (>=|>|<=|<) ([-\d.e+]+)|compareTo\(quantity\('([-\d.e+]+)'\)\) (>=|>|<=|<)")
LONGEST = re.compile(r"<= duration\('([\d.]+)s'\)")
INSTANTS = ("0001-01-01T00:00:00Z", "1969-12-31T23:59:59+23:59", "9999-12-31T23:59:59Z", "2026-03-01T12:00:00")
EVENT = {"name": "x", "replicas": 7, "cron": "0 12 * * *", "duration": "1h", "freeze": False}
"""An event that makes sense; one of its fields after the other is replaced."""
ODD: tuple[object, ...] = (
    None,
    "",
    "x",
    "\u0000",
    "* * * * *",
    ENORMOUS,
    -1,
    10**30,
    1e308,
    True,
    [],
    [[]],
    {},
    {"x": []},
)
"""Values that are of a wrong type for most fields, or enormous."""


class Case(NamedTuple):
    """One thing that an owner writes: a spec beside its target, or annotations of the workload."""

    label: str
    spec: Schema | None = None
    annotations: dict[str, str] | None = None
    beyond: bool = False
    """Whether a bound of the schema refuses it."""


def leaves(schema: Schema, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Every value that a spec may have, by path; a list is one."""
    for name, part in schema["properties"].items():
        if "properties" in part:
            yield from leaves(part, (*path, name))
        else:
            yield (*path, name), part


def bounds_of(schema: Schema) -> list[tuple[object, object]]:
    """Each bound: a value within it, and one beyond."""
    bounds: list[tuple[object, object]] = []
    for key, step in (("minimum", -1), ("maximum", 1)):
        if key in schema:
            bounds.append((schema[key], schema[key] + step))
    for rule in (validation["rule"] for validation in schema.get("x-kubernetes-validations", ())):
        for sign, number, amount, other in NUMBER.findall(rule):
            bound, up = float(number or amount), (sign or other) in {"<=", "<"}
            beyond = bound * 1.01 + 0.001 if up else bound - 0.001
            strict = (sign or other) in {"<", ">"}
            within = bound + (-0.001 if up else 0.001) if strict else bound
            bounds.append((within, bound if strict else beyond) if number else (f"{within:g}", f"{beyond:.6g}"))
        bounds += [(f"{float(longest):g}s", f"{float(longest) + 1:g}s") for longest in LONGEST.findall(rule)]
        if "matches('[1-9]')" in rule:
            bounds.append(("1s", "0s"))
    if "enum" in schema:
        bounds += [(word, f"{word}x") for word in schema["enum"]]
    if "maxLength" in schema and schema.get("type") == "string" and not bounds:
        bounds.append(("x", "x" * (schema["maxLength"] + 1)))
    return bounds


def values_of(schema: Schema) -> Iterator[tuple[object, bool]]:
    """Values of a field, and whether the schema refuses them by a bound."""
    for within, beyond in bounds_of(schema):
        yield within, False
        yield beyond, True
    if schema.get("type") == "array":
        yield from lists_of(schema)
    for odd in (*ODD, *(INSTANTS if schema.get("format") == "date-time" else ())):
        yield odd, False


def lists_of(schema: Schema) -> Iterator[tuple[object, bool]]:
    """A list that is too long, and lists of one element with each of its fields odd or beyond a bound."""
    parts = schema["items"]["properties"]
    plain = EVENT if "cron" in parts else {name: _plain(part) for name, part in parts.items()}
    yield [plain] * (schema["maxItems"] + 1), True
    yield [plain] * schema["maxItems"], False
    for name, part in parts.items():
        for value, beyond in values_of(part):
            yield [{**plain, name: value}], beyond


def _plain(schema: Schema) -> object:
    bounds = bounds_of(schema)
    return bounds[0][0] if bounds else schema.get("default", "x")


def specs() -> Iterator[Case]:
    """Every PredictiveAutoscaler that has one odd field."""
    for path, schema in leaves({"properties": {k: v for k, v in AUTOSCALER["properties"].items() if k != TARGET}}):
        for value, beyond in values_of(schema):
            nested: Any = value
            for name in reversed(path):
                nested = {name: nested}
            yield Case(f"{'.'.join(path)}: {json.dumps(value)[:60]}", nested, None, beyond)
    for section in {path[0] for path, _ in leaves(AUTOSCALER) if len(path) > 1} - {TARGET}:
        yield from (Case(f"{section}: {json.dumps(odd)[:60]}", {section: odd}) for odd in ODD)
    yield Case("no such field", {"horizontal": {"noSuchField": 3}, "x" * 5_000: {}})


TARGET = "scaleTargetRef"


def annotated() -> Iterator[Case]:
    """Every annotation with each value of its field, as text."""
    schemas = {".".join(path): schema for path, schema in leaves(AUTOSCALER)}
    for name, path in ANNOTATION_SETTINGS.items():
        for value, beyond in values_of(schemas[".".join(map(camel, path))]):
            text = value if isinstance(value, str) else json.dumps(value)
            yield Case(f"{name}: {text[:60]!r}", None, {name: text}, beyond)
    yield from (Case(f"{PAUSED}: {text!r}", None, {PAUSED: text}) for text in ("true", "false", "", "perhaps"))
    many = {f"{ANNOTATION_PREFIX}{number}": "x" * 1000 for number in range(200)}
    yield Case("200 annotations", None, many)
