"""A comparison of strategies in sentences and tables, for `replay`, `report`, `outcome` and the end of the demo.

The same four numbers are always compared with the HPA alone: unserved demand, minutes short, pod-hours, money.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from forecaster.domain.amounts import UNKNOWN_AMOUNT, counted, duration_text, listed
from forecaster.domain.window import HOUR, MINUTE
from forecaster.domain.workload import Prices, WorkloadId
from forecaster.replay.account import Account
from forecaster.replay.assumptions import NO_FEEDBACK, Feedback
from forecaster.replay.comparison import NOTABLE_DIFFERENCE, Comparison, WorkloadComparison, short
from forecaster.replay.gated import GateSince, acting_of
from forecaster.replay.strategies import HPA, ForecastSource, Strategy
from forecaster.report.printed import PrintedColumn, change, columns_from, percent

ALL = "all"
"""Name of the row that sums up the workloads."""
UNSERVED, SHORT_MINUTES, POD_HOURS, MONEY = "unserved demand", "minutes short", "pod-hours", "money"
COMPARISON_LEGEND = (
    "Unserved demand: share above what the ready pods carry; minutes short: time with any. At equal cost: unserved "
    "demand at the HPA's pod-hours, as a ratio of the HPA's; saved: pod-hours at the HPA's shortage."
)

EACH = "Each workload, under the HPA alone → with forecaster:"


def numbers(account: Account, prices: Prices | None, plain: Account | None = None) -> str:
    """Return the four numbers of an account in words; pods relative to `plain` as a change."""
    more = f" ({account.pod_hours / plain.pod_hours - 1.0:+z.1%})" if plain is not None and plain.pod_hours else ""
    figures = [
        f"{UNSERVED} {percent(account.missing_share)}",
        f"{SHORT_MINUTES} {account.short_minutes:.0f}",
        f"{POD_HOURS} {account.pod_hours:.1f}{more}",
        *([f"{MONEY} {account.money:.2f} {prices.currency}".rstrip()] if prices else []),
    ]
    return ", ".join(figures)


def number_cells(account: Account) -> tuple[str, ...]:
    """The four numbers as cells of a table."""
    return (
        percent(account.missing_share),
        f"{account.short_minutes:.0f}",
        f"{account.pod_hours:.1f}",
        f"{account.money:.2f}",
    )


def number_heads(prices: Prices | None) -> tuple[str, ...]:
    """Heads of `number_cells`; without prices that of money is empty, and its column is left out."""
    money = "" if prices is None else f"{MONEY}, {prices.currency}" if prices.currency else MONEY
    return UNSERVED, SHORT_MINUTES, POD_HOURS, money


def strategy_columns(whole: Comparison, compared: WorkloadComparison | None = None) -> list[PrintedColumn]:
    """A row for each strategy, on one workload or on all, and one for what the demand needs at least."""
    rows = [_strategy_row(strategy, whole, compared) for strategy in whole.strategies]
    needs = compared.bound if compared else whole.bound()
    bound = ("theoretical minimum", *number_cells(needs), UNKNOWN_AMOUNT, UNKNOWN_AMOUNT, str(needs.changes))
    heads = ("strategy", *number_heads(whole.prices), "at equal cost", "saved", "changes")
    return columns_from(heads, [*rows, bound], (0, 0, 0, 0, 0, 1, 2, 3))


def _strategy_row(strategy: Strategy, whole: Comparison, compared: WorkloadComparison | None) -> tuple[str, ...]:
    name = strategy.name
    own = compared.curves[name].own if compared else whole.own(name)
    ratio = compared.ratio(name) if compared else whole.ratio(name)
    saved = compared.saved(name) if compared else whole.saved(name)
    cells = (_or_dash(ratio, "{:.2f}".format), _or_dash(saved, "{:z.1%}".format), str(own.changes))
    return (strategy.title, *number_cells(own), *cells)


def _or_dash(value: float | None, spoken: Callable[[float], str]) -> str:
    return UNKNOWN_AMOUNT if value is None else spoken(value)


def workload_columns(whole: Comparison) -> list[PrintedColumn]:
    """A row for each workload, those on which forecaster was worse first, and one for all: HPA alone → forecaster."""
    name = whole.forecaster
    rows = [
        _compared_row(str(each.workload.id), each.curves[HPA.name].own, each.curves[name].own, each.benefit(name))
        for each in whole.ordered()
    ]
    rows.append(_compared_row(ALL, whole.own(HPA.name), whole.own(name), ""))
    return columns_from(("workload", *number_heads(whole.prices), "benefit"), rows, (0, 0, 1, 0, 2, 0))


def _compared_row(name: str, plain: Account, forecaster: Account, benefit: str) -> tuple[str, ...]:
    pairs = zip(number_cells(plain), number_cells(forecaster), strict=True)
    return (name, *(change(before, after) for before, after in pairs), benefit)


def sentences(whole: Comparison) -> list[str]:
    """The verdict, the four numbers of every strategy, the comparison at equal cost, and what the gates did."""
    span = f"{whole.begin:%Y-%m-%d %H:%M} to {whole.until:%Y-%m-%d %H:%M} UTC"
    if not whole.workloads:
        return [f"{span}: nothing could be compared."]
    plain, note = whole.own(HPA.name), f" ({whole.note})" if whole.note else ""
    hours = round((whole.until - whole.begin) / HOUR, 2)
    share = f"{plain.measured / (len(whole.workloads) * (whole.until - whole.begin)):.0%}"
    measured = "" if share == "100%" else f", {share} of it measured"
    began = f"{counted(len(whole.workloads), 'workload')} over {hours:g} h, {span}{measured}{note}. With the HPA alone"
    others = [_strategy_sentence(strategy, whole) for strategy in whole.strategies if strategy.name != HPA.name]
    figures = [whole.verdict(), f"{began}: {numbers(plain, whole.prices)}.", *others]
    return [*filter(None, [*figures, equal_cost_sentence(whole), gate_sentence(whole)])]


def _strategy_sentence(strategy: Strategy, whole: Comparison) -> str:
    own, plain = whole.own(strategy.name), whole.own(HPA.name)
    judged = strategy.name != whole.forecaster and strategy.source is not ForecastSource.RECORD
    worse = [str(each.workload.id) for each in whole.worse(strategy.name)] if judged else []
    ratio = whole.ratio(strategy.name)
    equal = f"; at the HPA's pod-hours {ratio:.2f} of its unserved demand" if ratio is not None else ""
    beaten = f"; worse than the HPA on {listed(worse)}" if worse else ""
    return f"{strategy.title}: {numbers(own, whole.prices, plain)}{equal}{beaten}."


def equal_cost_sentence(whole: Comparison) -> str:
    """Say what the HPA alone does for forecaster's pod-hours, and whether these were well spent; empty without both."""
    if not any(strategy.name == whole.forecaster for strategy in whole.strategies):
        return ""
    forecaster, equal = whole.own(whole.forecaster), whole.equal(whole.forecaster)
    if equal is None:
        return "Some HPA spends its pod-hours at none of the targets tried, so there is no figure at equal cost."
    return (
        f"The HPA alone at forecaster's pod-hours, by other targets: {UNSERVED} {percent(equal.missing_share)}, "
        f"{SHORT_MINUTES} {equal.short_minutes:.0f}. {_conclusion(short(forecaster), short(equal))}"
    )


