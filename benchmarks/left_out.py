"""Score series whose publisher no network has seen: `python -m benchmarks.left_out`.

The families of benchmarks/traces are left out of the training of the near networks in three parts, with all that is of
the same publishers in the folders of --more, and the default model and its prior alone are then scored on them as in
`./dev bench`: an hour ahead and ten minutes ahead. The networks are of the size that ships, but one of each kind, and
learn from a share of the origins for fewer epochs. With --peaks far networks are trained, too, and the share of peaks
of minutes below the default's quantiles is printed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.bench.accuracy import REFERENCE
from benchmarks.bench.loads import TRACES
from benchmarks.bench.losses import geometric_mean_ratio
from benchmarks.bench.peaks import by_the_minute
from benchmarks.bench.tables import Table
from benchmarks.prior_training import Recipe, joined, train
from benchmarks.train_prior import TRAIN_SHARE, Recorded, Source, made_up, recorded, shown, with_share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.prior import Network

PARTS = (
    ("azure_vm_cpu", "crane", "llm_serving"),
    ("bitbrains", "bitbrains_cpu", "bitbrains_memory", "bitbrains_network"),
    ("content_platform", "nab_cloudwatch", "nab_tweets", "nasa_http"),
)
AHEAD = {"ten minutes": 0, "an hour": 1}
"""Tasks of the bench by the name of their column."""
METHODS = {"adaptive": "default", "prior": "prior alone"}
"""Models that are scored by the name of their column."""
PLAIN, SIMILAR = "prior.npz", "similar.npz"
NEAR = ((PLAIN, "near"), (SIMILAR, "near"))
"""File and reach of the networks that are trained anew: those of the second file see similar moments."""
SCORE = """
from benchmarks.bench.accuracy import TASKS, accuracy
accuracy(TASKS[{task}], {models}, families={families}).to_csv({path!r})
"""
PEAKS = """
from benchmarks.bench.peaks import peak_table, service_peak_table
print(peak_table(families={families}, model={model!r}))
print(service_peak_table(families={families}))
"""
HERE = Path(__file__).parent.parent


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--more", type=Path, nargs="*", default=[], help="folders of series for training only")
    arguments.add_argument("--share", type=float, default=0.25, help="of the origins the shipped networks saw")
    arguments.add_argument("--epochs", type=int, default=8)
    arguments.add_argument(
        "--peaks", action="store_true", help="peaks of minutes, too, of series recorded by the minute"
    )
    arguments.add_argument("--parts", type=int, nargs="*", default=list(range(len(PARTS))))
    given = arguments.parse_args()
    tables = []
    for part in (PARTS[i] for i in given.parts):
        series = series_without(given.more, part)
        with threadpool_limits(1):
            networks = {
                (file, reach): trained(series, reach, given.share, Recipe(epochs=given.epochs), similar=file == SIMILAR)
                for file, reach in (*NEAR, *([(SIMILAR, "far")] if given.peaks else []))
            }
        tables.append(scored(part, networks))
        print(figures(", ".join(part), tables[-1]), flush=True)
    print(figures("All of them", pd.concat(tables)))


def series_without(more: Sequence[Path], families: tuple[str, ...]) -> list[Recorded]:
    """The recorded series for training, but those of these families."""
    sources = (Source(TRACES, TRAIN_SHARE), *(Source(folder, 1.0) for folder in more))
    return recorded([(source, entry) for source in sources for entry in source.entries(list(families))])


def trained(series: list[Recorded], reach: str, share: float, recipe: Recipe, *, similar: bool) -> Network:
    """A network of this reach that has seen these series, and where it reads similar moments made-up ones, too."""
    chosen = with_share([*series, *made_up()] if similar else series, share)
    rng = np.random.default_rng(recipe.seed)
    return train(joined([part for each in chosen for part in shown(each, reach, rng, similar=similar)]), recipe)


def scored(part: tuple[str, ...], networks: Mapping[tuple[str, str], Network]) -> pd.DataFrame:
    """Rows of the bench (model, family, series, loss, ahead) of a copy of this tree with these networks only.

    Where far networks were trained, peaks of minutes are printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree, path = Path(folder) / "tree", str(Path(folder) / "rows.csv")
        shutil.copytree(HERE / "models", tree / "models")
        for name in ("benchmarks", "forecaster"):
            (tree / name).symlink_to(HERE / name)
        for (file, reach), network in networks.items():
            put(tree / "models" / file, reach, network)
        tables = []
        for ahead, task in AHEAD.items():
            code = SCORE.format(task=task, models=(REFERENCE, *METHODS), families=part, path=path)
            subprocess.run([sys.executable, "-c", code], check=True, cwd=tree)
            tables.append(pd.read_csv(path).assign(ahead=ahead))
        if (SIMILAR, "far") in networks and by_the_minute(part):
            code = PEAKS.format(families=part, model=next(iter(METHODS)))
            subprocess.run([sys.executable, "-c", code], check=True, cwd=tree)
        return pd.concat(tables)


def put(path: Path, reach: str, network: Network) -> None:
    """Replace the networks of this reach; no scored model uses others that were not trained."""
    with np.load(path, allow_pickle=False) as file:
        shipped = {name: file[name] for name in file.files if name.split("/")[0] != reach}
    np.savez_compressed(path, **shipped, **{f"{reach}/0/{name}": values for name, values in network._asdict().items()})


def figures(title: str, rows: pd.DataFrame) -> Table:
    """By family, and over all, the geometric mean over series of the loss relative to the same time yesterday."""
    columns = [(ahead, model) for ahead in AHEAD for model in METHODS]
    table = Table(title, ("family", *(f"{ahead}, {METHODS[model]}" for ahead, model in columns)))
    for family, own in [*rows.groupby("family"), ("all", rows)]:
        losses = own.pivot_table(index="series", columns=["ahead", "model"], values="loss")
        table.add(str(family), *(f"{_ratio(losses[ahead], model):.3f}" for ahead, model in columns))
    return table


def _ratio(losses: pd.DataFrame, model: str) -> float:
    pairs = losses[[model, REFERENCE]].dropna()
    return geometric_mean_ratio(pairs[model].to_numpy(), pairs[REFERENCE].to_numpy())


if __name__ == "__main__":
    main()
