"""Replica proposals of single metrics, and the recommendation that they make together (HPA rules §8, §9).

Formulas over totals: no pods, no clock. Every source and target of §4 ends in one of four functions:
`from_utilization` (§8.1), `from_average` (§8.2), `from_total` (§8.3), `per_pod_value` (§8.4). Values are integer
milli-units, targets too, utilisation is whole percent, replicas are ints. What the pods contribute beyond the counted
samples travels as `Share`s; callers that know only totals leave them empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from forecaster.hpa.numbers import (
    MAX_INT64,
    ceil_to_int32,
    ceil_to_int64,
    ratio_of,
    truncated_quotient,
    wrap_int32,
    wrap_int64,
)

Cause = Literal[
    "api_failed",  # the metrics API did not answer
    "no_samples",  # it answered with an empty list (HPA rules §5)
    "no_pods",  # the selector matches no pod (§6)
    "no_samples_left",  # none after dropping ignored and unready pods (§6)
    "missing_request",  # a matched pod lacks the request (§7)
    "container_not_found",  # a matched pod lacks the named container (§7)
    "no_request_for_sampled_pods",  # the requests of the sampled pods sum to zero (§8.1)
    "invalid_target",  # the target fits no computation of its source (§4)
    "invalid_source",  # the source type is unknown (§4)
]


class Unmeasured(NamedTuple):
    """Reason why a metric has no proposal: a stable cause and a sentence that names the object."""

    cause: Cause
    message: str


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Largest deviation of a ratio from 1.0 in each direction, as ratios (0.1 is ten percent); both ends are inside.

    The edges are computed once, as the doubles `1.0 - down` and `1.0 + up`: 1.1 is inside a tolerance of 0.1 although
    `1.1 - 1.0` exceeds it.
    """

    up: float = 0.1
    down: float = 0.1
    lowest: float = field(init=False, repr=False, compare=False)
    highest: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lowest", 1.0 - self.down)
        object.__setattr__(self, "highest", 1.0 + self.up)

    def holds(self, ratio: float) -> bool:
        """Whether this ratio is close enough to 1.0 to keep the current replicas; NaN never is."""
        return self.lowest <= ratio <= self.highest


DEFAULT_TOLERANCE = Tolerance()


Hold = Literal["tolerance", "direction"]


class MetricProposal(NamedTuple):
    """The replica count that one metric asks for, and the numbers it reports.

    `ratio` is the usage ratio that decided (the second one of §8.1 where pods were filled in). `hold` says why the
    current size was kept: the ratio lies within the tolerance, or the filled-in pods turned the direction around. The
    last three fields are what the status shows; None where this kind of target has no such number.
    """

    replicas: int
    ratio: float
    hold: Hold | None = None
    utilization_percent: int | None = None
    average_milli: int | None = None
    value_milli: int | None = None


class Share(NamedTuple):
    """Part of a group of pods in the sums: their number, their requests, the usage assumed for them under low load."""

    pods: int = 0
    request_milli: int = 0
    fill_milli: int = 0


NO_SHARE = Share()
NO_REQUESTS = Unmeasured("no_request_for_sampled_pods", "no metrics returned matched known pods")


class _Filled(NamedTuple):
    """The enlarged sample set of the second ratio: usage and request sums, and the number of samples."""

    usage_milli: int
    request_milli: int
    samples: int


def from_utilization(
    total_usage_milli: int,
    total_request_milli: int,
    target_percent: int,
    ready: int,
    current: int,
    tolerance: Tolerance,
    *,
    samples: int | None = None,
    missing: Share = NO_SHARE,
    unready: Share = NO_SHARE,
) -> MetricProposal | Unmeasured:
    """HPA rules §8.1: utilisation of requests, cut to whole percent before it becomes a ratio.

    The totals run over the `ready` pods; `samples` counts those of unknown pods too (default: none). Requests that sum
    to zero give no ratio, hence no proposal.
    """
    if not total_request_milli:
        return NO_REQUESTS
    samples = ready if samples is None else samples
    utilization = utilization_percent(total_usage_milli, total_request_milli)
    average = truncated_quotient(total_usage_milli, ready or 1)
    ratio = ratio_of(utilization, target_percent)
    if not missing.pods and not (unready.pods and ratio > 1.0):
        replicas, hold = _undisturbed(ratio, ready, current, tolerance)
        return MetricProposal(replicas, ratio, hold, utilization, average)
    filled = _fill_in(ratio, _Filled(total_usage_milli, total_request_milli, samples), missing, unready)
    if not filled.request_milli:
        return NO_REQUESTS
    second = ratio_of(utilization_percent(filled.usage_milli, filled.request_milli), target_percent)
    replicas, hold = _after_filling(ratio, second, filled.samples, current, tolerance)
    return MetricProposal(replicas, second, hold, utilization, average)


