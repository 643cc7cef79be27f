"""How long one core needs to decide about 10,000 workloads: `python -m benchmarks.decision_speed`.

Measures `Decider.decide` alone, as a cycle runs it: columns of inputs, replicas, state. The first round meets every
workload for the first time; the steady state has a full stabilization window.
"""

from __future__ import annotations

import json
import statistics
import time
from datetime import UTC, datetime, timedelta

import numpy as np

from forecaster.app.compose import prepare_process
from forecaster.cycle.decide import Decider
from forecaster.cycle.forecasts import Forecasts
from forecaster.cycle.rows import RowBook, resolved
from forecaster.cycle.sizes import PodSizes
from forecaster.demand.latest import DayAgo, latest
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import CPU, DEMAND, MEMORY, REQUESTS
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Window
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.forecasting.peaks import LEVELS, PeakForecasts
from forecaster.horizontal.lead_time import lead_time
from forecaster.vertical.sizing.containers import ChosenSize, ContainerSizing

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
POLICIES = Policies(Policy())
LEAD_TIME = lead_time(Policy().horizontal)
GIB = 2.0**30
PER_POD = {CPU: 0.35, MEMORY: 0.6 * GIB, REQUESTS: 40.0}


def workload(i: int) -> Workload:
    """Half of them have an HPA on CPU and memory."""
    targets = (Target("cpu", TargetType.UTILIZATION, 0.7), Target("memory", TargetType.UTILIZATION, 0.8))
    replicas = 2 + i % 9
    return Workload(
        id=WorkloadId(f"team-{i % 97}", "Deployment", f"service-{i}"),
        replicas=replicas,
        ready_replicas=replicas,
        resources=Resources(0.5, 1.0, GIB, GIB),
        autoscaler=Autoscaler(f"service-{i}", 2, 20, targets) if i % 2 else None,
    )


def forecasts_of(workloads: tuple[Workload, ...], now: datetime, rng: np.random.Generator) -> Forecasts:
    """Three hours of minutes and a forecast of every signal, different in every cycle."""
    ids = tuple(one.id for one in workloads)
    pods = np.array([one.replicas for one in workloads])
    seen, ahead = {}, {}
    for signal in DEMAND:
        total = pods[:, None] * PER_POD[signal] * rng.uniform(0.5, 1.5, (len(ids), 180))
        seen[signal] = latest(Window(ids, now - 179 * MINUTE, MINUTE, total.astype(np.float32)))
        ahead[signal] = {resolved(workloads[0], Policy()).span: _peaks(ids, total[:, -1], now, rng)}
    return Forecasts(seen, ahead, day_ago={signal: DayAgo(_weeks(ids, now)) for signal in seen})


def _weeks(ids: tuple[WorkloadId, ...], now: datetime) -> Window:
    return Window(ids, now, FIVE_MINUTES, np.full((len(ids), 1), np.nan, np.float32))


def _peaks(ids: tuple[WorkloadId, ...], level: np.ndarray, now: datetime, rng: np.random.Generator) -> PeakForecasts:
    values = np.sort(level[:, None] * rng.uniform(0.8, 1.4, (len(ids), len(LEVELS))), axis=1)
    row = {id_: i for i, id_ in enumerate(ids)}
    begin = now + timedelta(minutes=3)
    codes = np.zeros(len(ids), np.int32)
    return PeakForecasts(begin, begin + timedelta(minutes=3), ids, row, values, codes, codes, ("ridge",), ("",))


def measure(count: int, cycles: int) -> list[float]:
    """CPU seconds of each cycle."""
    workloads, decider, book = tuple(map(workload, range(count))), Decider(), RowBook()
    rng, seconds = np.random.default_rng(1), []
    cpu, memory = ChosenSize(0.4, 0.8, 0.05, 0.0, 0.1), ChosenSize(0.7 * GIB, 0.7 * GIB, 0.01, 0.01, 0.2 * GIB)
    sizes = PodSizes(known={one.id: (ContainerSizing("", one.resources, cpu, memory, 7.0),) for one in workloads})
    for i in range(cycles):
        now = NOON + i * MINUTE
        known = forecasts_of(workloads, now, rng)
        began = time.process_time()
        decided = decider.decide(book.rows(workloads, POLICIES), known, sizes.of, lambda _: LEAD_TIME, now)
        seconds.append(time.process_time() - began)
        assert len(decided) == count
        assert not decided.failures(), decided.failures()[0]
    return seconds


def speed(count: int = 10_000, cycles: int = 12) -> dict[str, float]:
    """Seconds of CPU of the first cycle and of a steady one, in a process made ready as the service's is."""
    prepare_process()
    seconds = measure(count, cycles)
    steady = statistics.median(seconds[6:] or seconds)
    return {"workloads": count, "first_s": round(seconds[0], 3), "steady_s": round(steady, 3)}


if __name__ == "__main__":
    print(json.dumps(speed()))
