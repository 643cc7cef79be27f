"""Inputs of the decision at one instant for rows with the same rules, as arrays over rows.

Every number of a policy is a column; only settings that change the steps themselves are rules. So a fleet has a handful
of groups, however many policies its owners write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.policy_numbers import policy_numbers, stated_numbers
from forecaster.horizontal.columns import Band, Codes, Counts, Flags, Floats
from forecaster.horizontal.events import EventColumns
from forecaster.horizontal.row import FIRST_NUMBER, LARGEST
from forecaster.hpa.numbers import MAX_INT32

Sizing = Literal["quantile", "newsvendor"]


class Kind(NamedTuple):
    """Division of a demand by a target: as a share of a request or as an amount; among ready pods or all pods."""

    signal: str
    of_request: bool
    of_all_pods: bool = False
    """Whether the target is divided by all pods, as for an External metric of type AverageValue (HPA rules §8.4)."""
    survives_zero: bool = False
    """Whether the demand is measured without pods."""


class Rules(NamedTuple):
    """Rules shared by the rows of one group."""

    sizing: Sizing
    scale_in_by_forecast: bool
    kinds: tuple[Kind, ...]
    """One per target, in the order of the HPA."""
    levels: tuple[float, ...] = ()
    """Quantile levels of a forecast."""
    keeps_size: bool = False
    """Whether nothing says how small the workloads may be: no HPA, and no minimum in their policy."""
    woken: bool = False
    """Whether an HPA with minReplicas 0 scales the workloads to zero: a forecast brings the first pod back there."""

    @property
    def wakes(self) -> bool:
        """Whether a forecast may take the last pod and bring the first one back, where the minimum is 0."""
        return self.sizing == "newsvendor" and self.scale_in_by_forecast

    @property
    def comes_back(self) -> bool:
        """Whether anything is measured at zero that can bring the first pod back."""
        return any(kind.survives_zero for kind in self.kinds)

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals of the targets, each once."""
        return tuple(dict.fromkeys(kind.signal for kind in self.kinds))


@dataclass(frozen=True, eq=False)
class PolicyColumns:
    """The numbers of the policies, [row] each."""

    numbers: Mapping[str, Floats]
    """Numbers that depend on the policy only, by the names of their settings (domain/policy_numbers.py). Durations are
    seconds."""
    min_replicas: Counts
    max_replicas: Counts
    own_max_replicas: Counts
    """Maximum stated by the policy itself; no bound where only the HPA has one, which the HPA enforces itself."""
    lead_time: Floats
    """Seconds; decides nothing here and is reported with events."""
    max_sample_age: Floats
    """Seconds; reported where a sample is too old."""

    @classmethod
    def usual(cls, rows: int, **columns: NDArray[Any]) -> PolicyColumns:
        """Return rows in which every number is the default, except for these columns."""
        numbers = {name: np.full(rows, policy_numbers()[name].default) for name in stated_numbers()}
        resolved = {name: np.full(rows, USUAL[name]) for name in USUAL}
        return cls(numbers={name: columns.pop(name, usual) for name, usual in numbers.items()}, **(resolved | columns))

    def __getitem__(self, name: str) -> Floats:
        """Return the column of a number that policies alone decide, by the name of its setting."""
        return self.numbers[name]

    @cached_property
    def impossible(self) -> Codes:
        """[row] `codes.FIRST_NUMBER` and the position of a number that no decision can be made with; 0 for none."""
        code = np.zeros(len(self.min_replicas), np.int8)
        for position, bad in enumerate(self._impossible(), FIRST_NUMBER):
            code = np.where((code == 0) & bad, np.int8(position), code)
        return code

    def number_of(self, code: int, row: int) -> tuple[str, float]:
        """Name and value of the impossible number that a code of `impossible` means."""
        name = (*stated_numbers(), "min_replicas", "max_replicas")[code - FIRST_NUMBER]
        column = self.numbers[name] if name in self.numbers else getattr(self, name)
        return name, column[row]

    def _impossible(self) -> Iterator[Flags]:
        """One mask [row] for each number: those that policies alone decide, and both bounds."""
        for name in stated_numbers():
            number, column = policy_numbers()[name], self.numbers[name]
            unstated = np.isnan(column) & np.isnan(number.default)
            yield ~(unstated | _between(column, number.lowest, number.highest))
        lowest, highest = self.min_replicas, self.max_replicas
        yield (lowest < 0) | ((lowest > highest) & (highest >= 1))
        yield (highest < 1) | (highest > MAX_INT32)

    @cached_property
    def possible(self) -> PolicyColumns:
        """Return the columns with usual numbers in place of impossible ones: those rows are masked."""
        bad = self.impossible > 0
        if not bad.any():
            return self
        usual = PolicyColumns.usual(len(bad))
        numbers = {name: np.where(bad, usual[name], column) for name, column in self.numbers.items()}
        return PolicyColumns(
            numbers, **{name: np.where(bad, getattr(usual, name), getattr(self, name)) for name in USUAL}
        )

    @cached_property
    def in_use(self) -> frozenset[str]:
        """Numbers that are above zero in some row: a clamp without a stated number has nothing to do."""
        return frozenset(name for name, column in self.numbers.items() if (column > 0.0).any())

    @cached_property
    def band(self) -> Band:
        """The edges of the tolerance."""
        return Band.of(self["tolerance"])

    @cached_property
    def price(self) -> Floats:
        """The share of a pod that has to be used, ratio."""
        return 1.0 - self["quantile"]

    @cached_property
    def single_price(self) -> float | None:
        """The price where all rows have the same."""
        return _single(self.price)

    @cached_property
    def window(self) -> float | None:
        """The window of stabilization in seconds where all rows have the same."""
        return _single(self["scale_down_stabilization"])

    @cached_property
    def keep(self) -> float:
        """The longest time that a recommendation is looked back for by any clamp, in seconds."""
        looking_back = (name for name in self.in_use if policy_numbers()[name].decides.looks_back)
        return max((float(np.nanmax(self[name])) for name in looking_back), default=0.0)

    @cached_property
    def may_wake(self) -> Flags | None:
        """[row] where the minimum is 0; None where it is nowhere."""
        zero = self.min_replicas == 0
        return zero if zero.any() else None

    def take(self, rows: Counts) -> PolicyColumns:
        """Return the policies of these rows."""
        numbers = {name: column[rows] for name, column in self.numbers.items()}
        return PolicyColumns(numbers, **{name: getattr(self, name)[rows] for name in USUAL})


