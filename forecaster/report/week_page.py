"""A look back as one page: where we were worse first, totals, workloads, sizes, adoptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.replay.benefit import BENEFIT_MEANS
from forecaster.replay.weekly import SERVICE_STRATEGY
from forecaster.report.page import document, items, paragraph, table
from forecaster.report.realised import said
from forecaster.report.replay_page import (
    assumptions_section,
    dates,
    frontier_section,
    left_out_section,
    workloads_section,
    worst_section,
)
from forecaster.report.replay_table import REPLAY_HEADS, lead_sentence, sentences, worse_of
from forecaster.report.replay_table import rows_of as strategy_rows
from forecaster.report.week_table import (
    ADOPTED_HEADS,
    HEADS,
    LOSS_HEADS,
    SIZE_HEADS,
    adopted_rows,
    heads_of,
    loss_rows,
    rows_of,
    size_rows,
)

if TYPE_CHECKING:
    from forecaster.replay.assumptions import Assumptions
    from forecaster.replay.weekly import WeekOutcome

SIZED = (
    "Of one pod, over the same time: with the requests and limits that the owners state, and with ours. A kill is five "
    "minutes in which more memory was wanted than the limit. What limits cut off then is in no history."
)
ADOPTED = (
    "Demand short for the pod-hours that the HPA alone spends: as the gate expected when it let a forecast act, judged "
    "on the days before by the signal of the HPA's target, and as it came over the whole time, by what fills a pod."
)
MONEY = range(7, 10)
"""Columns that need prices."""
LOST_NOTE = (
    "As Prometheus tells it of the limits that were in force: kills by the restarts that followed them, and the time "
    "for which CPU limits held containers back. Workloads without either are left out."
)
DECIDED_NOTE = "The decisions of the ledger as they were made, as floors of the HPAs, on the load that came."


def week_page(one: WeekOutcome, assumed: Assumptions, origin: str) -> str:
    """The whole page."""
    whole = one.comparison
    title = f"Report, {whole.begin:%Y-%m-%d %H:%M} to {whole.until:%Y-%m-%d %H:%M} UTC"
    body = ["<h1>What forecaster was worth</h1>", dates(whole.begin, whole.until)]
    if whole.workloads:
        body += [_lead(one), items(sentences(whole)), table(strategy_rows(whole), REPLAY_HEADS), *_decided(one)]
        body += ["<h2>Each workload</h2>", _each(one), *_sizes(one), *_losses(one), *_adoptions(one)]
        body += [*frontier_section(whole), worst_section(whole), *workloads_section(whole)]
    else:
        body.append(paragraph("Nothing could be compared.", "first worse"))
    return document(title, [*body, left_out_section(whole), assumptions_section(assumed, origin)])


def _lead(one: WeekOutcome) -> str:
    return paragraph(
        lead_sentence(one.comparison), "first worse" if worse_of(one.comparison, SERVICE_STRATEGY) else "first"
    )


def _decided(one: WeekOutcome) -> list[str]:
    if one.decided is None:
        return []
    return ["<h2>As it was decided</h2>", paragraph(DECIDED_NOTE, "soft"), items(said(one.decided))]


def _each(one: WeekOutcome) -> str:
    rows = rows_of(one)
    kept = [i for i in range(len(HEADS)) if one.prices or i not in MONEY]
    made = table([[row[i] for i in kept] for row in rows], [heads_of(one)[i] for i in kept], bold={len(rows) - 1})
    return made + paragraph(BENEFIT_MEANS, "soft")


def _sizes(one: WeekOutcome) -> list[str]:
    if not one.sizes:
        return []
    rows = size_rows(one)
    return [
        "<h2>Requests and limits</h2>",
        paragraph(SIZED, "soft"),
        table(rows, SIZE_HEADS, bold={len(rows) - 1}),
    ]


def _losses(one: WeekOutcome) -> list[str]:
    if not one.losses:
        return []
    rows = loss_rows(one)
    made = table(rows, LOSS_HEADS, bold={len(rows) - 1})
    return ["<h2>OOM kills and throttling as they happened</h2>", paragraph(LOST_NOTE, "soft"), made]


def _adoptions(one: WeekOutcome) -> list[str]:
    if not one.adoptions:
        return []
    rows = table(adopted_rows(one), ADOPTED_HEADS, texts=2)
    return ["<h2>Expected and realised</h2>", paragraph(ADOPTED, "soft"), rows]
