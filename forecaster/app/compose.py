"""Builds cycles from settings: which implementation stands behind each port."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from forecaster.cycle.decide import Decider
from forecaster.cycle.gates import ForecastGates
from forecaster.cycle.lead_times import LeadTimes
from forecaster.cycle.observed import Observed
from forecaster.cycle.run import Cycle, Effects
from forecaster.cycle.sizes import PodSizes
from forecaster.cycle.steps import expect_records
from forecaster.errors import StoreError
from forecaster.forecasting.forecaster import FITS, Forecaster
from forecaster.sources.factory import source_of
from forecaster.store.history import HistoryStore
from forecaster.store.state import ObservedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from forecaster.config.settings import Settings
    from forecaster.domain.decision import Recommendation
    from forecaster.domain.report import ForecastScore
    from forecaster.domain.workload import WorkloadId
    from forecaster.ports import Changes, Histories, Ledger, Publisher, Source, Watch

ALL_AT_ONCE = 1_000_000
JUDGED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Nowhere:
    """Publisher and ledger of a command that only prints."""

    def publish(self, at: datetime, recommendations: Sequence[Recommendation]) -> None:
        """Nothing is published."""

    def record(self, at: datetime, recommendations: Sequence[Recommendation], changes: Changes | None = None) -> None:
        """Nothing is kept."""

    def score(self, scores: Sequence[ForecastScore]) -> None:
        """Nothing is kept."""


def single_cycle(
    settings: Settings,
    now: datetime,
    *,
    source: Source | None = None,
    shown: Callable[[WorkloadId], bool] = lambda _: True,
    watch: Watch | None = None,
) -> Cycle:
    """A cycle that fits everything at once and leaves no trace: for `once`, `explain` and tests.

    Forecasts that were not judged yet are judged at once, of the workloads that are `shown` first, and so many that
    it takes some seconds.

    Where a service keeps its state in the directory of the settings, what it has seen of workloads is read there.
    """
    observed = nothing_observed(settings)
    observed.gates = ForecastGates(JUDGED_AT_ONCE, shown, settings.forecast.model)
    with suppress(StoreError):  # whose file that is says so itself
        observed_file(settings, observed).load()
    return build_cycle(
        settings,
        source or source_of(settings),
        HistoryStore(settings.signal_table.measured, settings.history, now=now),
        publisher=Nowhere(),
        ledger=Nowhere(),
        fits=ALL_AT_ONCE,
        observed=observed,
        learns_first=True,
        watch=watch,
    )


def build_cycle(
    settings: Settings,
    source: Source,
    history: Histories,
    *,
    publisher: Publisher,
    ledger: Ledger,
    fits: int = FITS,
    observed: Observed | None = None,
    learns_first: bool = False,
    watch: Watch | None = None,
) -> Cycle:
    """The parts of a cycle put together, in a process that is made ready for them."""
    prepare_process()
    return Cycle(
        source=source,
        history=history,
        forecaster=Forecaster(settings.forecast.model, settings.forecast.refit_after, fits),
        policies=settings.policies,
        effects=Effects(publisher, ledger),
        seconds=time.perf_counter,
        decider=Decider(observed=observed or nothing_observed(settings)),
        sizes=PodSizes(first=ALL_AT_ONCE) if learns_first else PodSizes(),
        learns_first=learns_first,
        budget=timedelta(hours=1) if learns_first else settings.cycle.interval / 2,
        watch=watch,
    )


def nothing_observed(settings: Settings) -> Observed:
    """What is known of workloads before anything was seen of them."""
    return Observed(LeadTimes(settings.cycle.interval), ForecastGates(model=settings.forecast.model))


def observed_file(settings: Settings, observed: Observed) -> ObservedFile[Observed]:
    """Where the service keeps it."""
    return ObservedFile(settings.state.directory / "observed.json", observed)


def prepare_process() -> None:
    """One thread for linear algebra, and a garbage collector that looks seldom (`steps.garbage`).

    Models are small matrices by the thousand. A thread per core of the host, which a container has no right to, waits
    for the others instead: on two busy cores a fit took six times the CPU.
    """
    threadpool_limits(1)
    expect_records(0)
