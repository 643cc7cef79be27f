"""Parts of the page that are tables and lists: the worst hours, money, and what gates did."""

from __future__ import annotations

from datetime import timedelta
from html import escape
from typing import TYPE_CHECKING

from forecaster.report.replay_table import COLUMNS, LIMITS, gate_details, rows_of, sentences, worst_hours
from forecaster.report.svg import Line, Picture

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forecaster.replay.account import Account
    from forecaster.replay.assumptions import Assumptions, Prices
    from forecaster.replay.comparison import Comparison, WorkloadComparison
    from forecaster.replay.strategies import Strategy


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
    heads = ("hour, UTC", "workload", *(strategy.title for strategy in one.strategies))
    rows = [
        (f"{hour.at:%Y-%m-%d %H:%M}", str(hour.workload), *(f"{hour.missing[c.name]:.2f}" for c in one.strategies))
        for hour in hours
    ]
    return f"<h2>Worst hours</h2><p class=soft>{WORST}</p>{table(rows, heads)}"


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
    return f"<h2>Money</h2><p class=soft>{PRICED}</p>{table([*rows, total], heads)}"


def gates_section(one: Comparison) -> str:
    """What `gate: true` would have done."""
    if not one.gates:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in gate_details(one))
    return f"<h2>The gate</h2><p class=soft>{GATED}</p><ul>{items}</ul>"


# The outcome as one HTML page: figures, frontiers, trajectories, assumptions and limits; no script, nothing loaded.


STYLES = ("c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7")
STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#6a737d;--paper:#fff;--rule:#d8dee4}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#8b949e;--paper:#0d1117;--rule:#30363d}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
body{margin:2rem auto;max-width:60rem;padding:0 1rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .8rem;border-bottom:1px solid var(--rule);text-align:right}
th:first-child,td:first-child{text-align:left}
.wide{overflow-x:auto}svg{width:100%;height:auto;max-width:52rem}
svg text{font:11px system-ui,sans-serif;fill:var(--soft)}.end{text-anchor:end}.mid{text-anchor:middle}
.axis{stroke:var(--soft);fill:none}.grid{stroke:var(--rule);fill:none}.line{fill:none;stroke-width:1.6}
.c0{stroke:#6a737d;fill:#6a737d}.c1{stroke:#bf8700;fill:#bf8700}.c2{stroke:#0969da;fill:#0969da}
.c3{stroke:#1a7f37;fill:#1a7f37}.c4{stroke:#8250df;fill:#8250df}.c5{stroke:#cf222e;fill:#cf222e}
.c6{stroke:#bc4c00;fill:#bc4c00}.c7{stroke:#0f7b8a;fill:#0f7b8a}
path.line{fill:none}
.key{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:1rem}
.key svg{width:22px;height:10px;vertical-align:middle}
details{margin:1rem 0}small,.soft{color:var(--soft)}
"""
EXPLAINED = (
    "Each line is one way to scale, with all targets from lean to safe; lower and further left is better. The large "
    "dots are the targets that the owners set."
)
HOUR = 60
LABELS = 6


def page(one: Comparison, assumed: Assumptions, origin: str) -> str:
    """The whole page."""
    styles = {strategy.name: STYLES[i % len(STYLES)] for i, strategy in enumerate(one.strategies)}
    title = f"Replay, {one.begin:%Y-%m-%d %H:%M} to {one.until:%Y-%m-%d %H:%M} UTC"
    body = [
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(sentence)}</p>" for sentence in sentences(one)),
        table(rows_of(one)),
        _key(one.strategies, styles),
        "<h2>Cost against shortage</h2>",
        f"<p class=soft>{EXPLAINED}</p>",
        _frontier({c.name: one.curve(c.name) for c in one.strategies}, styles) if one.workloads else "",
        worst_section(one),
        money_section(one, assumed.prices),
        gates_section(one),
        "<h2>Workloads</h2>",
        *(_workload(each, one, styles) for each in one.workloads),
        _left_out(one),
        _assumed(assumed, origin),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return (
        f"<!doctype html><html lang=en><head>{head}<style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _key(strategies: Iterable[Strategy], styles: Mapping[str, str]) -> str:
    """The colour of each strategy."""
    stroke = '<svg viewBox="0 0 22 10"><path class="line {}" d="M0,5H22"/></svg>'
    items = (f"<li>{stroke.format(styles[one.name])} {escape(one.title)}</li>" for one in strategies)
    return f'<ul class="key">{"".join(items)}</ul>'


def _frontier(curves: Mapping[str, Mapping[float, Account]], styles: Mapping[str, str]) -> str:
    """Each curve by the share of the targets; the point at the owners' own is marked."""
    lines = [
        Line(sorted(map(_point, by_share.values())), styles[name], name, dots=True, marked=_point(by_share[1.0]))
        for name, by_share in curves.items()
    ]
    return Picture(lines, "pod-hours", "demand above capacity, %").svg()


def _point(account: Account) -> tuple[float, float]:
    return account.pod_hours, 100.0 * (account.missing_share or 0.0)


def _workload(one: WorkloadComparison, whole: Comparison, styles: Mapping[str, str]) -> str:
    frontier = _frontier({name: curve.points for name, curve in one.curves.items()}, styles)
    return (
        f"<details><summary>{escape(str(one.workload.id))}</summary>{table(rows_of(whole, one))}"
        f"{frontier}{_trajectory(one, whole, styles)}</details>"
    )


def _trajectory(one: WorkloadComparison, whole: Comparison, styles: Mapping[str, str]) -> str:
    """Pods that are ready, minute by minute, each with the targets that the owner set."""
    lines = [
        Line(list(enumerate(curve.track.ready.astype(float).tolist())), styles[name], name, stepped=True)
        for name, curve in one.curves.items()
    ]
    minutes = max((len(line.points) for line in lines), default=0)
    return Picture(lines, "time, UTC", "ready pods", across_labels=_hours(whole, minutes)).svg()


def _hours(whole: Comparison, minutes: int) -> list[tuple[float, str]]:
    step = max(HOUR, -(-minutes // (LABELS * HOUR)) * HOUR)
    form = "%H:%M" if minutes <= 24 * HOUR else "%d %b %H:%M"
    return [(float(m), f"{whole.begin + timedelta(minutes=m):{form}}") for m in range(step, minutes, step)]


def _left_out(one: Comparison) -> str:
    if not one.left_out:
        return ""
    items = "".join(f"<li>{escape(str(id_))}: {escape(reason)}</li>" for id_, reason in one.left_out.items())
    return f"<h2>Left out</h2><ul>{items}</ul>"


def _assumed(assumed: Assumptions, origin: str) -> str:
    start_ups = ", ".join(f"{one.total_seconds():g} s" for one in assumed.start_ups)
    timing = assumed.timing
    text = (
        f"Pods serve {start_ups} after they are asked for; the HPA syncs every {timing.sync.total_seconds():g} s and "
        f"sees a minute {timing.metrics_delay.total_seconds():g} s after its end; a decision counts "
        f"{timing.decision_delay.total_seconds():g} s after its minute. Demand: {origin}."
    )
    limits = "".join(f"<li>{escape(limit)}</li>" for limit in LIMITS)
    return f"<h2>Assumptions and limits</h2><p>{escape(text)}</p><ul>{limits}</ul>"
