"""What policies state, as they were written: that of an override is only a part of one, in types of YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from forecaster.domain.settings import Duration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

_DURATION: TypeAdapter[timedelta] = TypeAdapter(Duration)


def vertical_mode(policy: Mapping[str, Any]) -> object:
    """How sizes reach pods."""
    vertical = policy.get("vertical")
    return vertical.get("mode") if isinstance(vertical, dict) else None


def evicts(policy: Mapping[str, Any]) -> bool:
    """Whether pods are evicted for a size."""
    vertical = policy.get("vertical")
    return isinstance(vertical, dict) and vertical.get("evict") is True


def boosts(policy: Mapping[str, Any]) -> bool:
    """Whether new pods have more CPU until they have started."""
    vertical = policy.get("vertical")
    return isinstance(vertical, dict) and vertical.get("startup_boost") is not None


def errors(policy: Mapping[str, Any]) -> object:
    """The signal of errors by which a change is taken back."""
    rollback = policy.get("rollback")
    return rollback.get("errors") if isinstance(rollback, dict) else None


def signals_named(horizontal: object) -> list[str]:
    """The signals that the horizontal part of a policy names."""
    if not isinstance(horizontal, dict):
        return []
    amounts = [one.get("signal") for one in horizontal.get("pod_amounts", ()) if isinstance(one, dict)]
    return [name for name in (horizontal.get("demand_signal"), *amounts) if isinstance(name, str)]
