"""Compare the CPU that others spend on a workload with ours, on the same data and machine; name what is not installed.

    python -m benchmarks.compare_cost [--statsforecast PYTHON] [--holt-winters PYTHON SCRIPT] [--vpa]
    python -m benchmarks.compare_cost --krr PYTHON CHECKOUT

- `--statsforecast`: a Python that has it. AutoETS and AutoARIMA by the hour: their seasons end at 24, or take minutes.
- `--holt-winters`: a Python with statsmodels and dataclasses-json, and `algorithms/holt_winters/holt_winters.py` of the
  predictive-horizontal-pod-autoscaler, which starts it as a process for each model and run.
- `--krr`: a Python with what KRR needs, and its checkout: its simple strategy asks a real Prometheus, binaries as for
  benchmarks/fill.py, four queries a workload about two weeks by the minute; CPU of both is printed.
- `--vpa`: the histograms of the VPA's recommender, from its Go module; needs Go.

Ours: the default model by five minutes, fitted and evaluated for all series at once, as the service does, one thread.
CPU of the process and its children, on smooth days with noise: of no use for judging forecasts.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.fill import Family, binaries_or_exit, fill_blocks
from benchmarks.fleet import NOON, Fleet
from benchmarks.procfs import cpu_seconds
from benchmarks.record import record
from forecaster.domain.signal import CPU
from models import Panel, StepWindow, create
from tests.support.prometheus import RealPrometheus, head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

OTHERS = Path(__file__).parent / "others"
STEP, DAY, DAYS, HOUR = timedelta(minutes=5), 288, 14, 12
LEVELS = (0.5, 0.9)
FEW = 5
"""Series for what takes long: the models of statsforecast, a process each for Holt-Winters."""
SCANNED, PODS, A_DAY = 10, 3, 86_400.0
"""Workloads that KRR looks at, and pods of each."""
FITS = 72
"""Cycles between two fits of ours."""


class Cost(NamedTuple):
    """One line of the table."""

    activity: str
    milliseconds: float
    """Milliseconds of CPU for each workload."""
    when: str


def forecaster_cost(series: Floats) -> Iterator[Cost]:
    """Cost of a fit in rotation, and of every cycle."""
    panel = Panel(series.astype(np.float32), NOON, STEP, tuple(map(str, range(len(series)))))
    create("adaptive").fit(panel).forecast(1, LEVELS)
    fitted, fit = spent(lambda: create("adaptive").fit(panel))
    _, peak = spent(lambda: fitted.forecast_peak(StepWindow(1, 2), LEVELS))
    yield Cost("ours: a fit", 1000 * fit / len(series), f"every {FITS} cycles")
    yield Cost("ours: a forecast of the coming peak", 1000 * peak / len(series), "every cycle")


def statsforecast(series: Floats, python: str, folder: Path) -> Iterator[Cost]:
    hours = series[:FEW].reshape(FEW, -1, HOUR).mean(axis=2)
    np.save(folder / "hours.npy", hours)
    script = str(OTHERS / "statsforecast_cost.py")
    answer = subprocess.run([python, script, str(folder / "hours.npy")], capture_output=True, text=True, check=True)
    for model, seconds in json.loads(answer.stdout).items():
        yield Cost(f"statsforecast {model}, {hours.shape[1]} hours", 1000 * seconds, "every forecast")


def holt_winters(series: Floats, python: str, script: str) -> Iterator[Cost]:
    """The process that is started for each model and run."""
    settings = {"trend": "add", "seasonal": "add", "alpha": 0.9, "beta": 0.9, "gamma": 0.9, "seasonalPeriods": DAY}

    def run(values: Floats) -> None:
        counts = np.ceil(values / 0.35).astype(int).tolist()
        request = json.dumps({**settings, "series": counts})
        subprocess.run([python, script], input=request, capture_output=True, text=True, check=True)

    _, seconds = spent(lambda: [run(values) for values in series[:FEW]])
    name = f"predictive HPA: a Holt-Winters process, {series.shape[1]} counts"
    yield Cost(name, 1000 * seconds / FEW, "every run of a model")


def krr(python: str, source: str, folder: Path) -> Iterator[Cost]:
    """Cost of a scan of some workloads, two weeks before now: KRR cannot query another time."""
    binaries, until = binaries_or_exit(), datetime.now(UTC).replace(second=0, microsecond=0)
    names = [("shop", f"service-{i}", [f"service-{i}-{pod}" for pod in range(PODS)]) for i in range(SCANNED)]
    (folder / "names.json").write_text(json.dumps(names), encoding="utf-8")
    since = until - timedelta(days=DAYS)
    fill_blocks(folder / "krr", [*usage(names, since, until)], (since, until), binaries)
    with RealPrometheus(binaries, folder / "krr") as server:
        before, script = cpu_seconds(server.pid), str(OTHERS / "krr_cost.py")
        command = [python, script, source, server.url, str(folder / "names.json")]
        answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        answering = (cpu_seconds(server.pid) - before) / SCANNED
    if answer["known"] != SCANNED:
        raise SystemExit(f"KRR: {answer['known']} of {SCANNED} workloads have a recommendation")
    yield Cost(f"KRR: two resources of {PODS} pods, its own process", 1000 * answer["seconds"], "every scan")
    yield Cost("KRR: what Prometheus spends on its four questions", 1000 * answering, "every scan")


def usage(names: Sequence[tuple[str, str, list[str]]], since: datetime, until: datetime) -> Iterator[Family]:
    """Usage of a day's wave: CPU as a counter, and memory."""
    pods = [
        {"namespace": space, "pod": pod, "container": "app", "job": "kubelet"}
        for space, _, all_ in names
        for pod in all_
    ]
    mean = np.linspace(0.2, 0.8, len(pods))[:, None]

    def counted(seconds: Floats) -> Floats:
        wave = np.cos(2 * np.pi * seconds / A_DAY) * A_DAY / (4 * np.pi)
        return np.asarray(mean * (seconds - since.timestamp() + A_DAY - wave))

    def held(seconds: Floats) -> Floats:
        return np.rint(mean * 2**30 * (1.5 + 0.5 * np.sin(2 * np.pi * seconds / A_DAY)))

    for name, values in (
        ("container_cpu_usage_seconds_total", counted),
        ("container_memory_working_set_bytes", held),
    ):
        yield Family([head(name, pod) for pod in pods], values, since, until, 60.0)


