"""Decisions of a cycle's groups, laid into the columns of the fleet (`offer.DecidedColumns`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.horizontal.clamps import CLAMPS
from forecaster.horizontal.codes import INCOMPLETE, KNOWN, REASONS, SCALED
from forecaster.horizontal.columns import Names
from forecaster.horizontal.record import unread_row
from forecaster.publish.offer import NO_COUNT, DecidedColumns
from forecaster.publish.record import encoded_stated
from forecaster.publish.values import encoded_readers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from forecaster.domain.decision import Reason
    from forecaster.domain.workload import Workload
    from forecaster.horizontal.decide import Decisions
    from forecaster.horizontal.numbers import Counts, Floats

    Column = NDArray[Any]
    Group = tuple[NDArray[np.intp], Decisions]

MEDIAN, HIGH = 0.5, 0.95
_SCALES = np.array([reason in SCALED for reason in REASONS])


def nothing_decided(rows: int, signals: Iterable[str] = (), targets: int = 0) -> DecidedColumns:
    """Return rows about which nothing was decided."""
    return DecidedColumns.new(rows, signals, target=targets, clamp=1 + len(CLAMPS))


def numbers_of(current: Counts, replicas: Counts, reason: Column, groups: Sequence[Group]) -> DecidedColumns:
    """The numbers of a fleet that was decided in groups of rows; a row of which nothing is known is in none."""
    signals = tuple(dict.fromkeys(str(signal) for _, group in groups for signal in group.inputs.rules.signals))
    targets = max((len(group.inputs.rules.kinds) for _, group in groups), default=0)
    numbers = nothing_decided(len(current), signals, targets)
    numbers.reason[:], numbers.current[:] = reason, current
    numbers.recommended[:] = np.where(_SCALES[reason], replicas, NO_COUNT)
    for positions, group in groups:
        _put_group(numbers, positions, group)
        for target in range(len(group.inputs.rules.kinds)):
            _put_target(numbers, positions, group, target)
    return numbers


def held_numbers(workloads: Sequence[Workload], reason: Reason, why: Callable[[Workload], str]) -> DecidedColumns:
    """Return the columns of workloads that are all held for one reason, whatever is known of them."""
    current = np.fromiter((workload.replicas for workload in workloads), np.int64, len(workloads))
    code, names = np.full(len(current), REASONS.index(reason), np.int8), Names()
    numbers = numbers_of(current, current, code, ())
    numbers.nothing_decided[:] = code
    numbers.stated[:] = names.codes(encoded_stated(unread_row(workload)) for workload in workloads)
    numbers.hold[:] = names.codes(why(workload).encode() for workload in workloads)
    numbers.readers[:] = names.codes(
        encoded_readers(workload.autoscaler.targets if workload.autoscaler else ()) for workload in workloads
    )
    return replace(numbers, names=tuple(names))


def _put_group(numbers: DecidedColumns, positions: NDArray[np.intp], group: Decisions) -> None:
    """Put the rows of a group into the columns [row] and [clamp, row]."""
    numbers.acting[positions] = group.inputs.acting
    numbers.count[positions] = group.offered
    numbers.lead[positions] = group.inputs.policy.lead_time
    numbers.by_forecast[positions] = group.forecast
    numbers.outage_until[positions] = group.state.until
    for plane, count in enumerate((group.reactive, *group.counts)):
        numbers.counts[plane, positions] = count


def _put_target(numbers: DecidedColumns, positions: NDArray[np.intp], group: Decisions, target: int) -> None:
    """Put one target of a group into its own columns, and into those of its signal.

    Of two targets on one signal the larger counts: more demand, or a larger pod capacity.
    """
    inputs, kind = group.inputs, group.inputs.rules.kinds[target]
    signal = numbers.signals.index(str(kind.signal))
    for name, (values, known) in _of_signal(group, target).items():
        column = getattr(numbers, name)[signal]
        column[positions] = np.fmax(column[positions], np.where(known, values, np.nan))
    forecast = group.proposals.forecast[target]
    known = np.where(forecast >= 0, forecast, NO_COUNT)
    numbers.replicas[signal, positions] = np.maximum(numbers.replicas[signal, positions], known)
    numbers.decides[signal, positions] |= group.failed == 0
    numbers.incomplete[signal, positions] |= group.unseen[target] == INCOMPLETE
    numbers.asked[target, positions] = group.proposals.reactive[target]
    numbers.foreseen[target, positions] = forecast
    numbers.unseen[target, positions] = group.unseen[target]
    numbers.age[target, positions] = inputs.age[target]


def _of_signal(group: Decisions, target: int) -> Mapping[str, tuple[Floats, Column]]:
    """The amounts of a target, and where each is known."""
    inputs, kind = group.inputs, group.inputs.rules.kinds[target]
    goal, code = inputs.targets.goal[target], group.unseen[target]
    pod = goal * (inputs.targets.request[target] / 1e5) if kind.of_request else goal / 1000.0
    sampled, foreseen = (code == INCOMPLETE) | (code == KNOWN), ~np.isnan(inputs.peak[target])
    return {
        "pod": (pod, group.failed == 0),
        "measured": (inputs.measured[target], sampled),
        "measured_at": (group.now - inputs.age[target], sampled),
        "peak": (inputs.peak[target], foreseen),
        "low": (inputs.low[target], foreseen),
        "median": (_quantile(group, target, MEDIAN), foreseen),
        "high": (_quantile(group, target, HIGH), foreseen),
        "forecast_quantile": (inputs.policy["quantile"], foreseen),
    }


def _quantile(group: Decisions, target: int, level: float) -> Floats:
    """A quantile of the coming peak [row]; NaN where the whole distribution is not known."""
    levels, inputs = group.inputs.rules.levels, group.inputs
    if level not in levels or len(inputs.quantiles) <= target:
        return np.full(inputs.rows, np.nan)
    return np.asarray(inputs.quantiles[target][levels.index(level)], np.float64)
