"""A backtest of sizes in every form of output."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import msgspec

from forecaster.report.printed import Printable, PrintedColumn, print_as, print_table, print_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.domain.workload import WorkloadId
    from forecaster.replay.size_compare import SizeOutcome
    from forecaster.report.formats import Output

BACKTEST_HEADS = ("SLACK", "OVER LIMIT", "TIME OVER REQUEST", "CUT OFF", "CHANGES")


class SizeOutcomeView(msgspec.Struct, frozen=True):
    """What one setting of a recommender would have led to; of slack the mean of the containers' ratios."""

    recommender: str
    setting: str
    slack: float | None
    slack_of_total: float | None
    over_limit: int
    """Five-minute points at which more was wanted than the limit."""
    over_request_share: float | None
    over_limit_share: float | None
    cut_share: float | None
    changes: int


class SizesBacktestView(msgspec.Struct, frozen=True, omit_defaults=True):
    """Backtest of sizes by resource, for containers with a day of usage; ratios, null where there is none."""

    cpu: list[SizeOutcomeView] = []
    memory: list[SizeOutcomeView] = []


def print_backtest(
    found: Mapping[str, Sequence[SizeOutcome]], heads: Mapping[str, str], output: Output, names: Sequence[WorkloadId]
) -> None:
    """One table for each resource, under its heading; `names` are the workloads that were replayed."""

    def table(wide: bool) -> None:  # noqa: FBT001  as `Printable` has it
        for name, rows in found.items():
            print_text(heads[name], "")
            print_table(_columns(rows), wide=wide)
            print_text("")

    result = Printable(
        table=table,
        document=lambda: SizesBacktestView(**{name: [_view(one) for one in rows] for name, rows in found.items()}),
        rows=lambda: [
            {"resource": name, **msgspec.structs.asdict(_view(one))} for name, rows in found.items() for one in rows
        ],
        ids=lambda: names,
    )
    print_as(output, result)


def _columns(rows: Sequence[SizeOutcome]) -> list[PrintedColumn]:
    sums = [one.summary for one in rows]
    cells = (
        [f"{s.slack:.2f}" for s in sums],
        [str(s.over_limit) for s in sums],
        [f"{s.over_request_share * 100:.2f} %" for s in sums],
        [f"{s.cut_share * 100:.2f} %" for s in sums],
        [str(s.changes) for s in sums],
    )
    return [
        PrintedColumn("RECOMMENDER", [one.family for one in rows]),
        PrintedColumn("SETTING", [one.setting for one in rows]),
        *(
            PrintedColumn(head, each, rank=rank, right=True)
            for head, each, rank in zip(BACKTEST_HEADS, cells, (0, 0, 1, 2, 3), strict=True)
        ),
    ]


def _view(one: SizeOutcome) -> SizeOutcomeView:
    amounts = one.summary._asdict()
    known = {name: None if isnan(value) else value for name, value in amounts.items()}
    return msgspec.convert({"recommender": one.family, "setting": one.setting, **known}, SizeOutcomeView)
