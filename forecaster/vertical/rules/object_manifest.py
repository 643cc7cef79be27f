"""Nodes, LimitRanges and ResourceQuotas in their JSON form. Raises `ManifestError`, as `manifest` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forecaster.domain.quantity import QuantityError
from forecaster.vertical.rules.limit_range import LimitRange, LimitRangeItem
from forecaster.vertical.rules.manifest import ManifestError
from forecaster.vertical.rules.node import Node
from forecaster.vertical.rules.placement import Taint
from forecaster.vertical.rules.quota import Quota, Scope
from forecaster.vertical.rules.resource_list import parsed

Wire = Mapping[str, Any]


def node_of(wire: Wire) -> Node:
    """A Node object."""
    metadata, spec, status = (wire.get(part) or {} for part in ("metadata", "spec", "status"))
    try:
        return Node(
            name=metadata["name"],
            allocatable=parsed(status.get("allocatable")),
            labels=metadata.get("labels") or {},
            taints=tuple(taint_of(one) for one in spec.get("taints") or ()),
            unschedulable=bool(spec.get("unschedulable")),
        )
    except (QuantityError, KeyError, TypeError) as error:
        raise ManifestError(f"node {metadata.get('name', '')}: not a node as the API writes it: {error}") from error


def taint_of(wire: Wire) -> Taint:
    """One entry of a node's taints."""
    return Taint(wire["key"], wire.get("value") or "", wire.get("effect") or "")


def limit_range_of(wire: Wire) -> LimitRange:
    """A LimitRange object as the API server stores it."""
    name = (wire.get("metadata") or {}).get("name") or ""
    try:
        items = tuple(limit_range_item_of(one) for one in (wire.get("spec") or {}).get("limits") or ())
    except (QuantityError, TypeError) as error:
        raise ManifestError(f"LimitRange {name}: {error}") from error
    return LimitRange(items, name)


def limit_range_item_of(wire: Wire) -> LimitRangeItem:
    """One entry of `spec.limits`."""
    return LimitRangeItem(
        type=wire.get("type") or "",
        min=parsed(wire.get("min")),
        max=parsed(wire.get("max")),
        default=parsed(wire.get("default")),
        default_request=parsed(wire.get("defaultRequest")),
        ratio=parsed(wire.get("maxLimitRequestRatio")),
    )


def quota_of(wire: Wire) -> Quota:
    """A ResourceQuota object with its status."""
    metadata, spec, status = (wire.get(part) or {} for part in ("metadata", "spec", "status"))
    name = metadata.get("name") or ""
    try:
        hard = parsed(status.get("hard") or spec.get("hard"))
        return Quota(hard, parsed(status.get("used")), _scopes(spec), name)
    except (QuantityError, KeyError, TypeError) as error:
        raise ManifestError(f"ResourceQuota {name}: {error}") from error


def _scopes(spec: Wire) -> tuple[Scope, ...]:
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return (
        *(Scope(name) for name in spec.get("scopes") or ()),
        *(Scope(one["scopeName"], one["operator"], frozenset(one.get("values") or ())) for one in expressions),
    )
