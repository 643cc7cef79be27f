"""A backtest of sizes, as a table or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.replay.size_compare import SizeOutcome

COLUMNS = ("RECOMMENDER", "SETTING", "SLACK", "OVER LIMIT", "TIME OVER REQUEST", "CUT OFF", "CHANGES")


def print_backtest(found: Mapping[str, Sequence[SizeOutcome]], heads: Mapping[str, str], *, as_json: bool) -> None:
    """One table for each resource, under its heading."""
    if as_json:
        print(json.dumps({name: [_record(one) for one in rows] for name, rows in found.items()}, indent=2))  # noqa: T201
        return
    console = Console()
    for name, rows in found.items():
        console.print(f"{heads[name]}\n", highlight=False)
        console.print(_table(rows))
        console.print()


def _table(rows: Sequence[SizeOutcome]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(COLUMNS):
        table.add_column(name, no_wrap=True, justify="left" if i < 2 else "right")  # noqa: PLR2004  the two names
    for one in rows:
        s = one.summary
        shares = (f"{share * 100:.2f} %" for share in (s.over_request_share, s.cut_share))
        table.add_row(one.family, one.setting, f"{s.slack:.2f}", str(s.over_limit), *shares, str(s.changes))
    return table


def _record(one: SizeOutcome) -> dict[str, object]:
    return {"recommender": one.family, "setting": one.setting, **one.summary._asdict()}