def vpa(series: Floats) -> Iterator[Cost]:
    """Cost of the VPA's own histograms, called by a program of ours in Go."""
    lines = "\n".join(" ".join(f"{value:.4f}" for value in values) for values in series)
    answer = subprocess.run(
        ["go", "run", "-mod=mod", "."], cwd=OTHERS / "vpa", input=lines, capture_output=True, text=True, check=True
    )
    sample, percentiles, _ = map(float, answer.stdout.split())
    yield Cost("VPA recommender: a sample of one resource", sample / 1000, "every minute and container")
    yield Cost("VPA recommender: three percentiles of it", percentiles / 1000, "every minute and container")


def spent(call: Callable[[], object]) -> tuple[object, float]:
    """Result of a call, and CPU seconds of this process and its children."""
    before = used()
    return call(), used() - before


def used() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--statsforecast", metavar="PYTHON")
    parser.add_argument("--holt-winters", nargs=2, metavar=("PYTHON", "SCRIPT"))
    parser.add_argument("--krr", nargs=2, metavar=("PYTHON", "CHECKOUT"))
    parser.add_argument("--vpa", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    seconds = NOON.timestamp() + STEP.total_seconds() * np.arange(DAYS * DAY)
    series, costs, missing = Fleet(given.series).demand(CPU, seconds), [], []
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        costs += forecaster_cost(series)
        for name, option, run in (
            ("statsforecast", given.statsforecast, lambda: statsforecast(series, given.statsforecast, Path(folder))),
            ("predictive HPA", given.holt_winters, lambda: holt_winters(series, *given.holt_winters)),
            ("KRR", given.krr, lambda: krr(*given.krr, Path(folder))),
            ("VPA recommender", given.vpa, lambda: vpa(series)),
        ):
            if option:
                costs += run()
            else:
                missing.append(name)
    lines = ["| | CPU a workload, ms | when |", "| --- | ---: | --- |"]
    lines += [f"| {cost.activity} | {cost.milliseconds:.4g} | {cost.when} |" for cost in costs]
    text = "\n".join([*lines, "", f"{given.series} series of {DAYS} days."])
    if missing:
        text += f" Not measured: {', '.join(missing)}."
    print(text)
    if given.write:
        record("compare-cost", "Cost of a workload beside others", "python -m benchmarks.compare_cost", text)


if __name__ == "__main__":
    main()
