"""What series get whose publisher no network has seen: `python -m benchmarks.left_out`.

The families of ../shared/traces are left out of the training of the near networks in three parts, with all that is of
the same publishers in the folders of --more, and the default model, and its prior alone, are then scored on them by
../shared/bench: an hour ahead and ten minutes ahead. The networks are of the size that ships, but one instead of two,
and learn from a share of the origins for fewer epochs, so that all three take some minutes of one core.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.accuracy import SCORED, TASKS, run, table
from benchmarks.bounds import LEAST, NAIVE
from benchmarks.prior_training import Recipe, joined, train
from benchmarks.train_prior import TRAIN_SHARE, Source, recorded, shown

if TYPE_CHECKING:
    from models.prior import Network

PARTS = (
    ("azure_vm_cpu", "crane", "llm_serving"),
    ("bitbrains", "bitbrains_cpu", "bitbrains_memory", "bitbrains_network"),
    ("content_platform", "nab_cloudwatch", "nab_tweets", "nasa_http"),
)
AHEAD = dict(zip(("an hour", "ten minutes"), TASKS, strict=False))
EXPERTS = "benchmarks.plugins:experts"
METHODS = {"adaptive": "default", "prior": "prior alone"}
HERE = Path(__file__).parent.parent


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--shared", type=Path, default=Path("../shared"))
    arguments.add_argument("--share", type=float, default=0.25, help="of the origins the shipped networks saw")
    arguments.add_argument("--epochs", type=int, default=8)
    arguments.add_argument("--parts", type=int, nargs="*", default=list(range(len(PARTS))))
    asked = arguments.parse_args()
    shared = asked.shared.resolve()
    found = []
    for part in (PARTS[i] for i in asked.parts):
        with threadpool_limits(1):
            network = trained(shared, part, asked.share, Recipe(epochs=asked.epochs))
        found.append(scored(shared, part, network))
        print(table(figures(found[-1])), flush=True)
    print("\nAll of them:\n\n" + table(figures(pd.concat(found))))


def trained(shared: Path, without: tuple[str, ...], share: float, recipe: Recipe) -> Network:
    """A near network that has seen none of these families."""
    sources = (Source(shared / "traces", TRAIN_SHARE), Source(shared / "traces-train", 1.0))
    series = recorded([(source, entry) for source in sources for entry in source.entries(list(without))])
    some = [one._replace(origins=max(2, round(one.origins * share))) for one in series]
    rng = np.random.default_rng(recipe.seed)
    return train(joined([part for one in some for part in shown(one, "near", rng)]), recipe)


def scored(shared: Path, part: tuple[str, ...], network: Network) -> pd.DataFrame:
    """[series, (ahead, method)] lost by a copy of this tree with this network only, on these families."""
    with tempfile.TemporaryDirectory() as folder:
        tree, traces = Path(folder) / "tree", Path(folder) / "traces"
        shutil.copytree(HERE / "models", tree / "models")
        for name in ("benchmarks", "forecaster"):
            (tree / name).symlink_to(HERE / name)
        put(tree / "models/prior.npz", network)
        select(shared / "traces", traces, part)
        lost = {}
        for ahead, task in AHEAD.items():
            only = replace(task, options=(*task.options, "--traces", str(traces)))
            _, rows = run(only, shared / "bench", NAIVE, quick=False, plugins=(EXPERTS,), tree=tree)
            lost[ahead] = rows.groupby(["family", "series_id", "method"])[list(SCORED)].sum().sum(axis=1)
        return pd.DataFrame(lost)


def put(path: Path, network: Network) -> None:
    """Replace the near networks; far ones stay, and nothing that is scored here asks them."""
    with np.load(path, allow_pickle=False) as file:
        kept = {name: file[name] for name in file.files if name.startswith("far/")}
    near = {f"near/0/{name}": value for name, value in network._asdict().items()}
    np.savez_compressed(path, **kept, **near)


def select(source: Path, target: Path, families: tuple[str, ...]) -> None:
    """A folder like `source` with these families."""
    target.mkdir()
    some = [one for one in json.loads((source / "catalogue.json").read_text()) if one["family"] in families]
    (target / "catalogue.json").write_text(json.dumps(some))
    for file in {one["file"] for one in some}:
        (target / file).symlink_to(source / file)


def figures(lost: pd.DataFrame) -> pd.DataFrame:
    """By family, and over all, the geometric mean over series of what was lost relative to seasonal naive."""
    shares = {
        f"{ahead}, {shown_as}": (of.xs(method, level="method") / of.xs(NAIVE, level="method")).dropna()
        for ahead, of in lost.items()
        for method, shown_as in METHODS.items()
    }
    rows = {
        family: {name: mean_of(of.xs(family, level="family")) for name, of in shares.items()}
        for family in lost.index.unique("family")
    }
    return pd.DataFrame([*rows.values(), {k: mean_of(v) for k, v in shares.items()}], index=[*rows, "all"])


def mean_of(shares: pd.Series) -> float:
    """Geometric mean over series."""
    return float(np.exp(np.log(shares.clip(lower=LEAST)).mean()))


if __name__ == "__main__":
    main()
