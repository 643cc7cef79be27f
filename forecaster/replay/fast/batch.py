"""Which lanes can walk together: those whose rules are the same and whose numbers differ."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.decisions.targets import Unusable, targets_of
from forecaster.hpa.numbers import MAX_INT32
from forecaster.replay.fast.asking import Kind, kind_of
from forecaster.replay.fast.numbers import LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import timedelta

    from forecaster.decisions.targets import PodTarget
    from forecaster.domain.policy import Policy
    from forecaster.domain.signal import Signal
    from forecaster.hpa.behavior import Behavior
    from forecaster.replay.lane import Lane
    from forecaster.replay.sight import Sight
    from forecaster.replay.timing import Timing

FOLLOWED = frozenset(
    {
        "availability",
        "price",
        "quantile",
        "lead_time",
        "window",
        "sizing",
        "peak_target",
        "headroom",
        "churn_price",
        "changes_per_hour",
        "surge",
        "outage_hold",
        "events",
        "scale_in_by_forecast",
        "min_replicas",
        "max_replicas",
        "cpu_utilization",
        "pod_amounts",
        "requests_per_pod",
        "requests_metric",
        "demand_signal",
        "tolerance",
        "scale_down_stabilization",
        "beyond_max",
        "gate",
        "learned",
        "coverage_correction",
    }
)
"""Fields that `deciding` follows at any value, or that `decide` does not read; the others at their defaults only."""
PER_LANE = frozenset({"availability", "price", "quantile", "lead_time", "window", "min_replicas", "max_replicas"})
"""Those that come in as numbers of a lane, and so need not be the same in a batch."""


class Rules(NamedTuple):
    """What is the same for all lanes of a batch."""

    kinds: tuple[Kind, ...]
    behavior: Behavior | None
    start_ups: tuple[timedelta, ...]
    timing: Timing
    fills: Signal
    policy: Policy | None
    decided_kinds: tuple[Kind, ...]
    decided_before: bool
    advisor: int | None
    """Who speaks in the forecast's place, by identity."""
    gated: bool


def batches(lanes: Iterable[Lane]) -> dict[Rules, list[int]]:
    """Positions of the lanes that walk together."""
    found: dict[Rules, list[int]] = defaultdict(list)
    for position, lane in enumerate(lanes):
        found[rules_of(lane)].append(position)
    return dict(found)


def rules_of(lane: Lane) -> Rules:
    """The rules of a lane."""
    setup, policy = lane.setup, lane.policy
    return Rules(
        kinds=tuple(map(kind_of, setup.scaler.targets)),
        behavior=setup.scaler.behavior,
        start_ups=setup.start_up.durations,
        timing=setup.timing,
        fills=setup.capacity.signal,
        policy=_common(policy) if policy else None,
        decided_kinds=tuple(map(kind_of, decided_targets(lane))),
        decided_before=lane.floors is not None,
        advisor=None if lane.advisor is None else id(lane.advisor),
        gated=lane.acting is not None,
    )


def decided_targets(lane: Lane) -> tuple[PodTarget, ...]:
    """The targets that the lane's decisions go by; none where no decision is made."""
    if lane.policy is None:
        return ()
    found = targets_of(lane.workload, lane.policy.horizontal)
    return tuple(one for one in found if not isinstance(one, Unusable))


def _common(policy: Policy) -> Policy:
    defaults = type(policy.horizontal)()
    same = {name: getattr(defaults, name) for name in PER_LANE}
    return policy.model_copy(update={"horizontal": policy.horizontal.model_copy(update=same)})


def bounds_of(lanes: Sequence[Lane]) -> tuple[np.ndarray, np.ndarray]:
    """Least and most replicas that decisions may ask for: `decisions.horizontal._bounds`."""
    pairs = [_bounds(lane) for lane in lanes]
    return np.array([low for low, _ in pairs], np.int64), np.array([high for _, high in pairs], np.int64)


def _bounds(lane: Lane) -> tuple[int, int]:
    if lane.policy is None:
        return 0, MAX_INT32
    policy, hpa = lane.policy.horizontal, lane.workload.autoscaler
    own = max(hpa.min_replicas, 1) if hpa else 1
    lowest = own if policy.min_replicas is None else policy.min_replicas
    highest = policy.max_replicas or (hpa.max_replicas if hpa else MAX_INT32)
    return min(lowest, highest), highest


def covers(lane: Lane, sight: Sight) -> str:
    """Why the arrays cannot follow this lane; empty when they can."""
    if lane.policy is not None:
        ours, defaults = lane.policy.horizontal, type(lane.policy.horizontal)()
        for name in type(ours).model_fields:
            if name not in FOLLOWED and getattr(ours, name) != getattr(defaults, name):
                return f"policy.{name} is not followed on arrays"
        if ours.min_replicas == 0:
            return "waking from zero is not followed on arrays"
    for signal in sight.known:
        largest = _largest(sight.traces.values, signal, lane.row)
        if largest * 1000 > LARGEST:
            return f"{signal} of {largest:g} is beyond exact arithmetic on arrays"
    return ""


def _largest(values: Mapping[Signal, np.ndarray], signal: Signal, row: int) -> float:
    return float(np.fmax.reduce(values[signal][row], initial=0.0))
