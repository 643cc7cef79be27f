"""Sums over pods and their samples, between the groups of §6 and the formulas of §8."""

from collections.abc import Mapping
from typing import NamedTuple

from forecaster.hpa.numbers import truncated_quotient, wrap_int64
from forecaster.hpa.pods import Groups
from forecaster.hpa.proposals import Share
from forecaster.hpa.samples import Sample


class RequestedUsage(NamedTuple):
    """HPA rules §8.1: sums over the samples whose pod has a request, and how many those are: the ready pods."""

    usage_milli: int
    request_milli: int
    samples: int


def remaining_samples(samples: Mapping[str, Sample], groups: Groups) -> Mapping[str, Sample]:
    """HPA rules §6: without the samples of ignored and unready pods; those of unknown pods stay."""
    if not groups.ignored and not groups.unready:
        return samples
    dropped = {*groups.ignored, *groups.unready}
    return {pod: sample for pod, sample in samples.items() if pod not in dropped}


def requested_usage(samples: Mapping[str, Sample], requests_milli: Mapping[str, int]) -> RequestedUsage:
    """HPA rules §8.1: the sums that utilisation is made of; samples of unknown pods are skipped."""
    usage = request = count = 0
    for pod, sample in samples.items():
        own = requests_milli.get(pod)
        if own is not None:
            usage += sample.value_milli
            request += own
            count += 1
    return RequestedUsage(wrap_int64(usage), wrap_int64(request), count)


def total_usage(samples: Mapping[str, Sample]) -> int:
    """HPA rules §8.2: the sum over all samples, those of unknown pods included."""
    return wrap_int64(sum([sample.value_milli for sample in samples.values()]))


def missing_share(missing: list[str], requests_milli: Mapping[str, int], target_percent: int) -> Share:
    """HPA rules §8.1: under low load a missing pod uses its whole request, or the target where that is more."""
    percent = max(100, target_percent)
    requests = [requests_milli[pod] for pod in missing]
    fills = [truncated_quotient(wrap_int64(request * percent), 100) for request in requests]
    return Share(len(missing), sum(requests), sum(fills))


def unready_share(unready: list[str], requests_milli: Mapping[str, int]) -> Share:
    """HPA rules §8.1: an unready pod counts with no usage, and only under high load."""
    return Share(len(unready), sum([requests_milli[pod] for pod in unready]))
