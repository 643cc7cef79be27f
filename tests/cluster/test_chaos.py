"""Faults by a seeded schedule on the installed product: no number and no write outside of bounds, and all recovers.

`./dev test --long` plays every kind for more than 20 minutes, any other run the most dangerous ones in about two.
CHAOS_SEED repeats a run, CHAOS_SECONDS shortens it; a run that fails prints its seed and its schedule.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support.chaos.faults import DANGEROUS, OF_DATABASE, ON_DISKS, OTHERS, WITHOUT_API
from tests.support.chaos.watch import Watch, floors, growth, unfit_writes
from tests.support.chaos.world import SPEED, World, hpas, world
from tests.support.control_plane.binaries import CORE, why_not
from tests.support.control_plane.deployed import NAMESPACE, ROOT
from tests.support.control_plane.plane import ControlPlane
from tests.support.prometheus import find_binaries
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.chaos.replica import Footprint

pytestmark = [pytest.mark.prometheus, pytest.mark.slow, pytest.mark.long]

SEED = int(os.environ.get("CHAOS_SEED", "20261122"))
SHORT, LONG = 120.0, 1260.0
"""Seconds of a short and of a long run."""
CYCLES = 10
"""Cycles within which all workloads are decided after a fault: two where the machine keeps pace with ten times real
time, more where it does not and scrapes are missed. The report has the number.
"""
KINDS = DANGEROUS | OTHERS


class Bout(NamedTuple):
    """Faults that last at the same time, for so many seconds."""

    kinds: tuple[str, ...]
    seconds: float


class Recovery(NamedTuple):
    """From the end of a bout until there is a count for every workload."""

    bout: Bout
    cycles: int
    seconds: float


def schedule(seed: int, *, every: bool) -> Iterator[Bout]:
    """Rounds of all kinds in another order each, or one of the most dangerous; a third of the bouts are of two."""
    luck = random.Random(seed)  # noqa: S311  no secret
    while True:
        left = list(KINDS if every else DANGEROUS)
        luck.shuffle(left)
        while left:
            pair = luck.random() < 1 / 3 and len(left) > 1
            kinds = sorted((left.pop() for _ in range(1 + pair)), key=WITHOUT_API.__contains__)
            yield Bout(tuple(kinds), round(luck.uniform(2.0, 10.0), 1))


@dataclass
class Run:
    """Faults that were played, and what became of them."""

    seed: int
    played: list[Bout] = field(default_factory=list)
    recovered: list[Recovery] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def report(self, running: World, watch: Watch) -> dict[str, object]:
        """Numbers of the run, for the file that keeps them."""
        kinds = sorted({kind for bout in self.played for kind in bout.kinds})
        times = sorted(recovery.seconds for recovery in self.recovered)
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seed": self.seed,
            "seconds": round(self.seconds),
            "speed": SPEED,
            "faults": sum(len(bout.kinds) for bout in self.played),
            "kinds": {kind: self._of_kind(kind) for kind in kinds},
            "left_out": sorted(self.left_out),
            "answers": watch.answers,
            "numbers": watch.numbers,
            "unanswered": dict(watch.unanswered),
            "writes": len(floors(running)),
            "cycles": len({at for replica in running.replicas for at in replica.tables}),
            "violations": self.violations,
            "recovery_seconds": {"median": round(median(times), 1), "longest": times[-1]} if times else {},
            "recovery_cycles": max((recovery.cycles for recovery in self.recovered), default=0),
            "largest_resident_mib": {
                part: round(max(footprint.resident_bytes for footprint in _footprints(running, part)) / 2**20)
                for part in ("computing", "serving")
            },
            "most_descriptors": {
                part: max(footprint.descriptors for footprint in _footprints(running, part))
                for part in ("computing", "serving")
            },
            "schedule": [[*bout.kinds, bout.seconds] for bout in self.played],
        }

    def _of_kind(self, kind: str) -> dict[str, object]:
        recoveries = [recovery for recovery in self.recovered if kind in recovery.bout.kinds]
        longest = max(recoveries, key=lambda recovery: recovery.seconds, default=None)
        worst = (
            {"cycles": max(recovery.cycles for recovery in recoveries), "seconds": longest.seconds} if longest else {}
        )
        return {"times": sum(kind in bout.kinds for bout in self.played), **worst}


def _footprints(running: World, part: str) -> list[Footprint]:
    return [footprint for replica in running.replicas for footprint in replica.footprints if footprint.part == part]


def play(running: World, watch: Watch, bout: Bout, luck: random.Random) -> Recovery:
    """Play one bout and wait for the recovery from it."""
    watch.faults = bout.kinds
    with ExitStack() as parts:
        for kind in bout.kinds:
            parts.enter_context(KINDS[kind](running, luck))
        time.sleep(bout.seconds)
    recovered = recovery(running, bout, time.monotonic())
    if recovered.cycles > CYCLES:
        watch.note(f"recovered after {recovered.cycles} cycles and {recovered.seconds} s")
    watch.faults = ()
    return recovered


def recovery(running: World, bout: Bout, mended: float) -> Recovery:
    """Wait for a count for every workload in the tables that were published since then."""

    def tables() -> list[bool]:
        by_time = {at: table for replica in running.replicas for at, table in list(replica.tables.items())}
        since = sorted((table.at, table.decided) for table in by_time.values() if table.at > mended)
        return [decided for _, decided in since]

    wait_until(lambda: any(tables()), goal=f"a count for every workload after {bout}")
    return Recovery(bout, tables().index(True) + 1, round(time.monotonic() - mended, 1))


def play_all(running: World, watch: Watch, run: Run, *, long: bool) -> None:
    """Play bouts until the time is over; a bout that cannot be played on this machine is left out."""
    luck, began = random.Random(run.seed), time.monotonic()  # noqa: S311  no secret
    for bout in schedule(run.seed, every=long):
        if run.left_out.isdisjoint(bout.kinds):
            run.played.append(bout)
            run.recovered.append(play(running, watch, bout, luck))
        run.seconds = time.monotonic() - began
        if run.seconds > float(os.environ.get("CHAOS_SECONDS") or (LONG if long else SHORT)):
            return


def test_a_seeded_schedule_of_faults_breaks_no_promise(running: World, *, long: bool) -> None:
    run = Run(SEED, left_out=(set() if running.disks else ON_DISKS) | (set() if running.database else OF_DATABASE))
    watch = Watch(running)
    watching = threading.Thread(target=watch.run)
    watching.start()
    try:
        play_all(running, watch, run, long=long)
    finally:
        running.stopped.set()
        watching.join()
        run.violations = [*watch.violations, *after_all(running)]
        written(run.report(running, watch))
    assert not run.violations, "\n".join([f"CHAOS_SEED={SEED}", *map(str, run.played), *run.violations])
    assert watch.numbers > watch.answers / 4, watch.unanswered


def after_all(running: World) -> Iterator[str]:
    """Faults in the logs, the audit log and the cluster when all is over."""
    for replica in running.replicas:
        yield from (f"{replica.name} ended by itself with {code}" for code in replica.exits)
        replica.close()
    yield from unfit_writes(running)
    yield from growth(running)
    rights = f"--kubeconfig={running.plane.account('forecaster', NAMESPACE)}"
    release = [sys.executable, "-m", "forecaster", "release", "--now", rights]
    done = subprocess.run(release, capture_output=True, text=True, check=False, timeout=PATIENCE)
    if done.returncode:
        yield f"forecaster release: {done.stderr}"
    for name, hpa in hpas(running.api).items():
        if hpa != running.owned[name]:
            yield f"HPA {name} is not as its owner left it: {hpa}"


def written(report: dict[str, object]) -> None:
    """Print the report, and keep it for comparison with the next run."""
    folder = ROOT / "build" / "chaos"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{report['at']}.json"
    file.write_text(json.dumps(report, indent=2), encoding="utf-8")
    print(f"\n{file}\n{json.dumps(report, indent=2)}")  # noqa: T201


@pytest.fixture
def running(tmp_path: Path) -> Iterator[World]:
    """The product on a control plane of its own, whose API server and etcd are stopped now and then."""
    absent, binaries = why_not(*CORE), find_binaries()
    if absent or binaries is None:
        pytest.skip(absent or "no prometheus and promtool: run .ci/prometheus")
    (tmp_path / "plane").mkdir()
    plane = ControlPlane(tmp_path / "plane", services=f"127.{128 + os.getpid() % 64}")
    with plane, world(plane, binaries, tmp_path) as built:
        yield built
