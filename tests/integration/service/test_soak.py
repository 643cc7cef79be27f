"""A quarter of cycles at a fast clock: nothing drifts, leaks or grows beyond what is kept.

Winter 2027/28 in a city that changes its clocks: year end, a leap day and a change to summer time, workloads that
come and go and deploys. `./dev test --long` runs every second minute of it, any other run some hours of three days.
"""

from __future__ import annotations

import json
import resource
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from forecaster.app import telemetry
from forecaster.app.compose import ServiceFacts
from forecaster.app.serve import build_service, state_directory
from forecaster.config.settings import parse
from forecaster.domain.signal import CPU, MEMORY, PODS
from forecaster.domain.window import HOUR, MINUTE, Block, Inventory
from forecaster.sources.pacing import grid_between
from tests.support.builders import GIB, workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from forecaster.app.service import Service
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload

pytestmark = [pytest.mark.slow, pytest.mark.long]

HERE = ZoneInfo("Europe/Berlin")
BEGIN, END = datetime(2027, 12, 20, tzinfo=UTC), datetime(2028, 3, 29, tzinfo=UTC)
MARKED_DAYS = (datetime(2027, 12, 31, tzinfo=UTC), datetime(2028, 2, 29, tzinfo=UTC), datetime(2028, 3, 26, tzinfo=UTC))
"""Year end, leap day, and the change to summer time."""
EVERY = 2 * MINUTE
CYCLES_AROUND = 200
PERMANENT, PASSING = ("web", "api", "cart"), 2
STAYS = timedelta(days=3)
GROWTH_BYTES = 40 << 20
GROWTH_FILES = 5


