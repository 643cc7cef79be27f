"""How much better a forecast could be at all: `python -m benchmarks.bounds [--quick] [--tasks 0 1 2]`.

On the cuts that ../shared/bench scores, the loss of the default model relative to seasonal naive is put beside that of
forecasts which know what none can know:

- the best of what it is mixed of and of the simple baselines, for each series, or for each series and quantile, and the
  best constant mixture of all of them for each series and quantile, all chosen after the fact;
- the default model, told the mean of all that comes, or of each half, eighth or 24th of it, to the last digit;
- the two bins before and the two after the one that is asked for.

The latter two have their quantiles from what bins were off in the very bins that are scored. What they lose is the
restlessness of single bins, which perfect knowledge of the level leaves. The range beside the default model holds nine
of ten draws of as many series of each family.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.accuracy import TASKS, Task, table
from benchmarks.plugins import experts, forecaster

if TYPE_CHECKING:
    from collections.abc import Iterator

BASELINES = ("snaive_day", "snaive_week", "last_value", "ridge_ar")
OURS, NAIVE = "adaptive", "snaive_day"
LEVELS = (0.5, 0.9, 0.95)
PARTS = {1: "all that comes", 2: "each half of it", 8: "each eighth of it", 24: "each 24th of it"}
BESIDE = (-2, -1, 1, 2)
DRAWS, ROUNDS = 500, 300
HISTORY_DAYS, CUTS = 14, 20
# Where naive loses nothing a share of its loss says nothing; the bench does the same.
LEAST = 1e-9


class Told(NamedTuple):
    """One series: what came [cut, step], by method what was said [cut, level, step], and the bins beside each."""

    name: str
    family: str
    came: np.ndarray
    said: dict[str, np.ndarray]
    beside: np.ndarray


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--bench", type=Path, default=Path("../shared/bench"))
    arguments.add_argument("--quick", action="store_true", help="24 series instead of all")
    arguments.add_argument("--tasks", type=int, nargs="*", default=list(range(len(TASKS))))
    asked = arguments.parse_args()
    sys.path.insert(0, str(asked.bench.resolve().parent))
    for task in (TASKS[i] for i in asked.tasks):
        found = {one.name: {"family": one.family, **losses(one)} for one in forecasts(task, quick=asked.quick)}
        print(f"## {task.title}\n\n{table(relative(pd.DataFrame(found).T))}\n", flush=True)


def forecasts(task: Task, *, quick: bool) -> Iterator[Told]:
    """Every series with what each method says at each of its cuts."""
    from bench import accuracy, traces  # noqa: PLC0415  lies outside this repository

    options = {name: int(value) for name, value in zip(task.options[::2], task.options[1::2], strict=True)}
    minutes, cuts = options.get("--horizon-min", 60), options.get("--origins", CUTS)
    own = {one.name: one for one in (forecaster(), *experts())}
    models = accuracy.build((*BASELINES, *own), own, [], LEVELS)
    for one in traces.sample(traces.load([traces.SHARED], options.get("--step", 300)), 24 if quick else None, 0):
        ahead, said = minutes * 60 // one.step_s, []
        origins = [at for at in traces.origins(one, cuts, ahead, 0) if at >= 2 * one.day]
        for at in origins:
            batch = [(one, at, traces.history(one, at, HISTORY_DAYS))]
            said.append({name: of[0][0] for name, of in accuracy.forecasts(models, batch, ahead, list(LEVELS)).items()})
        padded = np.pad(one.y, (0, max(BESIDE)), constant_values=np.nan)
        beside = np.stack([[padded[at + by : at + by + ahead] for at in origins] for by in BESIDE], axis=-1)
        came = np.stack([one.y[at : at + ahead] for at in origins])
        yield Told(one.series_id, one.family, came, {k: np.stack([each[k] for each in said]) for k in models}, beside)


def losses(one: Told) -> dict[str, float]:
    """By what is known, what is lost on one series; NaN where its bins are too coarse for it."""
    each = {
        name: np.array([lost(one.came, of[:, i], q) for i, q in enumerate(LEVELS)]) for name, of in one.said.items()
    }
    total = {name: float(of.sum()) for name, of in each.items()}
    found = {
        NAIVE: total[NAIVE],
        OURS: total[OURS],
        "prior alone": total["prior"],
        "best method of each series": min(total.values()),
        "best method of each series and quantile": float(np.min(list(each.values()), axis=0).sum()),
        "best mixture of each series and quantile": sum(mixture(one, i) for i in range(len(LEVELS))),
    }
    middle = one.said[OURS][:, 0]
    spread = np.maximum(one.said[OURS][:, -1] - middle, LEAST * np.abs(middle))
    for parts, label in PARTS.items():
        width = one.came.shape[1] // parts
        told = middle + means(one.came - middle, width) if width > 1 else None
        found[f"ours, told the mean of {label}"] = np.nan if told is None else least_lost(one.came, told, spread)
    found["the bins before and after"] = least_lost(one.came, between(one.came, one.beside), spread)
    return found


def relative(found: pd.DataFrame) -> pd.DataFrame:
    """What is lost relative to seasonal naive: geometric means over the series for which there is a figure."""
    families = found.pop("family")
    shares = found.astype(float).clip(lower=LEAST)
    shares = shares[shares[NAIVE] > LEAST].div(shares[NAIVE], axis=0).dropna(how="all").drop(columns=NAIVE)
    logs = np.log(shares)
    same = {name: logs.loc[logs[name].notna(), OURS].mean() for name in logs}
    columns = {"lost": np.exp(logs.mean()), f"{OURS} on these": np.exp(pd.Series(same)), "series": logs.count()}
    out = pd.DataFrame(columns).dropna()
    return out.rename(index={OURS: f"{OURS} ({drawn(logs[OURS], families)} with other series)"}).rename_axis("known")


def drawn(logs: pd.Series, families: pd.Series) -> str:
    """Range of nine of ten draws of series with replacement, as many of each family as there are."""
    rng = np.random.default_rng(0)
    parts = [part.to_numpy() for _, part in logs.groupby(families[logs.index])]
    draws = [np.exp(np.concatenate([rng.choice(part, len(part)) for part in parts]).mean()) for _ in range(DRAWS)]
    return "{:.3f} to {:.3f}".format(*np.quantile(draws, (0.05, 0.95)))


def mixture(one: Told, nth: int) -> float:
    """What the constant mixture of all methods that suits one quantile best loses, by exponentiated gradients."""
    known = np.isfinite(one.came)
    said = np.stack([of[:, nth][known] for of in one.said.values()], axis=-1)
    came, level = one.came[known], LEVELS[nth]
    unit = np.abs(said - came[:, None]).mean() or 1.0
    weights = np.full(said.shape[1], 1 / said.shape[1])
    least = np.inf
    for turn in range(ROUNDS):
        mixed = said @ weights
        least = min(least, lost(came, mixed, level))
        slope = ((mixed > came) - level) @ (said - mixed[:, None]) / (len(came) * unit)
        weights *= np.exp(-4 * slope / np.sqrt(1 + turn / 10))
        weights /= weights.sum()
    return least


def means(values: np.ndarray, width: int) -> np.ndarray:
    """[cut, step] the mean of the stretch of `width` steps in which a step lies; the last stretch may be shorter."""
    parts = [values[:, i : i + max(1, width)] for i in range(0, values.shape[1], max(1, width))]
    return np.concatenate([np.broadcast_to(known_mean(p), p.shape) for p in parts], axis=1)


def known_mean(values: np.ndarray) -> np.ndarray:
    """Mean of the last axis, kept, without gaps; NaN where there is nothing else."""
    count = np.isfinite(values).sum(axis=-1, keepdims=True)
    return np.where(count, np.nansum(values, axis=-1, keepdims=True) / np.maximum(count, 1), np.nan)


def between(came: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """[cut, step] the linear equation of its neighbours [cut, step, neighbour] that suits what came best."""
    mean = known_mean(beside)
    beside = np.where(np.isnan(beside), mean, beside)
    known = np.isfinite(came) & np.isfinite(mean[..., 0])
    terms = np.concatenate([beside, np.ones((*came.shape, 1))], axis=-1)
    weights = np.linalg.lstsq(terms[known], came[known], rcond=None)[0]
    return np.where(known, terms @ weights, mean[..., 0])


def least_lost(came: np.ndarray, middle: np.ndarray, spread: np.ndarray) -> float:
    """What `middle` and the quantiles of what came beside it lose: absolute, proportional or in units of `spread`."""
    known = np.isfinite(came) & np.isfinite(middle)
    off, size = (came - middle)[known], np.abs(middle)[known]
    units = (np.ones_like(off), np.maximum(size, LEAST * (size.max(initial=0.0) or 1.0)), spread[known])
    return min(sum(lost(off, np.quantile(off / by, q) * by, q) for q in LEVELS) for by in units if (by > 0).all())


def lost(came: np.ndarray, said: np.ndarray, level: float) -> float:
    """Summed pinball loss, gaps left out."""
    missing = came - said
    return float(np.nansum(np.maximum(level * missing, (level - 1) * missing)))


if __name__ == "__main__":
    main()
