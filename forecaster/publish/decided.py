"""The decisions of a cycle: numbers as columns, and records that are made of them on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.decision import FORECAST_STATES, Hold, Reason, Recommendation, Resize, Scale, forecast_state
from forecaster.domain.policy import Policy
from forecaster.domain.workload import Workload
from forecaster.errors import unexpected
from forecaster.horizontal.clamps import CLAMPS
from forecaster.horizontal.columns import Floats, Names
from forecaster.horizontal.decide import Decisions
from forecaster.horizontal.record import unread_row
from forecaster.horizontal.row import INCOMPLETE, KNOWN, REASONS, SCALED
from forecaster.horizontal.sentences import SPARE, recommendation, scale_sentence
from forecaster.hpa.numbers import MAX_INT32
from forecaster.publish.offer import NO_COUNT, DecidedColumns
from forecaster.publish.record import ABSTAIN, MODE_CODES, OBSERVE, decided_row, encoded_stated, loss_to_survive
from forecaster.publish.values import encoded_readers

Column = NDArray[Any]
Group = tuple[NDArray[np.intp], Decisions]
REASONS_BY_COUNTS = frozenset({Reason.REACTIVE, Reason.FORECAST, Reason.GATED})
"""Reasons whose sentence needs no signal, unless there is more to say: pods that are woken, or not to be spared."""


class DecidedRows(Sequence["Recommendation"]):
    """Decisions about every workload of a cycle, in the order of the inventory.

    Numbers are columns; the record of a workload is made of them and of its texts on request, within the cycle. `sizes`
    are the decisions about the resources of each workload.
    """

    def __init__(
        self,
        at: datetime,
        workloads: Sequence[Workload],
        numbers: DecidedColumns,
        sizes: Sequence[Resize | Hold] = (),
    ) -> None:
        self.at, self.workloads, self.numbers, self._sizes = at, workloads, numbers, sizes
        self.ids = tuple(workload.id for workload in workloads)
        self.current = numbers.current
        self.replicas = np.where(numbers.recommended == NO_COUNT, numbers.current, numbers.recommended)
        """[row] the recommended count; the current one where it is held."""
        self.reason = numbers.reason
        """[row] a position in `horizontal.row.REASONS`."""
        self.spare = numbers.counts[SPARE] - numbers.counts[SPARE - 1]
        """[row] replicas that are added for the loss of a node or a zone, before the bounds."""
        self._verdicts: dict[int, Scale | Hold] = {}

    @cached_property
    def size_ids(self) -> NDArray[np.int64]:
        """[row] identity of the decision about its resources, which lives as long as these rows."""
        return np.fromiter(map(id, self._sizes), np.int64, len(self._sizes))

    def resources(self, index: int) -> Resize | Hold:
        """Return the decision about the resources of one workload."""
        return self._sizes[index]

    @property
    def signals(self) -> tuple[str, ...]:
        """The axis of columns by signal."""
        return self.numbers.signals

    @cached_property
    def columns(self) -> Mapping[str, Sequence[Sequence[Any]]]:
        """Return the columns by their names in a table, [plane][row]."""
        return self.numbers.planes()  # type: ignore[return-value]  # arrays are sequences here

    def name(self, code: int) -> bytes:
        """Return the text to which columns of names refer by this position."""
        return self.numbers.names[code]

    def verdict(self, index: int) -> Scale | Hold:
        """Return the decision about the count of one workload."""
        if index not in self._verdicts:
            self._verdicts[index] = self._verdict(index)
        return self._verdicts[index]

    def _verdict(self, index: int) -> Scale | Hold:
        reason = REASONS[self.reason[index]]
        unspared = not self.spare[index] and loss_to_survive(self, index) != "none"
        if reason not in REASONS_BY_COUNTS or unspared or not self.current[index]:
            return self._record(index).replicas
        numbers, shut = self.numbers, self.name(self.numbers.shut[index]).decode()
        counts = int(numbers.by_forecast[index]), int(numbers.reactive[index])
        return Scale(int(self.replicas[index]), reason, scale_sentence(reason, *counts, shut, ()))

    def _record(self, index: int) -> Recommendation:
        """Return the record of one workload; held with the reason where it cannot be made."""
        workload = self.workloads[index]
        try:
            return self._made(workload, index)
        except Exception as error:  # noqa: BLE001  the boundary of a record: nothing in one workload stops the others
            hold, hpa = Hold(Reason.FAILED, unexpected(error)), workload.autoscaler
            held = Recommendation(workload.id, self.at, workload.replicas, hold, workload.resources, hold)
            return replace(held, autoscaler=hpa.name, targets=hpa.targets) if hpa else held

    def _made(self, workload: Workload, index: int) -> Recommendation:
        row, columns, hpa = decided_row(self, index, self.at), self.numbers, workload.autoscaler
        record = recommendation(workload.id, row, workload.resources, self.resources(index))
        return replace(
            record,
            targets=hpa.targets if hpa else (),
            shadow=not (row.withheld or columns.acting[index]),
            offered=int(columns.count[index]) if isinstance(record.replicas, Scale) else None,
        )

    def __len__(self) -> int:
        return len(self.replicas)

    def __getitem__(self, index: int) -> Recommendation:  # type: ignore[override]  # nothing takes a slice
        return self._record(range(len(self))[index])

    def summary(self, index: int) -> Recommendation:
        """Return the record of one workload without its signals, and with clamps only where pods are to spare."""
        workload, decided = self.workloads[index], (self.verdict(index), self.resources(index))
        clamps = self._record(index).clamps if self.spare[index] else ()
        return Recommendation(
            workload.id, self.at, workload.replicas, decided[0], workload.resources, decided[1], clamps=clamps
        )

    def changed_since(self, before: DecidedRows | None, *, sizes: bool = True) -> list[int]:
        """Return the rows with another count, reason or size than before; all rows if the workloads are not the same.

        Sizes are compared where `sizes` says so: that takes a pass over all rows in Python.
        """
        if before is None or before.ids != self.ids:
            return list(range(len(self)))
        same = (self.replicas == before.replicas) & (self.reason == before.reason) & (self.spare == before.spare)
        same &= self.current == before.current
        return np.flatnonzero(~(same & (self.size_ids == before.size_ids)) if sizes else ~same).tolist()

    def at_maximum(self) -> int:
        """Count the workloads with a count that only their maximum limits; bounds are the last clamp."""
        numbers = self.numbers
        return int(np.count_nonzero((numbers.recommended != NO_COUNT) & (numbers.counts[-1] < numbers.counts[-2])))

    def verdicts(self) -> Counter[tuple[str, str]]:
        """Count workloads by verdict and reason."""
        counts = zip(REASONS, np.bincount(self.reason, minlength=len(REASONS)).tolist(), strict=True)
        return Counter({("scale" if reason in SCALED else "hold", reason.value): n for reason, n in counts if n})


def decided_columns(
    at: datetime, decided: DecidedRows, policies: Sequence[Policy], signals: tuple[str, ...]
) -> DecidedColumns:
    """Return the columns of decisions and policies; a policy that observes does not let the forecast act."""
    numbers, stated = decided.numbers.with_signals(signals), _stated(policies)
    derived = {"acting": numbers.acting & (stated["mode"] > OBSERVE), "state": _states(numbers)}
    return replace(numbers, at=at.timestamp(), **stated | derived)


def _states(numbers: DecidedColumns) -> NDArray[np.int8]:
    """The state of each forecast, by the one rule for it; equal words are read once."""
    rows = len(numbers.shut)
    foreseen = ~np.isnan(numbers.peak).all(axis=0) if len(numbers.peak) else np.zeros(rows, np.bool_)
    kinds, states = numbers.shut.astype(np.int64) * 2 + foreseen, np.full(rows, -1, np.int8)
    for kind in np.unique(kinds).tolist():
        state, _ = forecast_state(numbers.names[kind // 2].decode(), foreseen=bool(kind % 2))
        states[kinds == kind] = FORECAST_STATES.index(state)
    return np.where((numbers.nothing_decided >= 0) | (numbers.recommended == NO_COUNT), np.int8(-1), states)


def _stated(policies: Sequence[Policy]) -> dict[str, NDArray[Any]]:
    """Return the columns that the policies of the rows state."""
    rows = len(policies)
    different = {id(policy): policy for policy in policies}
    place = {key: number for number, key in enumerate(different)}
    which = np.fromiter((place[id(policy)] for policy in policies), np.intp, rows)

    def stated(values: Iterable[Any], dtype: Any) -> NDArray[Any]:
        return np.array([*values], dtype)[which] if rows else np.zeros(0, dtype)

    each = different.values()
    return {
        "mode": stated((MODE_CODES.index(policy.mode) for policy in each), np.int8),
        "abstain": stated((ABSTAIN.index(policy.publish.abstain) for policy in each), np.int8),
        "lowers": stated((policy.horizontal.scale_in_by_forecast for policy in each), np.bool_),
        "maximum": stated((policy.horizontal.max_replicas or MAX_INT32 for policy in each), np.int64),
        "last_for": stated((policy.publish.last_for.total_seconds() for policy in each), np.float64),
    }


MEDIAN, HIGH = 0.5, 0.95


def nothing_decided(rows: int, signals: Iterable[str] = (), targets: int = 0) -> DecidedColumns:
    """Return rows about which nothing was decided."""
    return DecidedColumns.new(rows, signals, target=targets, clamp=1 + len(CLAMPS))


def numbers_of(workloads: Sequence[Workload], reason: Reason, groups: Sequence[Group]) -> DecidedColumns:
    """The numbers of a fleet that was decided in groups of rows; those in no group are held for that reason."""
    signals = tuple(dict.fromkeys(str(signal) for _, group in groups for signal in group.inputs.rules.signals))
    targets = max((len(group.inputs.rules.kinds) for _, group in groups), default=0)
    numbers = nothing_decided(len(workloads), signals, targets)
    numbers.reason[:], numbers.current[:] = REASONS.index(reason), [workload.replicas for workload in workloads]
    for positions, group in groups:
        _put_group(numbers, positions, group)
        for target in range(len(group.inputs.rules.kinds)):
            _put_target(numbers, positions, group, target)
    return numbers


def held_numbers(workloads: Sequence[Workload], reason: Reason, why: Callable[[Workload], str]) -> DecidedColumns:
    """Return the columns of workloads that are all held for one reason, whatever is known of them."""
    numbers, names = numbers_of(workloads, reason, ()), Names()
    numbers.nothing_decided[:] = numbers.reason
    numbers.stated[:] = names.codes(encoded_stated(unread_row(workload)) for workload in workloads)
    numbers.hold[:] = names.codes(why(workload).encode() for workload in workloads)
    numbers.readers[:] = names.codes(
        encoded_readers(workload.autoscaler.targets if workload.autoscaler else ()) for workload in workloads
    )
    return replace(numbers, names=tuple(names))


def _put_group(numbers: DecidedColumns, positions: NDArray[np.intp], group: Decisions) -> None:
    """Put the rows of a group into the columns [row] and [clamp, row]."""
    numbers.reason[positions] = group.reason
    numbers.recommended[positions] = np.where(group.scales, group.replicas, NO_COUNT)
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
