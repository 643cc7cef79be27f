"""Recommendations of VPAs in the cluster, from their status: for comparison, whatever their mode."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from forecaster.domain.amounts import resource_amount
from forecaster.domain.quantity import QuantityError, parse_quantity
from forecaster.domain.workload import Resources, total

LIVE_VPA = "live_vpa"
"""Name of this recommender in comparisons."""
VPA_RESOURCES = ("cpu", "memory")


class VpaTarget(NamedTuple):
    """A VPA's recommendation for one container: requests in cores and bytes; None where it has none."""

    container: str
    target: Resources
    lower: Resources
    upper: Resources

    def __str__(self) -> str:
        return f"{self.container} {', '.join(self._of(name) for name in VPA_RESOURCES)}"

    def _of(self, name: str) -> str:
        target, lower, upper = (resource_amount(bound.request(name), name) for bound in self[1:])
        return f"{name} {target} ({lower} to {upper})"


class VpaSizes(NamedTuple):
    """One VPA and its recommendation."""

    name: str
    mode: str
    containers: tuple[VpaTarget, ...] = ()
    why: str = ""
    """Reason why it has no recommendation, from its own status."""

    def pod(self, containers: Collection[str]) -> Resources | None:
        """Requests of a pod with these containers; None where it does not recommend for each.

        A VPA goes on recommending for containers that are gone from the template; these are not counted.
        """
        targets = {container.container: container.target for container in self.containers}
        known = targets and targets.keys() >= set(containers)
        return total(targets[name] for name in containers) if known else None

    def __str__(self) -> str:
        text = "; ".join(map(str, self.containers)) or ": ".join(filter(None, ("nothing yet", self.why)))
        return f"VPA {self.name} (updateMode {self.mode}) recommends {text}"


def vpa_sizes(name: str, mode: str, status: Any) -> VpaSizes:
    """Read the status of a VPA from JSON; parts in another form are not known and do not fail."""
    reported = _mapping(_mapping(status).get("recommendation")).get("containerRecommendations")
    containers = map(_mapping, _list(reported))
    targets = tuple(_target(container) for container in containers if container.get("containerName"))
    return VpaSizes(name, mode, targets, "" if targets else _why_none(_mapping(status)))


def _target(reported: Mapping[str, Any]) -> VpaTarget:
    return VpaTarget(
        str(reported["containerName"]),
        *(_requests(reported.get(field)) for field in ("target", "lowerBound", "upperBound")),
    )


def _requests(amounts: Any) -> Resources:
    cpu, memory = (_amount(_mapping(amounts).get(name)) for name in VPA_RESOURCES)
    return Resources(cpu_request=cpu, memory_request=memory)


def _amount(text: Any) -> float | None:
    """Cores or bytes."""
    try:
        return None if text is None else parse_quantity(str(text)).as_float()
    except QuantityError:
        return None


def _why_none(status: Mapping[str, Any]) -> str:
    """Return the reason from its condition `RecommendationProvided`."""
    conditions = map(_mapping, _list(status.get("conditions")))
    provided = (condition for condition in conditions if condition.get("type") == "RecommendationProvided")
    return next((str(condition.get("message") or condition.get("reason") or "") for condition in provided), "")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
