"""The time of a cycle, in virtual seconds: fits, sizes and other steps get a share each, and none waits for ever."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest

from forecaster.cycle.sizes import PodSizes
from forecaster.cycle.steps import PATIENCE, Steps, TimeShare
from forecaster.domain.signal import BUILT_IN
from forecaster.domain.window import DAY
from forecaster.forecasting.shards import ROWS, Shards
from models import LastValue
from tests.support.fakes import CycleOnFakes, FakePublisher, load
from tests.unit.cycle.test_containers import WEB, Telling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from forecaster.cycle.run import Outcome
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import ContainerBlock
    from models import Fitted, Panel

WORKLOADS = 3 * ROWS
FIT_SECONDS, PORTION, PORTION_SECONDS, DAY_SECONDS = 20.0, 48, 3.0, 20.0


@dataclass
class Clock:
    """A clock that work advances."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class SlowModel:
    """The model of the last value, whose fit takes twenty seconds; until then the last value stands in."""

    clock: Clock
    fits: int = 0
    name: str = "slow"

    def fit(self, panel: Panel) -> Fitted:
        self.clock.seconds += FIT_SECONDS
        self.fits += 1
        return LastValue().fit(panel)

    def stand_in(self, panel: Panel) -> Fitted:
        return LastValue().fit(panel)


@dataclass
class SlowSizes(PodSizes):
    """Sizes of 48 workloads at a time, three seconds for each portion."""

    clock: Clock | None = None
    first: int = PORTION

    def _sized(self, *args, **kwargs):  # type: ignore[no-untyped-def]  # noqa: ANN002, ANN003, ANN202
        assert self.clock
        self.clock.seconds += PORTION_SECONDS
        return super()._sized(*args, **kwargs)


@dataclass
class SlowContainers(Telling):
    """A source that takes twenty seconds for a day of usage by container."""

    clock: Clock = field(default_factory=Clock)

    def container_usage(
        self, signal: Signal, start: datetime, end: datetime, step: timedelta
    ) -> Iterator[ContainerBlock]:
        self.clock.seconds += DAY_SECONDS * ((end - start) / DAY)
        return super().container_usage(signal, start, end, step)


class SlowPublisher(FakePublisher):
    """Spends more than the budget of a cycle on every offer."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def publish(self, *args, **kwargs) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN002, ANN003
        self.clock.seconds += 40
        super().publish(*args, **kwargs)


class Start:
    """The first cycles of a service whose fleet takes longer to fit and to size than one cycle has time for."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.model = SlowModel(self.clock)
        self.stage = CycleOnFakes(*(load(f"web-{i}") for i in range(WORKLOADS)), learns_first=False)
        self.stage.cycle.seconds = self.clock
        self.stage.cycle.budget = timedelta(seconds=30)
        self.stage.cycle.forecaster.signals = {signal: Shards(self.model) for signal in BUILT_IN.demand}
        self.stage.cycle.sizes = SlowSizes(clock=self.clock)

    def minutes(self, first: int, last: int) -> list[Outcome]:
        return self.stage.run_minutes(first, last)

    @property
    def sized(self) -> int:
        return len(self.stage.cycle.sizes.known)


class Minute(NamedTuple):
    """Fits and sized workloads after a cycle, the workloads that it forecast, and what it left undone."""

    fits: int
    sized: int
    forecast: int
    late: Sequence[str]


@pytest.fixture(scope="module")
def first_minutes() -> list[Minute]:
    start = Start()
    minutes = []
    for minute in range(6):
        (outcome,) = start.minutes(minute, minute)
        forecast = sum(record.signals[0].forecast is not None for record in outcome.recommendations)
        minutes.append(Minute(start.model.fits, start.sized, forecast, outcome.report.late_steps))
    return minutes


def test_fits_and_sizes_advance_side_by_side(first_minutes: list[Minute]) -> None:
    first, second, *_ = first_minutes
    assert 0 < first.fits < second.fits
    assert 0 < first.sized < second.sized < WORKLOADS


def test_the_whole_fleet_is_sized_and_fitted_after_some_cycles(first_minutes: list[Minute]) -> None:
    assert first_minutes[0].late
    assert first_minutes[-1].sized == WORKLOADS
    assert first_minutes[-1].late == ()


def test_every_workload_has_a_forecast_from_the_second_cycle_on(first_minutes: list[Minute]) -> None:
    assert [minute.forecast for minute in first_minutes[:2]] == [0, WORKLOADS]
    assert first_minutes[0].fits < WORKLOADS // ROWS


def test_no_step_waits_for_ever_where_decisions_take_all_the_time() -> None:
    start = Start()
    start.stage.cycle.effects.publisher = SlowPublisher(start.clock)
    start.minutes(0, PATIENCE - 1)
    assert (start.model.fits, start.sized) == (0, 0)
    start.minutes(PATIENCE, PATIENCE)
    assert (start.model.fits > 0, start.sized) == (True, PORTION)


def test_a_step_that_was_done_waits_as_long_again() -> None:
    waited = {"sizes": PATIENCE}
    for expected in (["sizes"], []):
        steps = Steps(lambda: 0.0, timedelta(0), waited=waited)
        done: list[str] = []
        steps.optional("sizes", lambda done=done: done.append("sizes"), None)  # type: ignore[misc]
        assert done == expected


def test_no_cycle_waits_for_the_eight_days_of_containers_of_a_large_fleet() -> None:
    """They take five minutes, after which the published table would be stale; all the while nothing is sized."""
    clock, stage = Clock(), CycleOnFakes(learns_first=False)
    stage.cycle.seconds, stage.cycle.budget = clock, timedelta(seconds=30)
    stage.cycle.source = SlowContainers([load("web")], clock=clock)
    took, sized = [], []
    for minute in range(20):
        began = clock.seconds
        stage.run_minutes(minute, minute)
        took.append(clock.seconds - began)
        sized.append(tuple(container.name for container in stage.cycle.sizes.of(WEB.id)))
    assert max(took) <= 30 + DAY_SECONDS
    assert [*dict.fromkeys(sized)] == [(), ("app", "proxy")]


@pytest.mark.parametrize(("share", "until"), [(0.5, 15.0), (1.0, 20.0), (0.0, 10.0)])
def test_a_share_is_a_part_of_what_is_left(share: float, until: float) -> None:
    clock = Clock(10.0)
    assert TimeShare(clock, 20.0).part(share).until == until
