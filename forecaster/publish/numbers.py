"""The numbers of a fleet's decisions as named columns: what offers, the table and records are made of.

A cycle makes them of its groups; where parts of a fleet were decided in several processes, they are laid side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forecaster.domain.decision import Reason
from forecaster.horizontal.clamps import CLAMPS
from forecaster.horizontal.codes import INCOMPLETE, KNOWN, SCALED, UNKNOWN
from forecaster.horizontal.codes import REASONS as DECIDED_REASONS
from forecaster.publish.offer import BLOCKED, DECIDED, FROZEN, HELD, NO_COUNT
from forecaster.publish.record import REASON_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from forecaster.horizontal.decide import Decisions
    from forecaster.publish.offer import Counts, Floats

    Column = NDArray[Any]
    Group = tuple[NDArray[np.intp], Decisions]

STANDING = {Reason.NO_DATA: BLOCKED, Reason.STALE: BLOCKED, Reason.FROZEN: FROZEN}
"""How a count stands that is held for a reason; for all others it is `HELD`."""
LOW, MEDIAN, HIGH = 0.1, 0.5, 0.95
INT64, INT32, INT8, FLOAT, BOOL = (np.dtype(name) for name in ("int64", "int32", "int8", "float64", "bool"))

ROW_COLUMNS: Mapping[str, tuple[np.dtype[Any], float]] = {
    "standing": (INT8, HELD),
    "reason": (INT8, 0),
    "current": (INT64, 0),
    "recommended": (INT64, NO_COUNT),
    "acting": (BOOL, False),
    "reactive": (INT64, 0),
    "joined": (INT64, 0),
    "count": (INT64, 0),
    "lead": (FLOAT, 0.0),
    "by_forecast": (INT32, UNKNOWN),
    "outage_until": (FLOAT, 0.0),
}
"""Columns [row]: their type, and what a row has about which nothing was decided. Meanings: `offer.DecidedColumns`.

