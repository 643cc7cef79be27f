"""Makes models/prior.npz from recorded series: `python -m benchmarks.train_prior ../shared/traces`.

Only the first 60 % of each series is read, so that what the bench scores stays unseen. A quarter of an hour on one
core; the same file to the last digit for the same libraries and processor.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from models.forecast import StepWindow
from models.network import Network
from models.training import Examples, Recipe, examples, joined, train

TRAIN_SHARE = 0.6
DAY_SECONDS = 86_400
# Networks averaged; what lies further than a quarter of an hour ahead hangs less on the weights.
MEMBERS = {"near": 3, "far": 2}
# Series are shown at their own step and at coarser ones, so that the prior knows the difference.
STEPS = {60: (60, 300, 600), 300: (300, 600), 600: (600,)}
ORIGINS = {60: 2500, 300: 2500, 600: 500}
YOUNG = 24
Series = tuple[np.ndarray, int]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("traces", type=Path, nargs="+")
    arguments.add_argument("--out", type=Path, default=Path("models/prior.npz"))
    arguments.add_argument("--without", nargs="*", default=[], help="families left out, to see what they would get")
    arguments.add_argument("--epochs", type=int, default=Recipe().epochs)
    asked = arguments.parse_args()
    series = [one for folder in asked.traces for one in recorded(folder, asked.without)]
    with threadpool_limits(1):
        weights = {
            f"{reach}/{seed}/{name}": getattr(network, name)
            for reach in ("near", "far")
            for seed, network in enumerate(members(series, reach, asked.epochs))
            for name in Network._fields
        }
    np.savez_compressed(asked.out, **{name: value.astype(np.float32) for name, value in weights.items()})
    print(f"{asked.out}: {asked.out.stat().st_size / 1e6:.2f} MB from {len(series)} series")


def recorded(folder: Path, without: list[str]) -> list[Series]:
    """The first 60 % of each series at each step it is shown at, without gaps."""
    found: list[Series] = []
    catalogue = json.loads((folder / "catalogue.json").read_text())
    frames = {
        file: dict(tuple(pd.read_parquet(folder / file).groupby("series_id")))
        for file in {c["file"] for c in catalogue}
    }
    for entry in catalogue:
        if entry["family"] in without:
            continue
        one = frames[entry["file"]][entry["series_id"]]
        native = int(entry["resolution_s"])
        values = one.set_index("timestamp")["value"].resample(f"{native}s").mean()
        for step in STEPS[native]:
            coarse = values.resample(f"{step}s").mean()
            past = coarse.iloc[: int(TRAIN_SHARE * len(coarse))].interpolate(limit_direction="both")
            found.append((past.to_numpy(np.float64), DAY_SECONDS // step))
    return found


def members(series: list[Series], reach: str, epochs: int) -> list[Network]:
    networks = []
    for seed in range(MEMBERS[reach]):
        rng = np.random.default_rng(seed)
        data = joined([part for values, day in series for part in shown(values, day, reach, rng)])
        networks.append(train(data, Recipe(epochs=epochs, seed=seed)))
        print(f"{reach} member {seed}: {len(data.context)} origins", flush=True)
    return networks


def shown(values: np.ndarray, day: int, reach: str, rng: np.random.Generator) -> list[Examples]:
    """Examples of one series: spread over its record, and as if it had been seen for hours only."""
    windows = near_windows(rng) if reach == "near" else far_windows(day, rng)
    ahead = max(window.last for window in windows)
    last = len(values) - ahead - 1
    count = ORIGINS[DAY_SECONDS // day] if reach == "near" else ORIGINS[DAY_SECONDS // day] // 2
    parts = []
    if last > day:
        origins = np.sort(rng.choice(np.arange(day // 2, last), min(count, last - day // 2), replace=False))
        parts.append(examples(values, origins, windows, day))
    for _ in range(YOUNG):
        birth = int(rng.integers(0, max(1, last - 2 * day)))
        known = values[birth : birth + 2 * day + ahead + 1]
        ages = np.unique(np.exp(rng.uniform(np.log(2), np.log(2 * day), 12)).astype(np.intp))
        ages = ages[ages + ahead < len(known)]
        if len(ages):
            parts.append(examples(known, ages, windows, day))
    return parts


def near_windows(rng: np.random.Generator) -> list[StepWindow]:
    """Each of the next fifteen steps, and some windows among them."""
    steps = [StepWindow(step, step) for step in range(1, 16)]
    firsts = rng.integers(1, 9, 9)
    return steps + [StepWindow(int(first), int(rng.integers(first + 1, 16))) for first in firsts]


def far_windows(day: int, rng: np.random.Generator) -> list[StepWindow]:
    """Steps and windows up to a day ahead, nearer ones more often."""
    firsts = np.exp(rng.uniform(0, np.log(day), 16)).astype(int)
    steps = [StepWindow(int(first), int(first)) for first in firsts]
    widths = np.exp(rng.uniform(0, np.log(day), 8)).astype(int)
    return steps + [
        StepWindow(int(first), int(min(day, first + width))) for first, width in zip(firsts[::2], widths, strict=True)
    ]


if __name__ == "__main__":
    main()
