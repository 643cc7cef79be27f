"""OpenAPI v3 of the policy settings, as a structural schema of a CustomResourceDefinition: no field is written twice.

Defaults are in the descriptions and not filled in: an object is a layer, and a default written into it by the API
server would override other layers. Elements of lists are whole, and have their defaults.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from forecaster.domain.amounts import duration_text
from forecaster.domain.event import ScheduledEvent
from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.policy_numbers import bounds_of
from forecaster.domain.settings import DURATION_PATTERN, QUANTITY_PATTERN, plain_default
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.resources.objects import camel

Schema = dict[str, Any]

MAX_ITEMS, MAX_CHARACTERS, MAX_DURATION, MAX_QUANTITY = 50, 253, 40, 20
"""Bounds that the API server needs to estimate the cost of its validation."""
BY_FORECAST = (
    "(!has(self.sizing) || self.sizing == 'newsvendor') && (!has(self.scaleInByForecast) || self.scaleInByForecast)"
)
SHARED_CPUS = "!has(self.staticCpus) || !self.staticCpus"
CEL_RULES: Mapping[type[BaseModel], tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        HorizontalPolicy: (
            (
                "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
                "maxReplicas must not be below minReplicas",
            ),
            (
                f"!has(self.minReplicas) || self.minReplicas > 0 || ({BY_FORECAST})",
                "minReplicas 0 needs sizing: newsvendor and scaleInByForecast: true; nothing else would wake it",
            ),
        ),
        VerticalPolicy: (
            (
                f"{SHARED_CPUS} || !has(self.cpuLimit) || self.cpuLimit != 'none'",
                "staticCpus: exclusive CPUs need a limit equal to the request, and cpuLimit is none",
            ),
            (
                f"{SHARED_CPUS} || !has(self.memoryLimit) || self.memoryLimit == 'request'",
                "staticCpus: only Guaranteed pods have them; memoryLimit must be request",
            ),
        ),
        ScheduledEvent: (
            (
                "has(self.start) == has(self.end) && has(self.cron) == has(self.duration)",
                "start goes with end, and cron with duration",
            ),
            ("has(self.start) != has(self.cron)", "an event has either start and end, or cron and duration"),
            ("!has(self.start) || !has(self.end) || self.start < self.end", "end must be after start"),
            (
                "(has(self.replicas) || has(self.maxReplicas) || self.sizes) != self.freeze",
                "an event has any of replicas, maxReplicas and sizes: true, or else freeze: true",
            ),
            (
                "!has(self.replicas) || !has(self.maxReplicas) || self.replicas <= self.maxReplicas",
                "replicas must not be above maxReplicas",
            ),
            ("!self.overMeasured || has(self.maxReplicas)", "overMeasured goes with maxReplicas"),
        ),
    }
)
"""Rules between settings of one section, in CEL, with the message where they do not hold. They are those of the
section's validators, as far as one layer can be judged; faults of all layers together are in the status."""


def schema_of(model: type[BaseModel], *, filled: bool = False) -> Schema:
    """The schema of a section; with `filled` the API server puts defaults in."""
    parts = model.model_json_schema()["properties"]
    properties = {camel(name): _field(field, parts[name], filled=filled) for name, field in model.model_fields.items()}
    required = [camel(name) for name, field in model.model_fields.items() if field.is_required()]
    return _without_empty(
        {
            "type": "object",
            "description": (model.__doc__ or "").strip().splitlines()[0],
            "required": required,
            "properties": properties,
            "x-kubernetes-validations": [_rule(*rule) for rule in CEL_RULES.get(model, ())],
        }
    )


def _field(field: FieldInfo, part: Schema, *, filled: bool) -> Schema:
    inner, default = _section_of(field.annotation), field.get_default(call_default_factory=True)
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
        return schema_of(field.annotation)
    described = {"description": _described(field, "" if filled else _text(plain_default(field)))}
    if inner is not None:
        items = schema_of(inner, filled=True)
        return {"type": "array", **described, "maxItems": MAX_ITEMS, "items": items}
    whole = {"default": default} if filled and default is not None and not field.is_required() else {}
    return {**_plain(next(_kinds(part)), field), **described, **whole}


