"""Sizes beside an HPA on the same request: the load per pod at which it acts stays while the request changes.

An HPA's utilization target is a share of the request, so another request moves the point at which it acts. A vertical
rule that sets the request from usage which the HPA holds at a share of that very request shrinks it again and again; a
rule that keeps `request * target` cannot. spec/vertical.md §6.12.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isclose
from typing import TYPE_CHECKING

from forecaster.domain.workload import Target, TargetType, Workload, sum_if_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.domain.vertical_policy import VerticalPolicy
    from forecaster.vertical.sizing.containers import ContainerSizing, PodSizing

MIN_TARGET, MAX_TARGET = 0.5, 0.9
"""Targets that are still sensible, as ratios: a higher one leaves no time to react, a lower one is slack."""


@dataclass(frozen=True, slots=True)
class BesideHpa:
    """Effect of an HPA on the same request: resources that stay, and its new targets."""

    stay: frozenset[str] = frozenset()
    factors: Mapping[str, float] = field(default_factory=dict)
    """Factors by resource on requests and limits that were chosen."""
    targets: tuple[Target, ...] = ()


def beside_hpa(workload: Workload, sizing: PodSizing, policy: VerticalPolicy) -> BesideHpa:
    """Request and target change together only where the size of every container that requests something is known."""
    targets = utilization_targets(workload)
    stay = frozenset(targets) if policy.beside_hpa == "keep" else of_containers(workload)
    results = {name: _changed_together(sizing, name, target) for name, target in targets.items() if name not in stay}
    changed = {metric: change for metric, change in results.items() if change is not None}
    return BesideHpa(
        frozenset(targets.keys() - changed.keys()),
        {metric: factor for metric, (factor, _) in changed.items()},
        tuple(target for _, target in changed.values()),
    )


def _changed_together(sizing: PodSizing, metric: str, target: float) -> tuple[float, Target] | None:
    """Return the factor on the chosen size, and the new target; None where neither may or need change."""
    stated = [container for container in sizing if container.now.request(metric)]
    now = sum_if_all(container.now.request(metric) for container in stated)
    chosen = sum_if_all(_chosen_request(container, metric) for container in stated)
    if not now or not chosen:
        return None
    request, new_target = request_beside_hpa(now, target, chosen)
    return None if isclose(request, now) else (request / chosen, Target(metric, TargetType.UTILIZATION, new_target))


def utilization_targets(workload: Workload) -> dict[str, float]:
    """Targets by resource of an HPA on shares of a request: a new request would move the point at which it acts."""
    targets = workload.autoscaler.targets if workload.autoscaler else ()
    return {target.metric: target.value for target in targets if target.type is TargetType.UTILIZATION}


def of_containers(workload: Workload) -> frozenset[str]:
    """Resources of which an HPA looks at one container: what that one requests is no share of the sum."""
    targets = workload.autoscaler.targets if workload.autoscaler else ()
    return frozenset(target.metric for target in targets if target.container)


def request_beside_hpa(request: float, target: float, desired: float) -> tuple[float, float]:
    """Return the request nearest to the desired one, and its target, that keep the scale point exactly.

    The scale point `request * target` stays what the owner of the HPA stated, so requests lie between it and twice it
    however often this is repeated: there is nothing that could shrink on and on.
    """
    point = request * target
    new_request = min(max(desired, point / MAX_TARGET), point / MIN_TARGET)
    return new_request, point / new_request


def _chosen_request(container: ContainerSizing, metric: str) -> float | None:
    sized = container.of(metric)
    return None if sized is None or not container.knows(metric) else sized.request
