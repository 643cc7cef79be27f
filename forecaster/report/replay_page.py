"""The outcome of a replay as one page: what came of it, frontiers, worst hours, money, gates, each workload."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from forecaster.replay.strategies import HPA
from forecaster.report.page import document, items, paragraph, table
from forecaster.report.replay_plots import OWN_STYLE, coinciding, frontier, key, ours_of, style_of, swatch, trajectory
from forecaster.report.replay_table import (
    REPLAY_HEADS,
    gate_detail,
    lead_sentence,
    left_out_lines,
    limits_of,
    rows_of,
    sentences,
    worse_of,
    worst_hours,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from forecaster.replay.assumptions import Assumptions, Prices
    from forecaster.replay.comparison import Comparison, WorkloadComparison
    from forecaster.replay.strategies import Strategy

WORST = "Pods missing, as a mean over the hour, with the targets that the owners set."
PRICED = "Pod-hours at the prices that were given, by what a pod requests; with the targets that the owners set."
EXPLAINED = (
    "Each line is one way to scale, with all targets from lean to safe; lower and further left is better. Large dots "
    "are the targets that the owners set."
)


def page(one: Comparison, assumed: Assumptions, origin: str) -> str:
    """The whole page."""
    title = f"Replay, {one.begin:%Y-%m-%d %H:%M} to {one.until:%Y-%m-%d %H:%M} UTC"
    body = ["<h1>Replay</h1>", dates(one.begin, one.until), *summary(one)]
    if one.workloads:
        body += [*frontier_section(one), worst_section(one), money_section(one, assumed.prices)]
        body += workloads_section(one)
    return document(title, [*body, left_out_section(one), assumptions_section(assumed, origin)])


def dates(begin: datetime, until: datetime) -> str:
    """The time that was played, in one line where there is room and never broken within a date."""
    first, last = (f'<span class="date">{at:%a %Y-%m-%d %H:%M}</span>' for at in (begin, until))
    return f'<p class="soft">{first} to {last} UTC</p>'


def summary(one: Comparison) -> list[str]:
    """What came of it, where we were worse first, and the same as a table."""
    worse = bool(worse_of(one, ours_of(each.name for each in one.strategies)))
    said = paragraph(lead_sentence(one), "first worse" if worse else "first") if one.workloads else ""
    return [said, items(sentences(one)), table(rows_of(one), REPLAY_HEADS) if one.workloads else ""]


def frontier_section(one: Comparison) -> list[str]:
    """All workloads together."""
    curves = {c.name: one.curve(c.name) for c in one.strategies}
    return [
        "<h2>Cost against shortage</h2>",
        paragraph(EXPLAINED, "soft"),
        key(one.strategies, coinciding(curves)),
        frontier(curves, titles_of(one.strategies), "all workloads"),
    ]


def titles_of(strategies: Sequence[Strategy]) -> dict[str, str]:
    """Return the titles by name."""
    return {one.name: one.title for one in strategies}


def worst_section(one: Comparison) -> str:
    """Return the section about when and where the shortage was worst."""
    hours = worst_hours(one)
    if not hours:
        return "<h2>Worst hours</h2><p>Nothing was short under the HPA alone or our policy.</p>"
    heads = ("hour, UTC", "workload", *(strategy.title for strategy in one.strategies))
    rows = [
        (f"{hour.at:%Y-%m-%d %H:%M}", str(hour.workload), *(f"{hour.missing[c.name]:.2f}" for c in one.strategies))
        for hour in hours
    ]
    return f"<h2>Worst hours</h2>{paragraph(WORST, 'soft')}{table(rows, heads, texts=2)}"


def money_section(one: Comparison, prices: Prices | None) -> str:
    """What the pods cost, where prices were given."""
    if prices is None or not one.workloads:
        return ""
    heads = ("workload", *(strategy.title for strategy in one.strategies))
    spent = [
        [each.curves[c.name].own.pod_hours * prices.of_pod(each.workload.resources) for c in one.strategies]
        for each in one.workloads
    ]
    rows = [
        (str(each.workload.id), *map("{:.2f}".format, some)) for each, some in zip(one.workloads, spent, strict=True)
    ]
    total = ("all", *(f"{sum(some):.2f}" for some in zip(*spent, strict=True)))
    return f"<h2>Money</h2>{paragraph(PRICED, 'soft')}{table([*rows, total], heads, bold={len(rows)})}"


def workloads_section(one: Comparison) -> list[str]:
    """Each workload, those on which we were worse first and opened."""
    ours = ours_of(each.name for each in one.strategies)
    worse = worse_of(one, ours)
    ordered = sorted(one.workloads, key=lambda each: (each not in worse, -each.curves[HPA.name].own.missing))
    titles = titles_of(one.strategies)
    colours = [("demand", "demand"), (style_of(HPA.name), titles[HPA.name])]
    if ours in titles:
        colours.append((OWN_STYLE, titles[ours]))
    shown = [_workload(each, one, titles, opened=i == 0, worse=each in worse) for i, each in enumerate(ordered)]
    return ["<h2>Workloads</h2>", swatch(colours), *shown]


def _workload(
    one: WorkloadComparison, whole: Comparison, titles: Mapping[str, str], *, opened: bool, worse: bool
) -> str:
    plain, ours = one.curves[HPA.name].own, ours_of(one.curves)
    told = f"{100 * (plain.missing_share or 0):.3f} % short under the HPA"
    if ours in one.curves:
        told += f", {100 * (one.curves[ours].own.missing_share or 0):.3f} % under our policy"
    mark = '<span class="bad">worse than the HPA</span>' if worse else ""
    curves = {name: curve.points for name, curve in one.curves.items()}
    return (
        f"<details{' open' if opened else ''}><summary><b>{escape(str(one.workload.id))}</b>{mark}"
        f'<span class="soft">{told}</span></summary>{trajectory(one, whole.begin, titles)}'
        f"{paragraph(gate_detail(whole, one.workload.id), 'soft')}"
        f"{table(rows_of(whole, one), REPLAY_HEADS)}{key(whole.strategies, coinciding(curves))}"
        f"{frontier(curves, titles, str(one.workload.id))}</details>"
    )


def left_out_section(one: Comparison) -> str:
    """What could not be replayed, by reason."""
    return f"<h2>Left out</h2>{items(left_out_lines(one.left_out))}" if one.left_out else ""


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
