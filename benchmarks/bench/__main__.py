"""`./dev bench`: the tables that README and docs quote, on the recorded load of this repository.

./dev bench                  everything, about half an hour on two cores
./dev bench --quick          the same tables on a few series, two minutes
./dev bench accuracy sizes   some of the tables
./dev bench made-up          load that switches, jumps or is mostly zero; only where it is named
./dev bench publishers       a rule chosen with each publisher left out, thirteen minutes more; only where it is named
./dev bench --write          also write a dated file of benchmarks/results/, and docs/month.md with its pictures
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.bench.accuracy import TASKS, accuracy, accuracy_table
from benchmarks.bench.decisions import START_UPS, decision_tables
from benchmarks.bench.made_up import OF_A_KIND, made_up_table
from benchmarks.bench.month import line_of, month_replays, month_table, months, write_page
from benchmarks.bench.peaks import peak_table, service_peak_table
from benchmarks.bench.publishers import left_out_table
from benchmarks.bench.sizes import size_tables
from benchmarks.bench.tables import Table
from benchmarks.record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

QUICK_SERIES = 10
QUICK_MODELS = ("seasonal-naive-day", "last-value", "ridge", "adaptive")


class Run(NamedTuple):
    """Options with which the bench was called."""

    quick: bool = False
    write: bool = False


def accuracy_part(run: Run) -> Iterator[Table]:
    """Forecasts by horizon, and of the coming peak."""
    for task in TASKS[:2] if run.quick else TASKS:
        rows = accuracy(task, QUICK_MODELS if run.quick else task.models, QUICK_SERIES if run.quick else None)
        yield accuracy_table(rows, task)
    series = QUICK_SERIES // 2 if run.quick else None
    yield peak_table(series)
    yield service_peak_table(series)


def decisions_part(run: Run) -> Iterator[Table]:
    """Scaling decisions by start-up time."""
    for start_up in START_UPS[:1] if run.quick else START_UPS:
        yield from decision_tables(start_up, QUICK_SERIES // 2 if run.quick else None)


def made_up_part(run: Run) -> Iterator[Table]:
    """Decisions on made-up load for which no rule was chosen."""
    for start_up in START_UPS[:1] if run.quick else START_UPS:
        yield made_up_table(start_up, 1 if run.quick else OF_A_KIND)


def publishers_part(run: Run) -> Iterator[Table]:
    """A rule of ours, chosen with each publisher left out."""
    yield left_out_table(QUICK_SERIES // 2 if run.quick else None)


def sizes_part(run: Run) -> Iterator[Table]:
    """Requests and limits beside the VPA and KRR."""
    yield from size_tables(quick=run.quick)


def demo_part(run: Run) -> Iterator[Table]:  # noqa: ARG001  the demo has one length
    """Table that `./dev demo` ends with."""
    command = [sys.executable, "-m", "forecaster", "demo", "-o", "json"]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    yield demo_table(json.loads(answer)["outcome"])


def month_part(run: Run) -> Iterator[Table]:
    """A month of real services, on the page of that name when it is written; `--quick` leaves it out."""
    if run.quick:
        return
    played = months(month_replays())
    lines = [line_of(month) for month in played]
    if run.write:
        write_page(played, lines)
    yield month_table(lines)


def demo_table(outcome: Mapping[str, Any]) -> Table:
    """A line a strategy, on all workloads of the demo together; the HPA spends as much at one lower target for all."""
    columns = ("strategy", "unserved demand", "minutes short", "pod-hours", "changes", "unserved, of one target = 1")
    table = Table("The demo: half a day of recorded load", columns)
    points = sorted(
        (point["account"]["pod_hours"], point["account"]["missing_share"])
        for point in outcome["total"]["hpa"]["frontier"]
    )
    for name, title in outcome["titles"].items():
        own = outcome["total"][name]["own"]
        equal = own["missing_share"] / float(np.interp(own["pod_hours"], *zip(*points, strict=True)))
        figures = f"{own['missing_share']:.3%}", f"{own['short_minutes']:.0f}", f"{own['pod_hours']:.0f}"
        table.add(title, *figures, str(own["changes"]), f"{equal:.2f}")
    return table


PARTS: Mapping[str, Callable[[Run], Iterator[Table]]] = {
    "accuracy": accuracy_part,
    "decisions": decisions_part,
    "sizes": sizes_part,
    "demo": demo_part,
    "month": month_part,
    "made-up": made_up_part,
    "publishers": publishers_part,
}
EVERY = tuple(part for part in PARTS if part not in {"made-up", "publishers"})
"""Parts that are played where none is named."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables that the arguments ask for."""
    parser = argparse.ArgumentParser(
        prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; all but the last two by default"
    )
    parser.add_argument("--quick", action="store_true", help="a few series, two minutes")
    parser.add_argument(
        "--write", action="store_true", help="write a dated file of benchmarks/results/, and docs/month.md"
    )
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.parts) - set(PARTS)):
        parser.error(f"there is no part {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    tables = []
    for part in given.parts or EVERY:
        for table in PARTS[part](Run(given.quick, given.write)):
            print(f"{table}\n", flush=True)
            tables.append(str(table))
    if given.write:
        record("bench", "The bench", " ".join(["./dev bench", *sys.argv[1:]]), "\n\n".join(tables))


if __name__ == "__main__":
    main()
