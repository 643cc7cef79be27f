"""Node selector and required node affinity (§6.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.vertical.rules.placement import NodeCondition, NodeTerm, Placement

_NAME = "metadata.name"


def admits(placement: Placement, labels: Mapping[str, str], name: str) -> bool:
    """Rules §6.13: all pairs of the selector and, where there is affinity, at least one of its terms."""
    if any(labels.get(key) != value for key, value in placement.node_selector.items()):
        return False
    return placement.node_terms is None or any(_holds(term, labels, name) for term in placement.node_terms)


def _holds(term: NodeTerm, labels: Mapping[str, str], name: str) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(condition_holds(one, labels) for one in term.labels) and all(
        condition_holds(one, {_NAME: name}) for one in term.fields
    )


def condition_holds(condition: NodeCondition, labels: Mapping[str, str]) -> bool:
    """Rules §6.13: NotIn holds without the label; Gt and Lt compare integers, and nothing else matches them."""
    value = labels.get(condition.key)
    match condition.operator:
        case "In":
            return value in condition.values
        case "NotIn":
            return value not in condition.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(condition, value)
        case _:
            return False


def _compares(condition: NodeCondition, value: str | None) -> bool:
    try:
        ours, bound = int(value or ""), int(condition.values[0])
    except (ValueError, IndexError):
        return False
    return ours > bound if condition.operator == "Gt" else ours < bound