def _conclusion(forecaster: float, equal: float) -> str:
    if abs(forecaster - equal) <= NOTABLE_DIFFERENCE * equal:
        return "So the forecast brought no more than those pods bring without it."
    if forecaster > equal:
        return "So the forecast was the worse way to spend them."
    return f"So for these pod-hours the forecast removed {1 - forecaster / equal:.0%} of what was short."


def left_out_lines(left_out: Mapping[WorkloadId, str]) -> list[str]:
    """Return the left-out workloads by reason, the most frequent reason first, with the first few names."""
    by_reason: dict[str, list[str]] = {}
    for id_, reason in left_out.items():
        by_reason.setdefault(reason.rstrip("."), []).append(str(id_))
    return [
        f"Left out, {reason}{'' if reason.endswith('?') else ':'} {counted(len(names), 'workload')}: {listed(names)}"
        for reason, names in sorted(by_reason.items(), key=lambda each: -len(each[1]))
    ]


def gate_sentence(whole: Comparison) -> str:
    """Say how often forecasts acted behind their gates, over all workloads; empty without a gated strategy."""
    shares = [acting_share(stood, whole) for stood in whole.gates.values()]
    if not shares:
        return ""
    acted = sum(share > 0 for share in shares)
    return (
        f"Judged on the days before, the gate lets the forecast act on {acted} of {counted(len(shares), 'workload')}, "
        f"{sum(shares) / len(shares):.0%} of the time."
    )