def load(name: str, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cores at instants, epoch seconds: a day by the clock of the city, a quiet weekend, and a pattern that repeats."""
    local = times + np.array([_offset(int(hour)) for hour in times // 3600])
    hour, weekday = local / 3600 % 24, (local // 86400 + 3) % 7
    busy = np.exp(-(((hour - 13.0) / 4.0) ** 2)) * np.where(weekday >= 5, 0.3, 1.0)
    ripple = 0.03 * np.sin(times / 60 * (7 + len(name)))
    return np.asarray((0.8 + 2.4 * busy + ripple) * (1.0 + 0.1 * len(name)))


_offsets: dict[int, float] = {}


def _offset(hour: int) -> float:
    if hour not in _offsets:
        offset = datetime.fromtimestamp(hour * 3600, HERE).utcoffset()
        assert offset is not None
        _offsets[hour] = offset.total_seconds()
    return _offsets[hour]


@dataclass
class City:
    """A source in memory: three workloads that stay, and some that are there for three days each."""

    cores_of_pod: float = 0.4

    def present(self, at: datetime) -> list[Workload]:
        """With the pods that the load of half an hour before took, one fewer of them ready in a deploy."""
        turn = (at - BEGIN) // STAYS
        names = (*PERMANENT, *(f"job-{turn - age}" for age in range(PASSING) if turn >= age))
        return [self._workload(name, at) for name in names]

    def _workload(self, name: str, at: datetime) -> Workload:
        seconds = np.array([(at - HOUR / 2).timestamp() // 300 * 300])
        pods = max(2, int(np.ceil(load(name, seconds)[0] / self.cores_of_pod)))
        deploys = at.hour == 3 and at.minute < 6
        return workload(name, replicas=pods, ready=pods - deploys)

    def inventory(self, at: datetime) -> Inventory:
        return Inventory(at, tuple(self.present(at)))

    def latest(self, signal: Signal, at: datetime) -> Block:
        return self._block(signal, at, at, MINUTE)

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        yield self._block(signal, start, end, step)

    def _block(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Block:
        grid = grid_between(start, end, step)
        present = self.present(end) if signal in {CPU, MEMORY, PODS} else []
        times = grid.start.timestamp() + np.arange(grid.points) * step.total_seconds()
        rows = [self._values(signal, workload, times) for workload in present]
        values = np.array(rows) if rows else np.empty((0, grid.points))
        return Block(signal, tuple(workload.id for workload in present), grid.start, step, values)

    def _values(self, signal: Signal, workload: Workload, times: NDArray[np.float64]) -> NDArray[np.float64]:
        if signal == PODS:
            return np.full(times.size, float(workload.replicas))
        if signal == MEMORY:
            return np.full(times.size, workload.replicas * GIB)
        return load(workload.id.name, times)


@dataclass
class Course:
    """Measurements and faults along the way."""

    cycles: int = 0
    resident: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    directory: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def instants(*, every: bool) -> Iterator[datetime]:
    """Evaluation times in order: all of them, or those around marked days."""
    if every:
        yield from (BEGIN + number * EVERY for number in range((END - BEGIN) // EVERY))
        return
    for day in MARKED_DAYS:
        yield from (day - HOUR + number * EVERY for number in range(CYCLES_AROUND))


def test_a_quarter_goes_by_without_drift_leak_or_growth(tmp_path: Path, *, long: bool) -> None:
    course = Course()
    with ExitStack() as parts:
        clock = [next(instants(every=long))]
        service = composed(tmp_path / "state", lambda: clock[0], parts)
        for at in instants(every=long):
            clock[0] = at + service.settings.delay
            cycle(service, course, at)
            if course.cycles % 60 == 0:
                measure(course, tmp_path / "state")
        rows = service.cycle.decider.observed.state.rows
    report(course, long=long)
    assert not course.wrong, "\n".join(course.wrong[:20])
    assert rows <= len(PERMANENT) + 4, "workloads that left keep no row"
    level(course)


def composed(directory: Path, clock: Callable[[], datetime], parts: ExitStack) -> Service:
    """The service as `forecaster run` composes it, on the city."""
    given = {
        "prometheus": {"url": "http://127.0.0.1:9", "retries": 0},
        "queries": {"requests_from": "none"},
        "cycle": {"interval": "2m"},
        "state": {"directory": str(directory), "keep": "10d"},
        "forecast": {"model": "seasonal-naive-day"},
        "policy": {"mode": "publish", "horizontal": {"max_replicas": 30}},
    }
    settings, facts = parse(given, "test"), ServiceFacts(City(), None)
    state = state_directory(settings.state)
    return build_service(settings, state, telemetry.logger(), parts, clock=clock, facts=facts)


def cycle(service: Service, course: Course, at: datetime) -> None:
    """Run one cycle, and note what does not hold after it."""
    began = time.perf_counter()
    service.tick()
    course.seconds.append(time.perf_counter() - began)
    course.cycles += 1
    report = service.report
    if report is None or report.at != at:
        course.wrong.append(f"{at}: no cycle was run")
        return
    course.wrong += [f"{at}: {line}" for line in report.failures]
    held = sum(count for (verdict, _), count in report.verdicts.items() if verdict == "hold")
    if course.cycles > 5 and held > PASSING:
        course.wrong.append(f"{at}: {dict(report.verdicts)}")


def measure(course: Course, directory: Path) -> None:
    """Note the memory and descriptors of this process, and the size of its state on disk."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    course.resident.append(pages * resource.getpagesize())
    course.descriptors.append(len(list(Path("/proc/self/fd").iterdir())))
    course.directory.append(sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()))


def level(course: Course) -> None:
    """Compare the last third with the second: the first one fills what is kept."""
    third = len(course.resident) // 3
    for name, more in (("resident", GROWTH_BYTES), ("directory", GROWTH_BYTES), ("descriptors", GROWTH_FILES)):
        values = getattr(course, name)
        before, after = median(values[third : 2 * third]), median(values[2 * third :])
        assert after < before * 1.1 + more, (name, before, after)


def report(course: Course, *, long: bool) -> None:
    """Write the numbers beside the reports of faults."""
    shown = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "profile": "long" if long else "short",
        "cycles": course.cycles,
        "median_cycle_ms": round(median(course.seconds) * 1000, 1),
        "resident_mib": [round(size / 2**20) for size in course.resident[:: max(1, len(course.resident) // 12)]],
        "descriptors": [min(course.descriptors), max(course.descriptors)],
        "state_kib": [round(size / 1024) for size in course.directory[:: max(1, len(course.directory) // 12)]],
        "wrong": len(course.wrong),
    }
    folder = Path(__file__).parents[3] / "build" / "soak"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{shown['at']}.json").write_text(json.dumps(shown, indent=2))
    print(f"\n{json.dumps(shown)}")  # noqa: T201
