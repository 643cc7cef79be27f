"""Makes models/prior.npz: `python -m benchmarks.train_prior --more FOLDER`, and models/similar.npz with `--similar`.

The first has near networks only; all far ones are told of similar moments.

Of benchmarks/traces, which the bench scores, only the first 60 % of each series is read; folders of --more hold series
for training only and are read whole (what ships has seen the four that `prior.json` names; they are too large for this
repository). Half an hour on one core; the same file to the last digit for the same libraries
and processor. `prior.json` beside it lists the sources and their licences.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.bench.loads import TRACES
from benchmarks.prior_training import Examples, Recipe, examples, joined, train
from benchmarks.switching import switching
from models.forecast import StepWindow
from models.prior import NEAR_BINS, Network

TRAIN_SHARE = 0.6
DAY_SECONDS = 86_400
# Networks averaged; one near one alone loses 0.5 % more an hour ahead and 2 % more ten minutes ahead.
MEMBERS = {False: {"near": 2}, True: {"near": 2, "far": 2}}
# Series are shown at their own step and at coarser ones, so that the prior knows the difference.
STEPS = {60: (60, 300, 600), 300: (300, 600), 600: (600,)}
# Origins and births of a series of the first folder; all series of a family of --more share so many.
ORIGINS = {60: 1600, 300: 1600, 600: 500}
MORE_ORIGINS = 60_000
YOUNG, MORE_YOUNG = 12, 1
# Series that switch, made up beside the recorded ones, and origins of each.
MADE_UP, MADE_UP_ORIGINS = 600, 400
# Windows that are drawn for each series.
WINDOWS = 12


class Source(NamedTuple):
    """A folder with `catalogue.json`, and how much of each series may be seen."""

    folder: Path
    share: float

    def entries(self, without: list[str]) -> list[dict[str, object]]:
        """Entries of the catalogue for the series of the other families."""
        every = json.loads((self.folder / "catalogue.json").read_text())
        return [entry for entry in every if entry["family"] not in without]


class Recorded(NamedTuple):
    """One series at one step: gapless values, bins of a day, origins and births that are shown."""

    values: np.ndarray
    day: int
    origins: int
    births: int


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--traces", type=Path, default=TRACES)
    arguments.add_argument("--more", type=Path, nargs="*", default=[], help="folders of series for training only")
    arguments.add_argument("--out", type=Path, default=Path("models/prior.npz"))
    arguments.add_argument("--without", nargs="*", default=[], help="families left out, to see what they would get")
    arguments.add_argument("--epochs", type=int, default=Recipe().epochs)
    arguments.add_argument("--similar", action="store_true", help="networks that see similar moments")
    arguments.add_argument("--share", type=float, default=1.0, help="of the origins of each series")
    given = arguments.parse_args()
    sources = [Source(given.traces, share=TRAIN_SHARE), *(Source(folder, share=1.0) for folder in given.more)]
    read = [(source, entry) for source in sources for entry in source.entries(given.without)]
    series = with_share([*recorded(read), *made_up()] if given.similar else recorded(read), given.share)
    with threadpool_limits(1):
        weights = {
            f"{reach}/{seed}/{name}": getattr(network, name)
            for reach, count in MEMBERS[given.similar].items()
            for seed, network in enumerate(members(series, reach, count, given.epochs, similar=given.similar))
            for name in Network._fields
        }
    np.savez_compressed(given.out, **{name: value.astype(np.float32) for name, value in weights.items()})
    given.out.with_suffix(".json").write_text(json.dumps(provenance(read, given), indent=1) + "\n")
    print(f"{given.out}: {given.out.stat().st_size / 1e6:.2f} MB from {len(series)} series")


def recorded(read: list[tuple[Source, dict[str, object]]]) -> list[Recorded]:
    """Each series at each step it is shown at, as far as it may be seen, without gaps."""
    recordings: list[Recorded] = []
    alike = Counter((source.folder, entry["family"]) for source, entry in read)
    for file in dict.fromkeys(source.folder / str(entry["file"]) for source, entry in read):
        frames = dict(tuple(pd.read_parquet(file).groupby("series_id")))
        for source, entry in read:
            if source.folder / str(entry["file"]) == file:
                shares = alike[source.folder, entry["family"]] if source.share == 1 else 0
                recordings += _at_steps(
                    frames[entry["series_id"]], int(str(entry["resolution_s"])), source.share, shares
                )
    return recordings


def _at_steps(frame: pd.DataFrame, native: int, share: float, alike: int) -> list[Recorded]:
    """One series at each step; `alike` series share the origins of their family, 0 where each has its own."""
    values = frame.set_index("timestamp")["value"].resample(f"{native}s").mean()
    recordings = []
    for step in STEPS[native]:
        coarse = values.resample(f"{step}s").mean()
        past = coarse.iloc[: int(share * len(coarse))].interpolate(limit_direction="both").to_numpy(np.float64)
        shown = (max(8, MORE_ORIGINS // alike), MORE_YOUNG) if alike else (ORIGINS[step], YOUNG)
        recordings.append(Recorded(past, DAY_SECONDS // step, *shown))
    return recordings


def made_up() -> list[Recorded]:
    """Load that switches, of which recorded load has little: networks learn from it to trust similar moments."""
    day = DAY_SECONDS // 300
    return [Recorded(values, day, MADE_UP_ORIGINS, births=0) for values in switching(MADE_UP, day)]


def with_share(series: list[Recorded], share: float) -> list[Recorded]:
    """Return the series with a share of their origins."""
    return [recording._replace(origins=max(2, round(recording.origins * share))) for recording in series]


def members(series: list[Recorded], reach: str, count: int, epochs: int, *, similar: bool) -> list[Network]:
    networks = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        data = joined([part for recording in series for part in shown(recording, reach, rng, similar=similar)])
        networks.append(train(data, Recipe(epochs=epochs, seed=seed)))
        print(f"{reach} member {seed}: {len(data.context)} origins", flush=True)
    return networks


def shown(recording: Recorded, reach: str, rng: np.random.Generator, *, similar: bool = False) -> list[Examples]:
    """Examples of one series: spread over its record, and as if it had been seen for hours only."""
    values, day = recording.values, recording.day
    windows = near_windows(rng) if reach == "near" else far_windows(day, rng)
    windows = [windows[i] for i in rng.choice(len(windows), WINDOWS, replace=False)]
    ahead = max(window.last for window in windows)
    bins = NEAR_BINS if reach == "near" else day
    last = len(values) - ahead - 1
    count = recording.origins if reach == "near" else recording.origins // 2
    parts = []
    if last > day // 2:
        origins = np.sort(rng.choice(np.arange(day // 2, last), min(count, last - day // 2), replace=False))
        parts.append(examples(values, origins, windows, day, ahead=bins, similar=similar))
    for _ in range(recording.births):
        birth = int(rng.integers(0, max(1, last - 2 * day)))
        known = values[birth : birth + 2 * day + ahead + 1]
        ages = np.unique(np.exp(rng.uniform(np.log(2), np.log(2 * day), 12)).astype(np.intp))
        ages = ages[ages + ahead < len(known)]
        if len(ages):
            parts.append(examples(known, ages, windows, day, ahead=bins, similar=similar))
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


def provenance(read: list[tuple[Source, dict[str, object]]], given: argparse.Namespace) -> dict[str, object]:
    """Provenance of the weights: series by origin and licence, and the recipe."""
    keys = ("family", "source_repository", "source_commit", "licence")
    counted = Counter((source.share, *(str(entry[key]) for key in keys)) for source, entry in read)
    sources = [
        {"series": count, "share_of_each": share, **dict(zip(keys, values, strict=True))}
        for (share, *values), count in sorted(counted.items())
    ]
    return {
        "script": "benchmarks/train_prior.py",
        "recipe": asdict(Recipe(epochs=given.epochs)),
        "members": MEMBERS[given.similar],
        "similar": given.similar,
        "share_of_origins": given.share,
        "made_up_series": MADE_UP if given.similar else 0,
        "sources": sources,
    }


if __name__ == "__main__":
    main()
