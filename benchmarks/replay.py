"""Time a replay's decisions: `python benchmarks/replay.py`, 10,000 workload-days, 15 s syncs, one process.

Every workload has an HPA on CPU and is replayed with its HPA alone, and under our policy whose floor the HPA follows.
Forecasts are made up, so that decisions alone are measured; `--forecast N` measures real ones for N of the workloads.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from datetime import UTC, datetime, timedelta

import numpy as np

from forecaster.app.compose import prepare_process
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.replay.account import Run
from forecaster.replay.engine import replay_runs
from forecaster.replay.forecasts import ForecastRequest, ReplayForecasts, forecast_minutes
from forecaster.replay.setup import Setup, setup_of
from forecaster.replay.traces import Measurements, Traces, measurements_of

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
MINUTES, PAST = 1440, 180
SPAN = PeakSpan(timedelta(minutes=3), timedelta(minutes=3))
LEVELS = (0.5, 0.9, 0.99)
TARGET = Target("cpu", TargetType.UTILIZATION, 0.7)


def traces(count: int, past: int = PAST) -> Traces:
    """Days with a daily wave, noise, and jumps."""
    rng = np.random.default_rng(1)
    minute = np.arange(past + MINUTES)
    wave = 1.2 + np.sin(2 * np.pi * (minute / MINUTES + rng.random((count, 1))))
    noise = (
        rng.uniform(0.9, 1.1, (count, len(minute)))
        * rng.choice([1.0, 1.0, 1.6], (count, len(minute) // 60 + 1))[:, minute // 60]
    )
    cores = rng.uniform(1, 20, (count, 1)) * wave * noise
    workloads = tuple(
        Workload(WorkloadId("a", "Deployment", f"w{i}"), 5, 5, Resources(1.0), Autoscaler("h", 2, 100, (TARGET,)))
        for i in range(count)
    )
    return Traces(workloads, BEGIN - timedelta(minutes=past - 1), {CPU: cores})


def runs_of(measurements: Measurements, policy: Policy | None, forecasts: ReplayForecasts | None) -> list[Run]:
    runs = []
    for series, workload in enumerate(measurements.traces.workloads):
        setup = setup_of(workload, HorizontalPolicy())
        assert isinstance(setup, Setup)
        runs.append(Run(series, workload, setup, 5, policy, forecasts))
    return runs


def made_up(measurements: Measurements) -> ReplayForecasts:
    """Forecasts that know the next five minutes, with a spread around them."""
    coming = measurements.past(CPU, 5, measurements.minutes)
    return ReplayForecasts("made-up", SPAN, LEVELS, {CPU: np.stack([coming * s for s in (0.9, 1.1, 1.3)], axis=1)})


def seconds_of(runs: list[Run], measurements: Measurements) -> tuple[float, float]:
    """CPU and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    replay_runs(runs, measurements)
    return time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--forecast", type=int, default=0, help="workloads whose real forecasts are timed, too")
    given = parser.parse_args()
    prepare_process()
    measurements = measurements_of(traces(given.workloads), BEGIN, MINUTES)
    forecasts = made_up(measurements)
    outcome: dict[str, object] = {"workload_days": given.workloads}
    strategies = {
        "hpa_alone": (None, None),
        "policy": (Policy(), forecasts),
        "policy_by_newsvendor": (Policy(horizontal=HorizontalPolicy(sizing="newsvendor")), forecasts),
    }
    for name, (policy, known) in strategies.items():
        cpu, wall = seconds_of(runs_of(measurements, policy, known), measurements)
        outcome[name] = {"cpu_s": round(cpu, 1), "wall_s": round(wall, 1)}
    if given.forecast:
        fewer = measurements_of(traces(given.forecast, 7 * MINUTES), BEGIN, MINUTES)
        begun = time.process_time()
        forecast_minutes(fewer, [CPU], ForecastRequest("adaptive", SPAN))
        outcome["adaptive_forecasts_ms_per_workload_day"] = round(
            1000 * (time.process_time() - begun) / given.forecast, 1
        )
    outcome["peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
