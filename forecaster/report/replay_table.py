"""The outcome as rows and sentences: the same on a terminal and on the page."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.amounts import UNKNOWN_AMOUNT, counted, duration_text
from forecaster.domain.window import HOUR, MINUTE
from forecaster.replay.benefit import Benefit
from forecaster.replay.feedback import NO_FEEDBACK, Feedback
from forecaster.replay.gated import acting_of
from forecaster.replay.strategies import HPA
from forecaster.report.printed import PrintedColumn, percent
from forecaster.report.replay_plots import ours_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from forecaster.domain.workload import WorkloadId
    from forecaster.replay.account import Account
    from forecaster.replay.comparison import Comparison, WorkloadComparison
    from forecaster.replay.gated import GateSince
    from forecaster.replay.strategies import Strategy


REPLAY_HEADS = (
    "",
    "pod-hours",
    "short, min",
    "demand short",
    "changes",
    "short at the HPA's cost",
    "saved at its shortage",
)
TERMINAL = ("", "pod-hours", "short min", "short", "changes", "at HPA's cost", "saved")
"""Column heads for a terminal: the same as on the page, shorter."""
REPLAY_LEGEND = (
    "SHORT MIN: minutes with demand above what the ready pods carry; SHORT: that share of the demand. AT HPA'S COST: "
    "its shortage in shares of the HPA's when both spend the same pod-hours. SAVED: pod-hours at the HPA's shortage."
)


def rows_of(whole: Comparison, one: WorkloadComparison | None = None) -> list[tuple[str, ...]]:
    """One row for each strategy, on one workload or on all, and what the demand needs at least."""
    rows = [_row(strategy, whole, one) for strategy in whole.strategies]
    needs = one.bound if one else whole.bound()
    return [*rows, ("theoretical minimum", *_spent(needs), UNKNOWN_AMOUNT, UNKNOWN_AMOUNT)]


REPLAY_RANKS = (0, 0, 4, 0, 5, 1, 2)
"""Which columns go first where the terminal is narrow."""


def columns_of(whole: Comparison) -> list[PrintedColumn]:
    """All workloads together, for a terminal."""
    cells = zip(*rows_of(whole), strict=True)
    return [
        PrintedColumn(name.upper(), each, rank=rank, right=bool(i))
        for i, (name, each, rank) in enumerate(zip(TERMINAL, cells, REPLAY_RANKS, strict=True))
    ]


def sentences(whole: Comparison) -> list[str]:
    """What the figures say, whichever way it went."""
    if not whole.workloads:
        return ["Nothing could be replayed."]
    plain = whole.own(HPA.name)
    hours = (whole.until - whole.begin).total_seconds() / 3600
    begun = (
        f"{counted(len(whole.workloads), 'workload')} over {hours:g} h. With the HPA alone "
        f"{percent(plain.missing_share)} of the demand was above what the ready pods carried, "
        f"for {plain.pod_hours:.1f} pod-hours."
    )
    told = [_told(one, whole) for one in whole.strategies if one.name != HPA.name]
    return [begun, *told, *filter(None, [gate_sentence(whole)])]


def _told(one: Strategy, whole: Comparison) -> str:
    own, plain = whole.own(one.name), whole.own(HPA.name)
    more = own.pod_hours / plain.pod_hours - 1.0 if plain.pod_hours else 0.0
    spends = f"{one.title}: {more:+.1%} pod-hours, {percent(own.missing_share)} short"
    worse = [str(each.workload.id) for each in worse_of(whole, one.name)]
    ratio = whole.ratio(one.name)
    equal = f"; at equal cost {ratio:.2f} of the HPA's shortage" if ratio is not None else ""
    return f"{spends}{equal}{'; worse than the HPA on ' + ', '.join(worse) if worse else ''}."


def _row(strategy: Strategy, whole: Comparison, one: WorkloadComparison | None) -> tuple[str, ...]:
    name = strategy.name
    own = one.curves[name].own if one else whole.own(name)
    ratio = one.ratio(name) if one else whole.ratio(name)
    saved = one.saved(name) if one else whole.saved(name)
    return (strategy.title, *_spent(own), _or_dash(ratio, "{:.2f}".format), _or_dash(saved, "{:.1%}".format))


def _spent(account: Account) -> tuple[str, ...]:
    return (
        f"{account.pod_hours:.1f}",
        f"{account.short.total_seconds() / 60:.0f}",
        percent(account.missing_share),
        str(account.changes),
    )


def _or_dash(value: float | None, spoken: Callable[[float], str]) -> str:
    return UNKNOWN_AMOUNT if value is None else spoken(value)


def left_out_lines(left_out: Mapping[WorkloadId, str], most: int = 5) -> list[str]:
    """What is left out by reason, most workloads first; of each reason the first few names."""
    by_reason: dict[str, list[str]] = {}
    for id_, reason in left_out.items():
        by_reason.setdefault(reason.rstrip("."), []).append(str(id_))
    return [
        f"Left out, {reason}{'' if reason.endswith('?') else ':'} {counted(len(names), 'workload')}: "
        + ", ".join(names[:most])
        + (f" and {len(names) - most} more" if len(names) > most else "")
        for reason, names in sorted(by_reason.items(), key=lambda each: -len(each[1]))
    ]


# Where we were worse than the HPA, said first.


TRY_TUNE = " `forecaster tune` looks for a policy that would have been better."


def worse_of(whole: Comparison, name: str) -> list[WorkloadComparison]:
    """Workloads on which the HPA alone does better than a strategy, those first on which most more was short."""
    found = [one for one in whole.workloads if name in one.curves and one.benefit(name) is Benefit.WORSE]
    return sorted(found, key=lambda one: -_loss(one, name))


def _loss(one: WorkloadComparison, name: str) -> float:
    """What was left short beyond what the HPA alone leaves, as a share of the demand."""
    ours = one.curves[name].own
    return (ours.missing - (one.equal(name) or one.curves[HPA.name].own).missing) / (ours.demand or 1.0)


def lead_sentence(whole: Comparison) -> str:
    """Say on how many workloads our policy was worse and better than the HPA alone; then its cost and shortage."""
    name = ours_of(one.name for one in whole.strategies)
    if not whole.workloads or not any(one.name == name for one in whole.strategies):
        return ""
    worse, counts = worse_of(whole, name), Counter(one.benefit(name) for one in whole.workloads)
    own, plain = whole.own(name), whole.own(HPA.name)
    more = own.pod_hours / plain.pod_hours - 1.0 if plain.pod_hours else 0.0
    names = f": {_named([str(one.workload.id) for one in worse])}" if worse else ""
    better = counts[Benefit.BETTER]
    return (
        f"{'Our' if better else 'No benefit: our'} policy was worse than the HPA alone on {len(worse) or 'none'} of "
        f"{counted(len(whole.workloads), 'workload')}{names}; better on {better or 'none'}, the same on "
        f"{counts[Benefit.SAME] or 'none'}. Over all {more:+.1%} pod-hours, {percent(own.missing_share)} of the demand "
        f"short instead of {percent(plain.missing_share)}.{'' if better else TRY_TUNE}"
    )


def _named(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# Where the gate let a forecast have its say, in sentences.


def gate_sentence(whole: Comparison) -> str:
    """How often forecasts acted behind their gates, on all workloads together; empty without a gated strategy."""
    shares = [acting_share(stood, whole) for stood in whole.gates.values()]
    if not shares:
        return ""
    acted = sum(share > 0 for share in shares)
    return (
        f"Judged on the days before, the gate lets the forecast act on {acted} of {counted(len(shares), 'workload')}, "
        f"{sum(shares) / len(shares):.0%} of the time."
    )


def gate_detail(whole: Comparison, id_: WorkloadId) -> str:
    """How often the forecast of a workload acted, where it stood in the end, and why; empty without a gate."""
    stood = whole.gates.get(id_)
    return (
        f"Behind its gate the forecast acts {acting_share(stood, whole):.0%} of the time; {_last(stood)}."
        if stood
        else ""
    )


def acting_share(stood: Sequence[GateSince], whole: Comparison) -> float:
    """Share of the replayed time in which the forecast had its say."""
    return float(acting_of(stood, (whole.until - whole.begin) // MINUTE).mean())


def _last(stood: Sequence[GateSince]) -> str:
    gate = stood[-1].gate
    return f"in the end {gate.standing}, {gate.why}"


# What a replay cannot know; printed with every outcome.


REACTION = (
    "Demand is taken as it was measured and does not react: requests that were shed and not tried again, retries after "
    "a shortage, and work that slow answers put off are not in it."
)
CENSORED = (
    "What was measured while pods were at their limit is what they served, not what was asked: shortage in such "
    "minutes is understated, for every policy alike."
)
WITHIN = (
    "Within a minute demand is steady, and ready pods share it evenly; a shortage of seconds, or of one hot pod, is "
    "not seen."
)
NODES_LIMIT = "Pods start after the stated times whatever the nodes hold: no waiting for a node, no eviction."
PAID = "A pod is paid for from the moment it is asked for, and stops at once when it is not wanted any more."
REPLAY_LIMITS = (REACTION, CENSORED, WITHIN, NODES_LIMIT, PAID)


def limits_of(feedback: Feedback) -> tuple[str, ...]:
    """What a replay cannot know, with how load answers to pods where that was assumed."""
    return REPLAY_LIMITS if feedback == NO_FEEDBACK else (_answering(feedback), *REPLAY_LIMITS[1:])


def _answering(feedback: Feedback) -> str:
    cold = f"; a pod carries {feedback.cold_share:.0%} for the first {duration_text(feedback.cold)} that it is ready"
    return (
        f"Demand answers to pods, as assumed: {feedback.returns:.0%} of what was not served is asked for again in the "
        f"next sync period, and is missing again where it waits on{cold if feedback.cold else ''}. Forecasts are those "
        "of the demand that was measured."
    )


# The worst hours: when and where the most pods were missing, under the HPA alone or our policy.


MINUTES_AN_HOUR = 60
POLICY = "policy"


class WorstHour(NamedTuple):
    """An hour of one workload, and by strategy how many pods were missing in it, on average."""

    workload: WorkloadId
    at: datetime
    missing: Mapping[str, float]

    @property
    def worst(self) -> float:
        """The larger of what the HPA alone and our policy left short."""
        return max(self.missing.get(name, 0.0) for name in (HPA.name, POLICY))


def worst_hours(whole: Comparison, most: int = 10) -> list[WorstHour]:
    """The hours in which the most was missing, the worst first; none in which nothing was."""
    hours = [hour for one in whole.workloads for hour in _hours(one, whole.begin)]
    return sorted((hour for hour in hours if hour.worst > 0), key=lambda hour: -hour.worst)[:most]


def _hours(one: WorkloadComparison, begin: datetime) -> Iterator[WorstHour]:
    pods = {name: curve.track.missing / one.setup.capacity.amount for name, curve in one.curves.items()}
    for first in range(0, max((len(some) for some in pods.values()), default=0), MINUTES_AN_HOUR):
        means = {name: float(np.mean(some[first : first + MINUTES_AN_HOUR])) for name, some in pods.items()}
        yield WorstHour(one.workload.id, begin + first // MINUTES_AN_HOUR * HOUR, means)
