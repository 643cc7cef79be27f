"""A backtest of sizes in every form of output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.report.printed import Printable, PrintedColumn, print_as, print_table, print_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.domain.workload import WorkloadId
    from forecaster.replay.size_compare import SizeOutcome
    from forecaster.report.formats import Output

COLUMNS = ("SLACK", "OVER LIMIT", "TIME OVER REQUEST", "CUT OFF", "CHANGES")


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
        document=lambda: {name: [_record(one) for one in rows] for name, rows in found.items()},
        rows=lambda: [{"resource": name, **_record(one)} for name, rows in found.items() for one in rows],
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
            for head, each, rank in zip(COLUMNS, cells, (0, 0, 1, 2, 3), strict=True)
        ),
    ]


def _record(one: SizeOutcome) -> dict[str, object]:
    return {"recommender": one.family, "setting": one.setting, **one.summary._asdict()}