`reason` is a position in `record.REASON_WORDS`; `by_forecast` the count by the forecast, before any clamp;
`outage_until` epoch seconds until when the floor of an outage holds.
"""
BY_CLAMP: Mapping[str, tuple[np.dtype[Any], float]] = {"counts": (INT32, UNKNOWN)}
"""[1 + clamp, row] the reactive count and those after each clamp."""
SIGNAL_COLUMNS: Mapping[str, tuple[np.dtype[Any], float]] = {
    **dict.fromkeys(("pod", "measured", "measured_at", "peak", "low", "median", "high", "quantile"), (FLOAT, np.nan)),
    "replicas": (INT64, NO_COUNT),
    "decides": (BOOL, False),
    "incomplete": (BOOL, False),
}
"""[signal, row] as in `offer.DecidedColumns`."""
BY_TARGET: Mapping[str, tuple[np.dtype[Any], float]] = {
    "asked": (INT32, UNKNOWN),
    "foreseen": (INT32, UNKNOWN),
    "unseen": (INT8, KNOWN),
    "age": (FLOAT, np.nan),
}
"""[target, row] of each target that is usable, in the order of a row: replicas by what is measured and by the forecast,
why there is no measurement (`horizontal.codes`), seconds since the latest sample."""

TOLD: Mapping[str, str] = {
    **{name: name for name in ("current", "recommended", "reason", "by_forecast", "outage_until")},
    **{name: name for name in ("counts", *BY_TARGET, "measured", "peak", "low", "median", "high")},
    "forecast_quantile": "quantile",
}
"""What a row is told by: columns by the names that they have in a table."""
_REASON_WORD = np.array([REASON_WORDS.index(str(reason)) for reason in DECIDED_REASONS], np.int8)
_SCALES = np.array([reason in SCALED for reason in DECIDED_REASONS])
_STANDING = np.array(
    [DECIDED if reason in SCALED else STANDING.get(reason, HELD) for reason in DECIDED_REASONS], np.int8
)
DECIDED_REASON = np.zeros(len(REASON_WORDS), np.int8)
"""Position in `horizontal.codes.REASONS` by position in `record.REASON_WORDS`; 0 for reasons that no count has."""
DECIDED_REASON[_REASON_WORD] = np.arange(len(DECIDED_REASONS))


class FleetNumbers(NamedTuple):
    """What was decided about every row of a fleet."""

    signals: tuple[str, ...]
    """The axis of columns by signal."""
    columns: Mapping[str, Column]
    """Columns by name, [row] or [plane, row]."""

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.columns["current"])

    def first(self, rows: int) -> FleetNumbers:
        """The first so many rows."""
        return self._replace(columns={name: column[..., :rows] for name, column in self.columns.items()})

    def by_signals(self, signals: tuple[str, ...]) -> Mapping[str, Column]:
        """The columns, with these signals on their axis."""
        if signals == self.signals:
            return self.columns
        wider = nothing_decided(self.rows, signals, len(self.columns["asked"])).columns
        planes = [signals.index(signal) for signal in self.signals]
        for name in SIGNAL_COLUMNS:
            wider[name][planes] = self.columns[name]
        return {**self.columns, **{name: wider[name] for name in SIGNAL_COLUMNS}}


def nothing_decided(rows: int, signals: tuple[str, ...] = (), targets: int = 0) -> FleetNumbers:
    """Rows about which nothing was decided."""
    planes = ((BY_CLAMP, (1 + len(CLAMPS), rows)), (SIGNAL_COLUMNS, (len(signals), rows)), (BY_TARGET, (targets, rows)))
    columns: dict[str, Column] = {name: np.full(rows, nothing, kind) for name, (kind, nothing) in ROW_COLUMNS.items()}
    for named, shape in planes:
        columns |= {name: np.full(shape, nothing, kind) for name, (kind, nothing) in named.items()}
    return FleetNumbers(signals, columns)


def numbers_of(current: Counts, replicas: Counts, reason: Column, groups: Sequence[Group]) -> FleetNumbers:
    """The numbers of a fleet that was decided in groups of rows; a row of which nothing is known is in none."""
    signals = tuple(dict.fromkeys(str(signal) for _, group in groups for signal in group.inputs.rules.signals))
    targets = max((len(group.inputs.rules.kinds) for _, group in groups), default=0)
    found = nothing_decided(len(current), signals, targets)
    columns = found.columns
    columns["standing"][:], columns["reason"][:] = _STANDING[reason], _REASON_WORD[reason]
    columns["current"][:], columns["recommended"][:] = current, np.where(_SCALES[reason], replicas, NO_COUNT)
    for positions, group in groups:
        _put_group(columns, positions, group)
        for target in range(len(group.inputs.rules.kinds)):
            _put_target(found, positions, group, target)
    return found


def held_numbers(current: Counts, reason: Reason) -> FleetNumbers:
    """The numbers of rows that are all held for one reason."""
    code = np.full(len(current), DECIDED_REASONS.index(reason), np.int8)
    return numbers_of(current, current, code, ())


def side_by_side(rows: int, parts: Iterable[tuple[NDArray[np.intp], FleetNumbers]]) -> FleetNumbers:
    """The numbers of a fleet of so many rows, of which each part has those at its positions."""
    parts = list(parts)
    signals = tuple(dict.fromkeys(signal for _, part in parts for signal in part.signals))
    found = nothing_decided(rows, signals, max((len(part.columns["asked"]) for _, part in parts), default=0))
    for positions, part in parts:
        planes = [signals.index(signal) for signal in part.signals]
        for name, column in part.columns.items():
            into = found.columns[name]
            if column.ndim == 1:
                into[positions] = column
                continue
            for plane, values in zip(planes if name in SIGNAL_COLUMNS else range(len(column)), column, strict=True):
                into[plane][positions] = values
    return found


def _put_group(columns: Mapping[str, Column], positions: NDArray[np.intp], group: Decisions) -> None:
    """Put the rows of a group into the columns."""
    columns["acting"][positions] = group.inputs.acting
    columns["reactive"][positions] = group.reactive
    columns["joined"][positions] = group.counts[0]
    columns["count"][positions] = group.offered
    columns["lead"][positions] = group.inputs.policy.lead_time
    columns["by_forecast"][positions] = group.forecast
    columns["outage_until"][positions] = group.state.until
    for plane, count in enumerate((group.reactive, *group.counts)):
        columns["counts"][plane, positions] = count


def _put_target(numbers: FleetNumbers, positions: NDArray[np.intp], group: Decisions, target: int) -> None:
    """Put one target of a group into its own columns, and into those of its signal.

    Of two targets on one signal the larger counts: more demand, or a pod that carries more.
    """
    inputs, kind, columns = group.inputs, group.inputs.rules.kinds[target], numbers.columns
    signal, readable = numbers.signals.index(str(kind.signal)), group.failed == 0
    for name, (values, known) in _of_signal(group, target).items():
        column = columns[name][signal]
        column[positions] = np.fmax(column[positions], np.where(known, values, np.nan))
    forecast = group.proposals.forecast[target]
    known = np.where(forecast >= 0, forecast, NO_COUNT)
    columns["replicas"][signal, positions] = np.maximum(columns["replicas"][signal, positions], known)
    columns["decides"][signal, positions] |= readable
    columns["incomplete"][signal, positions] |= group.unseen[target] == INCOMPLETE
    columns["asked"][target, positions] = group.proposals.reactive[target]
    columns["foreseen"][target, positions] = forecast
    columns["unseen"][target, positions] = group.unseen[target]
    columns["age"][target, positions] = inputs.age[target]


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
        "quantile": (inputs.policy.quantile, foreseen),
    }


def _quantile(group: Decisions, target: int, level: float) -> Floats:
    """A quantile of the coming peak [row]; NaN where the whole distribution is not known."""
    levels, inputs = group.inputs.rules.levels, group.inputs
    if level not in levels or len(inputs.quantiles) <= target:
        return np.full(inputs.rows, np.nan)
    return np.asarray(inputs.quantiles[target][levels.index(level)], np.float64)
