"""What answers a burst that no model foresees: `python -m benchmarks.reserve ../shared/bench`.

A standing reserve (never fewer pods than carry a share of the largest load of the past hours or days), and a reaction
that is a minute quicker, each as a sweep of targets beside the HPA's formula for the pod-hours that it spends at 80 %,
with pods ready in two minutes. The bound knows the coming three minutes. `--write` records it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.record import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

START_UP, HOUR, STATED = 2, 60, 0.8
SPANS = {"6 h": 6 * HOUR, "a day": 24 * HOUR, "a week": 7 * 24 * HOUR}
SHARES = (0.25, 0.5, 0.75)
ALMOST, MOST, NOTABLE, LEAST = 1e-4, 2.0, 0.05, 1e-6
BURSTY = 0.05
"""Share of the demand that the HPA leaves short from which on a series counts as bursty here."""
HEAD = ("| beside the HPA | mean | median | worse on | mean, bursty |", "| --- | ---: | ---: | ---: | ---: |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path, nargs="?", default=Path("../shared/bench"))
    parser.add_argument("--write", action="store_true", help="write a dated file of benchmarks/results/")
    asked = parser.parse_args()
    sys.path.insert(0, str(asked.bench.resolve().parent))
    from bench import cli, scaling  # noqa: PLC0415  lies outside this repository

    options = cli.parser().parse_args(["scaling", "--models", "none", "--startup-min", str(START_UP)])
    found: dict[str, list[float]] = {}
    plain: list[float] = []
    for job in scaling.jobs_of(options):
        reference, rows = outcomes(scaling, job, options)
        plain.append(reference)
        for name, short in rows:
            found.setdefault(name, []).append(short)
    text = "\n".join([*HEAD, *(line(name, np.array(short), np.array(plain)) for name, short in found.items())])
    bursty = np.sum(np.array(plain) > BURSTY)
    said = f"{len(plain)} series, of which the HPA leaves more than {BURSTY:.0%} short on {bursty}."
    print(f"{said}\n\n{text}")
    if asked.write:
        record(
            "reserve", "A reserve, or a quicker reaction", "python -m benchmarks.reserve --write", f"{said}\n\n{text}"
        )


def outcomes(scaling: Any, job: Any, options: Any) -> tuple[float, list[tuple[str, float]]]:
    """Share short of the HPA, and of each other way at its pod-hours; NaN where no target is as lean."""
    nothing = np.full(len(job.load), np.nan)
    coming = np.lib.stride_tricks.sliding_window_view(np.r_[job.load, np.repeat(job.load[-1], START_UP)], START_UP + 1)
    ways = {"": nothing, **dict(reserves(job)), "knows the coming 3 minutes": coming.max(axis=1)}
    (spent, short), *others = sweeps(scaling, job, list(ways.values()), options)
    at = scaling.U_GRID.index(STATED)
    rows = [(name, between(spent[at], *one)) for name, one in zip(list(ways)[1:], others, strict=True)]
    quicker = argparse.Namespace(**{**vars(options), "startup_min": START_UP - 1})
    rows.insert(-1, ("a minute quicker", between(spent[at], *sweeps(scaling, job, [nothing], quicker)[0])))
    return float(short[at]), rows


def reserves(job: Any) -> Iterator[tuple[str, Floats]]:
    """What a reserve of pods carries at each minute: a share of the largest load of the time before."""
    past = np.r_[job.past, job.seen]
    for title, span in SPANS.items():
        known = np.r_[np.full(max(span - len(job.past), 0), np.nan), past]
        largest = np.lib.stride_tricks.sliding_window_view(np.nan_to_num(known), span).max(axis=1)
        largest = largest[-len(job.load) - 1 : -1]
        for share in SHARES:
            yield f"reserve: {share:.0%} of the largest load of {title}", share * largest


def sweeps(scaling: Any, job: Any, aheads: list[Floats], options: Any) -> list[tuple[Floats, Floats]]:
    """Pod-minutes, and share of the demand short, at each target; measured demand counts, too."""
    targets = np.array(scaling.U_GRID)
    rows = len(aheads) * len(targets)
    many = np.repeat(aheads, len(targets), axis=0)
    spec, ready = scaling.replay(job, many, np.ones(rows, bool), np.tile(targets, len(aheads)), options)
    short = np.maximum(job.load - ready * job.pod, 0.0).sum(axis=1) / max(job.load.sum(), LEAST)
    shape = (len(aheads), len(targets))
    return list(zip(spec.sum(axis=1).reshape(shape), short.reshape(shape), strict=True))


def between(budget: float, spent: Floats, short: Floats) -> float:
    order = np.argsort(spent)
    inside = spent[order[0]] <= budget <= spent[order[-1]]
    return float(np.interp(budget, spent[order], short[order])) if inside else np.nan


def line(name: str, short: Floats, plain: Floats) -> str:
    kept = np.where(np.isnan(short), plain, short)
    ratio = np.minimum((kept + ALMOST) / (plain + ALMOST), MOST)
    worse = np.mean(kept > (1 + NOTABLE) * plain + LEAST)
    bursty = plain > BURSTY
    without = f" ({np.isnan(short).sum()} too dear: the HPA alone)" if np.isnan(short).any() else ""
    return (
        f"| {name}{without} | {ratio.mean():.2f} | {np.median(ratio):.2f} | {worse:.0%} | {ratio[bursty].mean():.2f} |"
    )


if __name__ == "__main__":
    main()
