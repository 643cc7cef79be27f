"""A page that is one file: it loads nothing, prints, fits a phone, and follows the reader's light or dark."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from forecaster.replay.assumptions import Assumptions
from forecaster.replay.comparison import BENEFIT_MEANS, Comparison, WorkloadComparison
from forecaster.replay.strategies import HPA
from forecaster.report.comparison import (
    COMPARISON_LEGEND,
    gate_detail,
    left_out_lines,
    limits_of,
    sentences,
    strategy_columns,
    workload_columns,
    worst_hours,
)
from forecaster.report.printed import columns_from, percent
from forecaster.report.replay_plots import OWN_STYLE, coinciding, frontier, key, style_of, swatch, trajectory

if TYPE_CHECKING:
    from forecaster.report.printed import PrintedColumn

HERE = Path(__file__).parent


@cache
def style() -> str:
    """Return the style sheet of the page."""
    return (HERE / "page.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return the script, which shows the values under the pointer in a plot."""
    return (HERE / "page.js").read_text(encoding="utf-8")


def policy() -> str:
    """The page's own content security policy: this very script, and nothing from anywhere else."""
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def document(title: str, parts: Iterable[str]) -> str:
    """Return the page as one HTML file."""
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy()}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{style()}</style>"
    )
    body = f"<main>{''.join(parts)}</main><script>{script()}</script>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def table(columns: Sequence[PrintedColumn], *, total: bool = False) -> str:
    """Columns under their heads; a table that is too wide scrolls by itself. With `total` the last row is a sum."""
    kinds = ["" if column.right else ' class="text"' for column in columns]
    heads = zip(kinds, (escape(column.head) for column in columns), strict=True)
    head = "".join(f'<th scope="col"{kind}>{text}</th>' for kind, text in heads)
    rows = list(zip(*(column.cells for column in columns), strict=True))
    body = "".join(
        f"<tr{' class=all' if total and i == len(rows) - 1 else ''}>"
        + "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for i, row in enumerate(rows)
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def section(title: str, note: str, columns: Sequence[PrintedColumn], *, total: bool = True) -> list[str]:
    """Return a heading, a note about the table, and the table."""
    return [f"<h2>{escape(title)}</h2>", *([paragraph(note, "soft")] if note else []), table(columns, total=total)]


def items(lines: Iterable[str]) -> str:
    """Return an HTML list of lines."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def paragraph(text: str, kind: str = "") -> str:
    """Return an HTML paragraph."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


# A comparison as one page: summary, frontiers, worst hours, gates, each workload.


WORST = "Pods missing, as a mean over the hour, with the targets that the owners set."
EACH_NOTE = f"Under the HPA alone → with forecaster. {BENEFIT_MEANS}"
EXPLAINED = (
    "Each line is one way to scale, with all targets from lean to safe; lower and further left is better. Large dots "
    "are the targets that the owners set."
)


def page(whole: Comparison, *, title: str = "Replay", further: Iterable[str] = ()) -> str:
    """The whole page; `further` sections stand below the table of workloads."""
    named = f"{title}, {whole.begin:%Y-%m-%d %H:%M} to {whole.until:%Y-%m-%d %H:%M} UTC"
    body = [f"<h1>{escape(title)}</h1>", dates(whole.begin, whole.until), *summary(whole)]
    if whole.workloads:
        body += [*further, *frontier_section(whole), *worst_section(whole), *workloads_section(whole)]
    left_out = [f"<h2>Left out</h2>{items(left_out_lines(whole.left_out))}"] if whole.left_out else []
    return document(named, [*body, *left_out, assumptions_section(whole.assumed, whole.origin)])


def dates(begin: datetime, until: datetime) -> str:
    """The time that was played, in one line where there is room and never broken within a date."""
    first, last = (f'<span class="date">{at:%a %Y-%m-%d %H:%M}</span>' for at in (begin, until))
    return f'<p class="soft">{first} to {last} UTC</p>'


def summary(whole: Comparison) -> list[str]:
    """Return the summary, cases where forecaster was worse first, and the figures of every strategy and workload."""
    lead = whole.verdict()
    lines = [line for line in sentences(whole) if line != lead]
    first = [paragraph(lead, "first worse" if whole.worse(whole.forecaster) else "first")] if lead else []
    if not whole.workloads:
        return [*first, items(lines)]
    figures = [table(strategy_columns(whole)), paragraph(COMPARISON_LEGEND, "soft")]
    each = section("Each workload", EACH_NOTE, workload_columns(whole)) if lead else []
    return [*first, items(lines), *figures, *each]


def frontier_section(whole: Comparison) -> list[str]:
    """All workloads together."""
    curves = {c.name: whole.curve(c.name) for c in whole.strategies}
    return [
        "<h2>Cost against shortage</h2>",
        paragraph(EXPLAINED, "soft"),
        key(whole.strategies, coinciding(curves)),
        frontier(curves, _titles(whole), "all workloads"),
    ]


def _titles(whole: Comparison) -> dict[str, str]:
    return {strategy.name: strategy.title for strategy in whole.strategies}


def worst_section(whole: Comparison) -> list[str]:
    """Return the section about when and where the shortage was worst."""
    hours = worst_hours(whole)
    if not hours:
        return ["<h2>Worst hours</h2>", paragraph("Nothing was short under the HPA alone or with forecaster.")]
    heads = ("hour, UTC", "workload", *(strategy.title for strategy in whole.strategies))
    rows = [
        (f"{hour.at:%Y-%m-%d %H:%M}", str(hour.workload), *(f"{hour.missing[c.name]:.2f}" for c in whole.strategies))
        for hour in hours
    ]
    return section("Worst hours", WORST, columns_from(heads, rows, [0] * len(heads), texts=2), total=False)


def workloads_section(whole: Comparison) -> list[str]:
    """Each workload, those on which forecaster was worse first and opened."""
    forecaster, worse, titles = whole.forecaster, whole.worse(whole.forecaster), _titles(whole)
    colours = [("demand", "demand"), (style_of(HPA.name), titles[HPA.name])]
    if forecaster in titles:
        colours.append((OWN_STYLE, titles[forecaster]))
    shown = [_workload(each, whole, opened=i == 0, worse=each in worse) for i, each in enumerate(whole.ordered())]
    return ["<h2>Workloads</h2>", swatch(colours), *shown]


def _workload(compared: WorkloadComparison, whole: Comparison, *, opened: bool, worse: bool) -> str:
    shortages = f"unserved demand {percent(compared.curves[HPA.name].own.missing_share)} under the HPA alone"
    if whole.forecaster in compared.curves:
        shortages += f", {percent(compared.curves[whole.forecaster].own.missing_share)} with forecaster"
    mark = '<span class="bad">worse than the HPA</span>' if worse else ""
    titles: Mapping[str, str] = _titles(whole)
    curves = {name: curve.points for name, curve in compared.curves.items()}
    return (
        f"<details{' open' if opened else ''}><summary><b>{escape(str(compared.workload.id))}</b>{mark}"
        f'<span class="soft">{shortages}</span></summary>{trajectory(compared, whole.begin, titles)}'
        f"{paragraph(gate_detail(whole, compared.workload.id), 'soft')}"
        f"{table(strategy_columns(whole, compared))}{key(whole.strategies, coinciding(curves))}"
        f"{frontier(curves, titles, str(compared.workload.id))}</details>"
    )


def assumptions_section(assumed: Assumptions, origin: str) -> str:
    """Return the assumptions, and the limits of a replay."""
    start_ups = ", ".join(f"{start_up.total_seconds():g} s" for start_up in assumed.start_ups)
    timing = assumed.timing
    text = (
        f"Pods serve {start_ups} after they are requested; the HPA syncs every {timing.sync.total_seconds():g} s and "
        f"sees a minute {timing.metrics_delay.total_seconds():g} s after its end; a decision counts "
        f"{timing.decision_delay.total_seconds():g} s after its minute. Demand: {origin}."
    )
    return f"<h2>Assumptions and limits</h2>{paragraph(text)}{items(limits_of(assumed.feedback))}"
