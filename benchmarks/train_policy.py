"""Trains the learned policies that ship: `python benchmarks/train_policy.py`.

They learn on the first nine days of the bundled recording and made-up load, with forecasts of the service's model; the
last four days stay unseen. The same seed gives the same weights.
"""

from __future__ import annotations

import argparse
import time
from datetime import timedelta
from pathlib import Path

import numpy as np

from benchmarks.policy_training import save, train
from forecaster.app import traces as histories
from forecaster.app.compose import prepare_process
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.replay.account import Run, with_targets_at
from forecaster.replay.forecasts import ForecastRequest, forecast_minutes
from forecaster.replay.learned import WEIGHTS
from forecaster.replay.setup import Setup, setup_of
from forecaster.replay.traces import Measurements, Traces, measurements_of

DAYS, WARM = 9, 2
SPAN = PeakSpan(timedelta(minutes=3), timedelta(minutes=3))
MADE_UP = 24
SHARES = (0.8, 1.0, 1.25)
POLICY = Policy(horizontal=HorizontalPolicy(gate=False, scale_in_by_forecast=True))


def school(rng: np.random.Generator) -> Traces:
    """Recorded workloads with an HPA on CPU, and made-up ones beside them, nine days."""
    recorded = histories.recorded()
    rows = [
        i
        for i, workload in enumerate(recorded.workloads)
        if workload.autoscaler and workload.autoscaler.targets[0].metric == "cpu"
    ]
    minutes = DAYS * 1440
    real = recorded.take(rows).values[CPU][:, :minutes]
    values = np.concatenate([real, np.array([made_up(rng, minutes) for _ in range(MADE_UP)])])
    hpas = [Autoscaler("h", 1, 200, (Target("cpu", TargetType.UTILIZATION, 0.7),)) for _ in values]
    requests = [recorded.workloads[i].resources.cpu_request or 1.0 for i in rows] + [1.0] * MADE_UP
    workloads = tuple(
        Workload(WorkloadId("school", "Deployment", f"w{i}"), 5, 5, Resources(cpu_request=request), hpa)
        for i, (request, hpa) in enumerate(zip(requests, hpas, strict=True))
    )
    return Traces(workloads, recorded.start, {CPU: values})


def made_up(rng: np.random.Generator, minutes: int) -> np.ndarray:
    """A wave of the day, noise that lasts, spikes, and jobs at the same clock time."""
    minute = np.arange(minutes)
    level = rng.uniform(3, 30)
    wave = 1 + rng.uniform(0, 0.8) * np.sin(2 * np.pi * (minute / 1440 + rng.random()))
    slow = np.repeat(rng.lognormal(0, rng.uniform(0.02, 0.15), minutes // 10 + 1), 10)[:minutes]
    spikes = 1 + np.convolve(rng.random(minutes) < rng.uniform(0, 0.004), rng.uniform(0.3, 2) * np.ones(8))[:minutes]
    period, length = rng.choice([30, 60, 240, 1440]), rng.integers(3, 20)
    jobs = 1 + rng.uniform(0, 1.5) * ((minute + rng.integers(0, period)) % period < length)
    return level * wave * slow * spikes * jobs


def runs_of(measurements: Measurements, model: str) -> list[Run]:
    forecasts = forecast_minutes(measurements, [CPU], ForecastRequest(model, SPAN, every=2))
    runs = []
    for series, workload in enumerate(measurements.traces.workloads):
        for share in SHARES:
            shared = with_targets_at(workload, share)
            setup = setup_of(shared, POLICY.horizontal)
            assert isinstance(setup, Setup)
            runs.append(Run(series, shared, setup, 5, POLICY, forecasts))
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="adaptive")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    given = parser.parse_args()
    prepare_process()
    traces = school(np.random.default_rng(given.seed))
    begin = traces.start - timedelta(minutes=1) + timedelta(days=WARM)
    measurements = measurements_of(traces, begin, (DAYS - WARM) * 1440)
    clock = time.perf_counter()
    runs = runs_of(measurements, given.model)
    print(f"forecasts of {len(traces.workloads)} workloads: {time.perf_counter() - clock:.0f} s")
    clock = time.perf_counter()
    learned = train(runs, measurements, seed=given.seed, epochs=given.epochs)
    seconds = time.perf_counter() - clock
    print(f"{len(runs)} runs, {measurements.minutes} minutes, {given.epochs} times: {seconds:.0f} s")
    save("tabular", learned.table, given.out)
    save("fitted", learned.forest, given.out)


if __name__ == "__main__":
    main()
