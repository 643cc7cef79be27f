"""A comparison as one page: what came of it, frontiers, worst hours, gates, each workload."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

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
from forecaster.report.page import document, items, paragraph, section, table
from forecaster.report.printed import columns_from, percent
from forecaster.report.replay_plots import OWN_STYLE, coinciding, frontier, key, style_of, swatch, trajectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from forecaster.replay.assumptions import Assumptions

WORST = "Pods missing, as a mean over the hour, with the targets that the owners set."
EACH_NOTE = f"Under the HPA alone → with forecaster. {BENEFIT_MEANS}"
EXPLAINED = (
    "Each line is one way to scale, with all targets from lean to safe; lower and further left is better. Large dots "
    "are the targets that the owners set."
)


def page(one: Comparison, *, title: str = "Replay", further: Iterable[str] = ()) -> str:
    """The whole page; `further` sections stand below the table of workloads."""
    named = f"{title}, {one.begin:%Y-%m-%d %H:%M} to {one.until:%Y-%m-%d %H:%M} UTC"
    body = [f"<h1>{escape(title)}</h1>", dates(one.begin, one.until), *summary(one)]
    if one.workloads:
        body += [*further, *frontier_section(one), *worst_section(one), *workloads_section(one)]
    left_out = [f"<h2>Left out</h2>{items(left_out_lines(one.left_out))}"] if one.left_out else []
    return document(named, [*body, *left_out, assumptions_section(one.assumed, one.origin)])


def dates(begin: datetime, until: datetime) -> str:
    """The time that was played, in one line where there is room and never broken within a date."""
    first, last = (f'<span class="date">{at:%a %Y-%m-%d %H:%M}</span>' for at in (begin, until))
    return f'<p class="soft">{first} to {last} UTC</p>'


def summary(one: Comparison) -> list[str]:
    """What came of it, where forecaster was worse first, and the figures of every strategy and every workload."""
    lead = one.verdict()
    said = [line for line in sentences(one) if line != lead]
    first = [paragraph(lead, "first worse" if one.worse(one.ours) else "first")] if lead else []
    if not one.workloads:
        return [*first, items(said)]
    figures = [table(strategy_columns(one)), paragraph(COMPARISON_LEGEND, "soft")]
    each = section("Each workload", EACH_NOTE, workload_columns(one)) if lead else []
    return [*first, items(said), *figures, *each]


def frontier_section(one: Comparison) -> list[str]:
    """All workloads together."""
    curves = {c.name: one.curve(c.name) for c in one.strategies}
    return [
        "<h2>Cost against shortage</h2>",
        paragraph(EXPLAINED, "soft"),
        key(one.strategies, coinciding(curves)),
        frontier(curves, _titles(one), "all workloads"),
    ]


def _titles(one: Comparison) -> dict[str, str]:
    return {strategy.name: strategy.title for strategy in one.strategies}


def worst_section(one: Comparison) -> list[str]:
    """Return the section about when and where the shortage was worst."""
    hours = worst_hours(one)
    if not hours:
        return ["<h2>Worst hours</h2>", paragraph("Nothing was short under the HPA alone or with forecaster.")]
    heads = ("hour, UTC", "workload", *(strategy.title for strategy in one.strategies))
    rows = [
        (f"{hour.at:%Y-%m-%d %H:%M}", str(hour.workload), *(f"{hour.missing[c.name]:.2f}" for c in one.strategies))
        for hour in hours
    ]
    return section("Worst hours", WORST, columns_from(heads, rows, [0] * len(heads), texts=2), total=False)


def workloads_section(one: Comparison) -> list[str]:
    """Each workload, those on which forecaster was worse first and opened."""
    ours, worse, titles = one.ours, one.worse(one.ours), _titles(one)
    colours = [("demand", "demand"), (style_of(HPA.name), titles[HPA.name])]
    if ours in titles:
        colours.append((OWN_STYLE, titles[ours]))
    shown = [_workload(each, one, opened=i == 0, worse=each in worse) for i, each in enumerate(one.ordered())]
    return ["<h2>Workloads</h2>", swatch(colours), *shown]


def _workload(one: WorkloadComparison, whole: Comparison, *, opened: bool, worse: bool) -> str:
    told = f"unserved demand {percent(one.curves[HPA.name].own.missing_share)} under the HPA alone"
    if whole.ours in one.curves:
        told += f", {percent(one.curves[whole.ours].own.missing_share)} with forecaster"
    mark = '<span class="bad">worse than the HPA</span>' if worse else ""
    titles: Mapping[str, str] = _titles(whole)
    curves = {name: curve.points for name, curve in one.curves.items()}
    return (
        f"<details{' open' if opened else ''}><summary><b>{escape(str(one.workload.id))}</b>{mark}"
        f'<span class="soft">{told}</span></summary>{trajectory(one, whole.begin, titles)}'
        f"{paragraph(gate_detail(whole, one.workload.id), 'soft')}"
        f"{table(strategy_columns(whole, one))}{key(whole.strategies, coinciding(curves))}"
        f"{frontier(curves, titles, str(one.workload.id))}</details>"
    )


def assumptions_section(assumed: Assumptions, origin: str) -> str:
    """What was assumed, and what a replay cannot know."""
    start_ups = ", ".join(f"{one.total_seconds():g} s" for one in assumed.start_ups)
    timing = assumed.timing
    text = (
        f"Pods serve {start_ups} after they are asked for; the HPA syncs every {timing.sync.total_seconds():g} s and "
        f"sees a minute {timing.metrics_delay.total_seconds():g} s after its end; a decision counts "
        f"{timing.decision_delay.total_seconds():g} s after its minute. Demand: {origin}."
    )
    return f"<h2>Assumptions and limits</h2>{paragraph(text)}{items(limits_of(assumed.feedback))}"