def gate_detail(whole: Comparison, id_: WorkloadId) -> str:
    """Say how often the forecast of a workload acted, its last gate state, and why; empty without a gate."""
    stood = whole.gates.get(id_)
    if not stood:
        return ""
    gate = stood[-1].gate
    return (
        f"Behind its gate the forecast acts {acting_share(stood, whole):.0%} of the time; in the end {gate.state}: "
        f"{gate.why}."
    )


def acting_share(stood: Sequence[GateSince], whole: Comparison) -> float:
    """Share of the replayed time in which the forecast had its say."""
    return float(acting_of(stood, (whole.until - whole.begin) // MINUTE).mean())


REACTION = (
    "Demand is taken as it was measured and does not react: requests that were shed and not tried again, retries after "
    "a shortage, and work that slow answers put off are not in it."
)
CENSORED = (
    "What was measured while pods were at their limit is the served demand, not the requested one: shortage in such "
    "minutes is understated, for every policy alike."
)
WITHIN = (
    "Within a minute demand is steady, and ready pods share it evenly; a shortage of seconds, or of one hot pod, is "
    "not seen."
)
NODES_LIMIT = "Pods start after the stated times whatever the nodes hold: no waiting for a node, no eviction."
PAID = "A pod costs from its request on, and stops at once when it is removed."
REPLAY_LIMITS = (REACTION, CENSORED, WITHIN, NODES_LIMIT, PAID)


def limits_of(feedback: Feedback) -> tuple[str, ...]:
    """Return the limits of a replay, with the assumed reaction of load to pods."""
    return REPLAY_LIMITS if feedback == NO_FEEDBACK else (_answering(feedback), *REPLAY_LIMITS[1:])


def _answering(feedback: Feedback) -> str:
    cold = f"; a pod carries {feedback.cold_share:.0%} for the first {duration_text(feedback.cold)} that it is ready"
    return (
        f"Demand answers to pods, as assumed: {feedback.returns:.0%} of what was not served is asked for again in the "
        f"next sync period, and is missing again where it waits on{cold if feedback.cold else ''}. Forecasts are those "
        "of the demand that was measured."
    )


# The worst hours: when and where the most pods were missing, under the HPA alone or with forecaster.


MINUTES_AN_HOUR = 60


class WorstHour(NamedTuple):
    """An hour of one workload, and by strategy how many pods were missing in it, on average."""

    workload: WorkloadId
    at: datetime
    missing: Mapping[str, float]


def worst_hours(whole: Comparison, most: int = 10) -> list[WorstHour]:
    """The hours in which the HPA alone or forecaster left the most short, the worst first; none without shortage."""

    def worst(hour: WorstHour) -> float:
        return max(hour.missing.get(name, 0.0) for name in (HPA.name, whole.forecaster))

    hours = [hour for compared in whole.workloads for hour in _hours(compared, whole.begin)]
    return sorted((hour for hour in hours if worst(hour) > 0), key=lambda hour: -worst(hour))[:most]


def _hours(compared: WorkloadComparison, begin: datetime) -> Iterator[WorstHour]:
    pods = {name: curve.track.missing / compared.setup.capacity.amount for name, curve in compared.curves.items()}
    for first in range(0, max((len(missing) for missing in pods.values()), default=0), MINUTES_AN_HOUR):
        means = {name: float(np.mean(missing[first : first + MINUTES_AN_HOUR])) for name, missing in pods.items()}
        yield WorstHour(compared.workload.id, begin + first // MINUTES_AN_HOUR * HOUR, means)
