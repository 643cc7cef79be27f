"""Parts of the page that are tables and lists: the worst hours, money, and what gates did."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from forecaster.output.replay.gates import gate_details
from forecaster.output.replay.rows import COLUMNS
from forecaster.output.replay.worst import worst_hours

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from forecaster.replay.comparison import Comparison
    from forecaster.replay.terms import Prices

WORST = "Pods missing, as a mean over the hour, with the targets that the owners set."
PRICED = "Pod-hours at the prices that were given, by what a pod requests; with the targets that the owners set."
GATED = "With gate: true a forecast acts where its decisions proved better on the days before; judged once a day."


def table(rows: Iterable[Sequence[str]], heads: Sequence[str] = COLUMNS) -> str:
    """Rows under their heads; a table that is too wide scrolls by itself."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def worst_section(one: Comparison) -> str:
    """When and where it hurt."""
    hours = worst_hours(one)
    if not hours:
        return "<h2>Worst hours</h2><p>Nothing was short under the HPA alone or our policy.</p>"
    heads = ("hour, UTC", "workload", *(contestant.title for contestant in one.contestants))
    rows = [
        (f"{hour.at:%Y-%m-%d %H:%M}", str(hour.workload), *(f"{hour.missing[c.name]:.2f}" for c in one.contestants))
        for hour in hours
    ]
    return f"<h2>Worst hours</h2><p class=soft>{WORST}</p>{table(rows, heads)}"


def money_section(one: Comparison, prices: Prices | None) -> str:
    """What the pods cost, where somebody said what an hour costs."""
    if prices is None or not one.workloads:
        return ""
    heads = ("workload", *(contestant.title for contestant in one.contestants))
    spent = [
        [each.curves[c.name].own.pod_hours * prices.of_pod(each.workload.resources) for c in one.contestants]
        for each in one.workloads
    ]
    rows = [
        (str(each.workload.id), *map("{:.2f}".format, some)) for each, some in zip(one.workloads, spent, strict=True)
    ]
    total = ("all", *(f"{sum(some):.2f}" for some in zip(*spent, strict=True)))
    return f"<h2>Money</h2><p class=soft>{PRICED}</p>{table([*rows, total], heads)}"


def gates_section(one: Comparison) -> str:
    """What `gate: true` would have done."""
    if not one.gates:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in gate_details(one))
    return f"<h2>The gate</h2><p class=soft>{GATED}</p><ul>{items}</ul>"
