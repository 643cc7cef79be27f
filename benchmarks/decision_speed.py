"""How long one core needs to decide about 10,000 workloads: `python -m benchmarks.decisions --cycle`.

Measures `Judge.decide_all` alone, as step 5 of a cycle runs it: outlooks built from arrays, replicas, sizes,
explanations. The first round meets every workload for the first time; the steady state has a full stabilization window.
"""

from __future__ import annotations

import statistics
import time
from datetime import UTC, datetime, timedelta

import numpy as np

from forecaster.app.compose import prepare_process
from forecaster.cycle.judge import Judge
from forecaster.cycle.outlook import Sight, span_of
from forecaster.cycle.sizes import PodSizes
from forecaster.cycle.targets import Targets
from forecaster.demand.latest import latest
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import CPU, DEMAND, MEMORY, REQUESTS
from forecaster.domain.window import MINUTE, Inventory, Window
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.forecasting.peaks import LEVELS, PeakForecasts
from forecaster.vertical.sizing.containers import ChosenSize, ContainerSizing

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
POLICIES = Policies(Policy())
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


def sight_of(workloads: tuple[Workload, ...], now: datetime, rng: np.random.Generator) -> Sight:
    """Three hours of minutes and a forecast of every signal, different in every cycle."""
    ids = tuple(one.id for one in workloads)
    pods = np.array([one.replicas for one in workloads])
    seen, ahead = {}, {}
    for signal in DEMAND:
        total = pods[:, None] * PER_POD[signal] * rng.uniform(0.5, 1.5, (len(ids), 180))
        seen[signal] = latest(Window(ids, now - 179 * MINUTE, MINUTE, total.astype(np.float32)))
        ahead[signal] = {span_of(Policy()): _peaks(ids, total[:, -1], now, rng)}
    return Sight(seen, ahead)


def _peaks(ids: tuple[WorkloadId, ...], level: np.ndarray, now: datetime, rng: np.random.Generator) -> PeakForecasts:
    values = np.sort(level[:, None] * rng.uniform(0.8, 1.4, (len(ids), len(LEVELS))), axis=1)
    row = {id_: i for i, id_ in enumerate(ids)}
    begin = now + timedelta(minutes=3)
    codes = np.zeros(len(ids), np.int32)
    return PeakForecasts(begin, begin + timedelta(minutes=3), ids, row, values, codes, codes, ("ridge",), ("",))


def measure(count: int, cycles: int) -> list[float]:
    """CPU seconds of each cycle."""
    workloads, judge, rng, seconds = tuple(map(workload, range(count))), Judge(), np.random.default_rng(1), []
    cpu, memory = ChosenSize(0.4, 0.8, 0.05, 0.0, 0.1), ChosenSize(0.7 * GIB, 0.7 * GIB, 0.01, 0.01, 0.2 * GIB)
    sizes = PodSizes(known={one.id: (ContainerSizing("", one.resources, cpu, memory, 7.0),) for one in workloads})
    for i in range(cycles):
        now = NOON + i * MINUTE
        sight = sight_of(workloads, now, rng)
        began = time.process_time()
        decided, failures = judge.decide_all(Targets(Inventory(now, workloads)), sight, sizes, POLICIES, now)
        seconds.append(time.process_time() - began)
        assert len(decided) == count
        assert not failures, failures[0]
    return seconds


def speed(count: int = 10_000, cycles: int = 12) -> dict[str, float]:
    """Seconds of CPU of the first cycle and of a steady one, in a process made ready as the service's is."""
    prepare_process()
    seconds = measure(count, cycles)
    steady = statistics.median(seconds[6:] or seconds)
    return {"workloads": count, "first_s": round(seconds[0], 3), "steady_s": round(steady, 3)}
