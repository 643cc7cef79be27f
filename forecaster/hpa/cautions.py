"""Cautions for an HPA's owner that the API does not give: valid settings that do not do what they seem to.

Each caution has a stable code and a sentence with the object's own numbers and the remedy.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from forecaster.hpa.explain import seconds
from forecaster.hpa.limits import windows
from forecaster.hpa.numbers import ceil_to_int32
from forecaster.hpa.pods import HpaPod, pod_request
from forecaster.hpa.proposals import Tolerance, Unmeasured
from forecaster.hpa.spec import SHIPPED, Controller, HpaSpec, tolerance_of

Code = Literal[
    "fixed-size",
    "missing-requests",
    "never-scales-down",
    "out-of-reach",
    "same-signal-as-vertical",
    "shared-target",
    "window-delays-rises",
]
_SHOWN = 3


class Caution(NamedTuple):
    """One thing to know, under a code that stays."""

    code: Code
    sentence: str

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}"


def cautions(
    spec: HpaSpec,
    replicas: int,
    *,
    controller: Controller = SHIPPED,
    pods: Sequence[HpaPod] = (),
    others: Iterable[HpaSpec] = (),
    vertical_resources: frozenset[str] = frozenset(),
) -> tuple[Caution, ...]:
    """All cautions about one HPA at its current size.

    `pods` are the target's, `others` the other HPAs of the namespace, `vertical_resources` the resources of which the
    requests something else changes.
    """
    tolerance = tolerance_of(spec.behavior, controller)
    possible = (
        _out_of_reach(replicas, tolerance, spec),
        _never_scales_down(tolerance),
        _window_delays_rises(spec, controller),
        _fixed_size(spec),
        _missing_requests(spec, pods, controller),
        _shared_target(spec, others),
        _same_signal(spec, vertical_resources),
    )
    return tuple(caution for caution in possible if caution is not None)


def counts_out_of_reach(replicas: int, tolerance: Tolerance) -> range:
    """HPA rules §8: the sizes that no load leads to in one pass from this one, for the tolerance.

    A per-pod target at `replicas` pods asks for n pods at a ratio above (n-1)/replicas and up to n/replicas; n is out
    of reach where all of that lies inside the band. The current size is in the middle of them and no such size itself.
    """
    if replicas < 1:
        return range(0)
    around = range(ceil_to_int32(replicas * tolerance.highest) + 2)
    first = bisect_left(around, tolerance.lowest, lo=1, key=lambda n: (n - 1) / replicas)
    return range(first, bisect_right(around, tolerance.highest, lo=first, key=lambda n: n / replicas))


def _out_of_reach(replicas: int, tolerance: Tolerance, spec: HpaSpec) -> Caution | None:
    least, most = spec.bounds.min_replicas, spec.max_replicas
    held = counts_out_of_reach(replicas, tolerance)
    allowed = range(max(held.start, least), min(held.stop, most + 1))
    counts = list(islice((n for n in allowed if n != replicas), _SHOWN + 1))
    if not counts:
        return None
    listed = ", ".join(map(str, counts[:_SHOWN])) + (" and more" if len(counts) > _SHOWN else "")
    return Caution(
        "out-of-reach",
        f"at {replicas} replicas the tolerance holds ratios {tolerance.lowest:g} to {tolerance.highest:g}, so {listed} "
        "replicas cannot be reached in one pass; set behavior.scaleUp.tolerance or scaleDown.tolerance lower",
    )


def _never_scales_down(tolerance: Tolerance) -> Caution | None:
    if tolerance.down < 1.0:
        return None
    return Caution(
        "never-scales-down",
        f"a scale-down tolerance of {tolerance.down:g} holds every load down to zero; set it below 1",
    )


def _window_delays_rises(spec: HpaSpec, controller: Controller) -> Caution | None:
    if spec.behavior is None:
        return None
    window, _ = windows(spec.behavior, controller.downscale_stabilization)
    if not window:
        return None
    return Caution(
        "window-delays-rises",
        f"behavior.scaleUp.stabilizationWindowSeconds is {seconds(window)}: each rise is followed that much later, a "
        "forecast's too, and a shorter one never; set it to 0, or state a lead time that is longer by as much",
    )


def _fixed_size(spec: HpaSpec) -> Caution | None:
    if spec.bounds.min_replicas != spec.max_replicas:
        return None
    return Caution("fixed-size", f"minReplicas and maxReplicas are both {spec.max_replicas}: this HPA never scales")


def _missing_requests(spec: HpaSpec, pods: Sequence[HpaPod], controller: Controller) -> Caution | None:
    """HPA rules §7: one pod without the request stops the whole metric."""
    gate = controller.gates.pod_level_resources
    for metric in spec.metrics:
        if metric.target.average_utilization_percent is None:
            continue
        for pod in pods:
            request = pod_request(pod, metric.name, metric.container, pod_level_resources=gate)
            if isinstance(request, Unmeasured):
                return Caution(
                    "missing-requests",
                    f"{request.message}: utilization of {metric.name} cannot be computed for any pod until every "
                    "container has the request",
                )
    return None


def _shared_target(spec: HpaSpec, others: Iterable[HpaSpec]) -> Caution | None:
    target = spec.scale_target
    names = [
        other.name
        for other in others
        if other.namespace == spec.namespace
        and (other.scale_target.kind, other.scale_target.name) == (target.kind, target.name)
        and other.name != spec.name
    ]
    if not names:
        return None
    return Caution(
        "shared-target",
        f"{', '.join(sorted(names))} scales {target.kind} {target.name} too; "
        "both stop with AmbiguousSelector, keep one",
    )


def _same_signal(spec: HpaSpec, vertical_resources: frozenset[str]) -> Caution | None:
    """Utilisation is usage over request: a change of the request changes what the HPA sees."""
    for metric in spec.metrics:
        if metric.target.average_utilization_percent is not None and metric.name in vertical_resources:
            return Caution(
                "same-signal-as-vertical",
                f"vertical scaling changes the {metric.name} requests that this HPA's utilization target divides by, "
                "so the two chase each other; use an averageValue target or leave that resource to one of them",
            )
    return None
