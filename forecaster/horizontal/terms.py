"""Objects of rows as numbers: groups of rows with the same rules, and their columns.

Workloads and policies stay the same objects for weeks, so their numbers are computed once and reused while they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.policy_numbers import as_number, policy_numbers, stated_numbers
from forecaster.domain.workload import Workload
from forecaster.horizontal.columns import Counts, Floats
from forecaster.horizontal.inputs import USUAL, PolicyColumns, Rules, TargetColumns
from forecaster.horizontal.lead_time import lead_time
from forecaster.horizontal.targets import PodTarget, UtilizationTarget, full_pod, kind_of, targets_of, usable
from forecaster.hpa.numbers import MAX_INT32, milli

COUNT_COLUMNS = frozenset({"min_replicas", "max_replicas", "own_max_replicas"})
"""Columns of whole numbers."""


class Terms(NamedTuple):
    """One row's rules and numbers."""

    rules: Rules
    policy: tuple[float, ...]
    """Numbers of the policy: those that it alone decides, then the others in the order of `PolicyColumns`."""
    targets: tuple[tuple[float, float, float], ...]
    """Goal, request and full pod of each target, as in `TargetColumns`."""


UNREADABLE_TERMS = Terms(
    Rules("quantile", scale_in_by_forecast=False, kinds=()),
    (*(policy_numbers()[name].default for name in stated_numbers()), *USUAL.values()),
    (),
)
"""Terms of a row that cannot be read."""


def terms_of(
    workload: Workload, policy: HorizontalPolicy, levels: tuple[float, ...], max_sample_age: timedelta | None = None
) -> Terms:
    """Return the rules and numbers of one workload and its policy.

    A workload keeps its last pod where no signal is measured without pods, because nothing could start the first one
    again.
    """
    targets = usable(targets_of(workload, policy))
    rules = Rules(
        sizing="quantile" if policy.sizing == "quantile" else "newsvendor",
        scale_in_by_forecast=policy.scale_in_by_forecast,
        kinds=tuple(map(kind_of, targets)),
        levels=levels,
        keeps_size=workload.autoscaler is None and policy.min_replicas is None,
    )
    if not (rules.wakes and policy.min_replicas == 0):
        rules = rules._replace(woken=_sleeps_by_its_hpa(workload, policy))
    lowest, highest = bounds_of(workload, policy)
    if not rules.comes_back:
        lowest = max(lowest, 1)
    numbers = _numbers(policy, lowest, highest, max_sample_age)
    return Terms(rules, numbers, tuple(target_numbers(target, policy.peak_target) for target in targets))


def bounds_of(workload: Workload, policy: HorizontalPolicy) -> tuple[int, int]:
    """Return the smallest and largest allowed count: the policy's, else the HPA's, else one and no bound.

    Zero is allowed by a policy only, not by an HPA that may scale to zero.
    """
    hpa = workload.autoscaler
    own = max(hpa.min_replicas, 1) if hpa else 1
    lowest = own if policy.min_replicas is None else policy.min_replicas
    highest = policy.max_replicas or (hpa.max_replicas if hpa else MAX_INT32)
    return min(lowest, highest), highest


def _sleeps_by_its_hpa(workload: Workload, policy: HorizontalPolicy) -> bool:
    """Whether the HPA may scale the workload to zero, and no policy says otherwise."""
    hpa = workload.autoscaler
    return hpa is not None and hpa.min_replicas == 0 and not policy.min_replicas


def _numbers(
    policy: HorizontalPolicy, lowest: int, highest: int, max_sample_age: timedelta | None
) -> tuple[float, ...]:
    return (
        *(as_number(getattr(policy, name)) for name in stated_numbers()),
        lowest,
        highest,
        policy.max_replicas or MAX_INT32,
        lead_time(policy).value.total_seconds(),
        np.nan if max_sample_age is None else max_sample_age.total_seconds(),
    )


def target_numbers(target: PodTarget, peak_target: float | None) -> tuple[float, float, float]:
    """Goal, request and full pod of one target, as in `TargetColumns`."""
    full = full_pod(target, peak_target)
    if isinstance(target, UtilizationTarget):
        return target.percent, milli(target.request), full
    return milli(target.amount), 1, full


def policy_columns(terms: Sequence[Terms]) -> PolicyColumns:
    """The numbers of the policies of some rows."""
    columns = np.array([row.policy for row in terms], np.float64).T
    stated, resolved = columns[: -len(USUAL)], columns[-len(USUAL) :]
    typed = {
        name: column.astype(np.int64) if name in COUNT_COLUMNS else column
        for name, column in zip(USUAL, resolved, strict=True)
    }
    return PolicyColumns(dict(zip(stated_numbers(), stated, strict=True)), **typed)


def target_columns(terms: Sequence[Terms]) -> TargetColumns:
    """The targets of some rows with the same rules."""
    numbers = np.array([row.targets for row in terms], np.float64).reshape(len(terms), -1, 3)
    goal, request, full = np.moveaxis(numbers, (2, 1), (0, 1))
    return TargetColumns(_whole(goal), _whole(request), full)


def _whole(numbers: Floats) -> Counts:
    """Return 64-bit integers; a number that does not fit becomes 0, which no target can be."""
    fits = (numbers >= 0.0) & (numbers <= 2.0**53)
    return np.where(fits, numbers, 0.0).astype(np.int64)