USUAL = {
    "min_replicas": 1,
    "max_replicas": MAX_INT32,
    "own_max_replicas": MAX_INT32,
    "lead_time": 0.0,
    "max_sample_age": np.nan,
}
"""Columns beside those that policies alone decide, with harmless numbers."""


def _between(column: Floats, low: float, high: float) -> Flags:
    """Return where a number is in a range; NaN is not."""
    return np.asarray((column >= low) & (column <= high))


def _single(column: Floats) -> float | None:
    if not column.size:
        return 0.0
    first = float(column[0])
    return first if bool((column == first).all()) else None


@dataclass(frozen=True, eq=False)
class TargetColumns:
    """Intended load of one pod, [target, row] each."""

    goal: Counts
    """Whole percent of the request, or milli-units."""
    request: Counts
    """Request of one pod in milli-units; 1 where the target is not a share of the request."""
    full: Floats
    """The demand that fills one pod, in the signal's unit."""

    @cached_property
    def impossible(self) -> Flags:
        """[row] where a target divides by nothing, or by more than can be counted."""
        bad = (self.goal < 1) | (self.request < 1) | ~_between(self.full, MIN_POD_CAPACITY, LARGEST)
        bad |= (self.goal > MAX_EXACT_INTEGER) | (self.request > MAX_EXACT_INTEGER)
        return np.asarray(bad.any(axis=0))

    @cached_property
    def possible(self) -> TargetColumns:
        """Return the columns with 1 in place of impossible numbers: those rows are masked."""
        bad = self.impossible
        if not bad.any():
            return self
        return TargetColumns(np.where(bad, 1, self.goal), np.where(bad, 1, self.request), np.where(bad, 1.0, self.full))

    def take(self, rows: Counts) -> TargetColumns:
        """Return the targets of these rows."""
        return TargetColumns(self.goal[:, rows], self.request[:, rows], self.full[:, rows])


MIN_POD_CAPACITY = 1e-9
"""Smallest pod capacity, in any unit: less is a mistake, and counts by it exceed 32 bits."""
MAX_EXACT_INTEGER = 2**53
"""Milli-units of one pod above which sums over pods may leave 64 bits."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """One group of rows at one instant. Amounts are totals over all pods in the unit of the signal, NaN if unknown."""

    rules: Rules
    policy: PolicyColumns
    targets: TargetColumns
    current: Counts
    """[row] `spec.replicas`."""
    ready: Counts
    """[row] ready pods."""
    measured: Floats
    """[target, row] the latest demand that is fresh enough."""
    unseen: Codes
    """[target, row] why `measured` is NaN, `NO_SAMPLE` if it is not said; or that it is `INCOMPLETE`."""
    age: Floats
    """[target, row] seconds since the latest sample, fresh or not."""
    peak: Floats
    """[target, row] the coming peak at the policy's quantile."""
    low: Floats
    """[target, row] its 10 % quantile."""
    quantiles: Sequence[Floats]
    """[target][level, row] its whole distribution, not crossing; needed by newsvendor sizing only."""
    acting: Flags
    """[row] whether the gate lets the forecast have its say."""
    events: EventColumns
    """Effects of known events."""
    lost: Floats
    """[row] share of the pods in the node or zone whose loss is to be survived; 0 where none is, NaN if unknown."""
    unreadable: Flags
    """[row] whether the policy or the targets could not be read at all."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.current)