def _plain(part: Schema, field: FieldInfo) -> Schema:
    """A value that is no section: its type, its range, and rules for what OpenAPI has no range of."""
    bounds = list(bounds_of(field))
    if part.get("pattern") == DURATION_PATTERN:
        return {
            "type": "string",
            "maxLength": MAX_DURATION,
            "x-kubernetes-validations": list(_of_duration(bounds)),
        }
    if part.get("pattern") == QUANTITY_PATTERN or _is_amount(part):
        rules = list(_of_amount(bounds))
        return {"x-kubernetes-int-or-string": True, "maxLength": MAX_QUANTITY, "x-kubernetes-validations": rules}
    if part.get("type") == "object":
        patterns = {"type": "string", "maxLength": MAX_CHARACTERS}
        return {"type": "object", "maxProperties": MAX_ITEMS, "additionalProperties": patterns}
    if part.get("type") == "number":
        return _without_empty({"type": "number", "x-kubernetes-validations": list(_of_number(part))})
    schema: Schema = {
        key: part[key] for key in ("type", "enum", "format", "minimum", "maximum", "minLength") if key in part
    }
    if schema["type"] == "string" and not {"enum", "format"} & schema.keys():
        schema["maxLength"] = min(part.get("maxLength", MAX_CHARACTERS), MAX_CHARACTERS)
    return schema


def _kinds(part: Schema) -> Iterator[Schema]:
    """The ways in which a value may be written; text before numbers, where both are allowed."""
    kinds = [kind for kind in part.get("anyOf", [part]) if kind.get("type") != "null"]
    yield from sorted(kinds, key=lambda kind: kind.get("pattern") != QUANTITY_PATTERN)


def _is_amount(part: Schema) -> bool:
    return any(kind.get("pattern") == QUANTITY_PATTERN for kind in part.get("anyOf", ()))


NUMBERS = {
    "minimum": (">=", "at least"),
    "exclusiveMinimum": (">", "above"),
    "maximum": ("<=", "at most"),
    "exclusiveMaximum": ("<", "below"),
}


def _of_number(part: Schema) -> Iterator[Schema]:
    """Rules in place of OpenAPI's bounds: the API server's own messages cut 0.99 to 0."""
    for key, (sign, words) in NUMBERS.items():
        if key in part:
            yield _rule(f"self {sign} {float(part[key])}", f"must be {words} {part[key]:g}")


def _of_duration(bounds: list[tuple[str, Any]]) -> Iterator[Schema]:
    written = f"self.matches('{DURATION_PATTERN}')".replace("\\", "\\\\")
    yield _rule(written, "must be a duration like 90s, 5m, 1h30m or 14d")
    for kind, bound in bounds:
        if kind == "gt":
            yield _rule("self.matches('[1-9]')", f"must be longer than {duration_text(bound)}")
        if kind == "le" and bound < timedelta(days=1):
            # Days are no unit of CEL's; so short a bound is passed by all of them.
            seconds = f"duration(self == '0' ? '0s' : self) <= duration('{bound.total_seconds():g}s')"
            message = f"must be at most {duration_text(bound)}, in h, m, s or ms"
            yield _rule(f"!{written} || (!self.contains('d') && {seconds})", message)


def _of_amount(bounds: list[tuple[str, Any]]) -> Iterator[Schema]:
    written = "type(self) == int || isQuantity(self)"
    yield _rule(written, "must be a whole number or a quantity like 100m, 0.5 or 64Mi")
    for kind, bound in bounds:
        sign, word = NUMBERS[{"gt": "exclusiveMinimum", "ge": "minimum", "le": "maximum"}[kind]]
        amount = f"{bound:.0f}" if bound == int(bound) else f"{bound:g}"
        within = f"quantity(string(self)).compareTo(quantity('{amount}')) {sign} 0"
        yield _rule(f"!({written}) || {within}", f"must be {word} {amount}")


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """The section of which a setting is a list."""
    sections = [kind for kind in get_args(annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return sections[0] if sections else None


def _described(field: FieldInfo, default: str) -> str:
    text = field.description or ""
    return f"{text} Default: {default}." if default and "efault" not in text else text


def _text(default: object) -> str:
    match default:
        case str() | bool() | int() | float():
            return default if isinstance(default, str) else json.dumps(default)
        case _:
            return ""


def _rule(rule: str, message: str) -> Schema:
    return {"rule": rule, "message": message}


def _without_empty(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if value not in ("", [], {})}