def from_average(
    total_usage_milli: int,
    samples: int,
    target_milli: int,
    ready: int,
    current: int,
    tolerance: Tolerance,
    *,
    missing: int = 0,
    unready: int = 0,
) -> MetricProposal:
    """HPA rules §8.2: plain averages, cut to whole milli-units before they become a ratio.

    A missing pod counts with exactly the target when load is low and with nothing when it is high. `samples` is not
    zero.
    """
    average = truncated_quotient(total_usage_milli, samples)
    ratio = ratio_of(average, target_milli)
    if not missing and not (unready and ratio > 1.0):
        replicas, hold = _undisturbed(ratio, ready, current, tolerance)
        return MetricProposal(replicas, ratio, hold, average_milli=average)
    absent = Share(missing, 0, missing * target_milli)
    filled = _fill_in(ratio, _Filled(total_usage_milli, 0, samples), absent, Share(unready))
    second = ratio_of(truncated_quotient(filled.usage_milli, filled.samples), target_milli)
    replicas, hold = _after_filling(ratio, second, filled.samples, current, tolerance)
    return MetricProposal(replicas, second, hold, average_milli=average)


def from_total(usage_milli: int, target_milli: int, ready: int, current: int, tolerance: Tolerance) -> MetricProposal:
    """HPA rules §8.3: one value for all pods, scaled by the pods that are Running and Ready.

    From zero replicas no tolerance applies and `ready` is not looked at.
    """
    ratio = ratio_of(usage_milli, target_milli)
    if not current:
        return MetricProposal(ceil_to_int32(ratio), ratio, value_milli=usage_milli)
    replicas, hold = _undisturbed(ratio, ready, current, tolerance)
    return MetricProposal(replicas, ratio, hold, value_milli=usage_milli)


def per_pod_value(
    usage_milli: int, target_milli: int, status_replicas: int, tolerance: Tolerance, *, keep_overflow: bool = False
) -> MetricProposal:
    """HPA rules §8.4: one value shared by the pods that exist now; inside the tolerance `status_replicas` stay.

    With no pods the ratio is infinite or NaN, so nothing holds and the count is ceil(usage / target). `keep_overflow`
    is the External rule for the reported average: a sum at the end of 64 bits is shown as it is.
    """
    usage = float(usage_milli)
    ratio = ratio_of(usage, float(target_milli) * float(status_replicas))
    average = _reported_average(usage, status_replicas, keep_overflow=keep_overflow)
    if tolerance.holds(ratio):
        return MetricProposal(status_replicas, ratio, "tolerance", average_milli=average)
    return MetricProposal(ceil_to_int32(ratio_of(usage, target_milli)), ratio, average_milli=average)


def utilization_percent(usage_milli: int, request_milli: int) -> int:
    """HPA rules §8.1: whole percent, toward zero; the product wraps at 64 bits and the percentage keeps its low 32."""
    return wrap_int32(truncated_quotient(wrap_int64(usage_milli * 100), request_milli))


def _undisturbed(ratio: float, ready: int, current: int, tolerance: Tolerance) -> tuple[int, Hold | None]:
    """The proposal when no pod has to be filled in."""
    if tolerance.holds(ratio):
        return current, "tolerance"
    return ceil_to_int32(ratio * ready), None


def _fill_in(ratio: float, measured: _Filled, missing: Share, unready: Share) -> _Filled:
    """Add missing pods against the direction of the change, and unready ones at no usage when load is high."""
    usage, request, samples = measured
    if ratio < 1.0:
        usage += missing.fill_milli
    if ratio < 1.0 or ratio > 1.0:
        request += missing.request_milli
        samples += missing.pods
    if ratio > 1.0:
        request += unready.request_milli
        samples += unready.pods
    return _Filled(wrap_int64(usage), wrap_int64(request), samples)


def _after_filling(
    first: float, second: float, samples: int, current: int, tolerance: Tolerance
) -> tuple[int, Hold | None]:
    """The proposal from the second ratio, which may shrink a change but never turn it around."""
    if tolerance.holds(second):
        return current, "tolerance"
    if (first < 1.0 and second > 1.0) or (first > 1.0 and second < 1.0):
        return current, "direction"
    replicas = ceil_to_int32(second * samples)
    if (second < 1.0 and replicas > current) or (second > 1.0 and replicas < current):
        return current, "direction"
    return replicas, None


def _reported_average(usage: float, status_replicas: int, *, keep_overflow: bool) -> int | None:
    if keep_overflow and usage >= float(MAX_INT64):
        return MAX_INT64
    return ceil_to_int64(usage / status_replicas) if status_replicas else None


class CombinedProposal(NamedTuple):
    """The largest proposal, the index of the metric credited for it, and whether some other metric had no answer.

    `replicas` may be negative (negative samples).
    """

    replicas: int
    metric: int
    partial: bool = False


class NoRecommendation(NamedTuple):
    """The metrics allow no change; `metric` is the index of the first one that failed, which the condition names."""

    metric: int


def combine(proposals: Sequence[MetricProposal | Unmeasured], current: int) -> CombinedProposal | NoRecommendation:
    """HPA rules §9: the largest valid proposal wins; a metric without an answer blocks scaling down, never up.

    The first metric to reach the maximum is credited, except that a running maximum of zero is replaced by any later
    proposal, even a smaller one. There is always at least one metric.
    """
    replicas, credited, first_failure = 0, None, None
    for index, proposal in enumerate(proposals):
        if isinstance(proposal, Unmeasured):
            first_failure = index if first_failure is None else first_failure
        elif replicas == 0 or proposal.replicas > replicas:
            replicas, credited = proposal.replicas, index
    if credited is None or (first_failure is not None and replicas < current):
        return NoRecommendation(first_failure or 0)
    return CombinedProposal(replicas, credited, partial=first_failure is not None)
