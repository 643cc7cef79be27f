"""Ports: protocols of the cycle's surroundings. The edge implements these; the tests fake them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from forecaster.domain.decision import Recommendation
    from forecaster.domain.report import Effected, ForecastScore
    from forecaster.domain.signal import Signal
    from forecaster.domain.window import Block, Gap, Inventory, Window
    from forecaster.domain.workload import ContainerBlock, ContainerFacts, WorkloadId
    from forecaster.publish.decided import DecidedRows


class Source(Protocol):
    """Source of the inventory and of demand. Raises `SourceError` when it cannot answer."""

    def inventory(self, at: datetime) -> Inventory:
        """Every workload at `at`."""

    def latest(self, signal: Signal, at: datetime) -> Block:
        """The demand of every workload at exactly `at`: one column."""

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        """Demand from `start` to `end`, both included and on the grid of `step`, in slices that fit in memory."""


@runtime_checkable
class ContainerSource(Protocol):
    """A source that reports containers. Raises `SourceError` when it cannot."""

    def containers(self, at: datetime) -> ContainerFacts:
        """Return the facts about every container at `at`."""

    def container_usage(
        self, signal: Signal, start: datetime, end: datetime, step: timedelta
    ) -> Iterator[ContainerBlock]:
        """Usage of each container in the workload's hottest pod, as `history` has demand; CPU or memory."""


class Histories(Protocol):
    """Store of demand between cycles. Raises `StoreError` when the clock goes back."""

    @property
    def signals(self) -> tuple[Signal, ...]:
        """The kinds of demand that are kept, without the pods."""

    def gaps(self, now: datetime) -> list[Gap]:
        """Move on to `now` and say which instants are not answered yet, the fresh minutes first."""

    def write(self, block: Block) -> None:
        """Keep what a source answered."""

    def window(self, signal: Signal, step: timedelta) -> Window:
        """Return the history of a signal by minutes or by five minutes; a view for the length of this cycle."""

    def ask_again(self, signal: str, without: Collection[WorkloadId]) -> None:
        """Mark a signal's history as unanswered, because more workloads have it now; drop the rows `without` it."""

    def forget(self, present: Mapping[str, int]) -> int:
        """Drop workloads that have been silent for long; how many series that were."""


class StageWatch(Protocol):
    """Observes something long, and decides what becomes of it after Ctrl-C."""

    def began(self, stage: str, share: float) -> None:
        """A stage begins; `share` of the whole, 0-1, lies behind it."""

    def interrupted(self, stage: str) -> bool:
        """Ctrl-C came within this stage: whether the rest is done with what is known."""


class Ledger(Protocol):
    """Store of decisions and the later errors of forecasts. Raises `StoreError`."""

    def record(self, at: datetime, records: Sequence[Recommendation], present: Sequence[WorkloadId] = ()) -> None:
        """Keep the decisions that differ from the last kept ones; `present` are workloads that are there beside them.

        Records may lack signals, and clamps where no pods are to spare.
        """

    def score(self, scores: Sequence[ForecastScore]) -> None:
        """Keep errors of forecasts that have matured."""


class Actuator(Protocol):
    """Acts on the cluster by the offers of a cycle."""

    def act(self, now: datetime) -> Mapping[str, Effected]:
        """Act; return the writes and failures by kind of effect. Raises errors that the step's boundary reports."""


class Publisher(Protocol):
    """Hands one immutable table to the serving process. Raises `StoreError`."""

    def publish(self, at: datetime, recommendations: DecidedRows) -> None:
        """Replace the published table as a whole."""
