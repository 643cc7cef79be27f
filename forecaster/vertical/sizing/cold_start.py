"""Sizes of containers with less than a day of usage, from donors, with their spread as the uncertainty.

Donors are containers of the same image in its namespace, else of that name in workloads called alike there, else of its
image in three and more other namespaces, of which the largest and the smallest are left out: no tenant sizes the pods
of another one. Their sizes, on a logarithmic scale, are a sample of what such a container needs; its quantile is taken
with the spread of a single new member, sqrt(1 + 1/n), and never with less spread than two containers of one image show
in practice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log, sqrt
from statistics import NormalDist, fmean, median
from typing import NamedTuple

from forecaster.domain.amounts import counted, resource_amount
from forecaster.domain.policies import Policies
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.workload import ContainerFacts, ContainerId, Resources, WorkloadId
from forecaster.vertical.sizing.containers import OWN_DAYS, ChosenSize, ContainerSizing, PodSizing
from forecaster.vertical.sizing.memory import oom_floor

MIN_SPREAD = 0.3
"""Containers of one image differ by a third: other data, other load."""
CPU_QUANTILE, MEMORY_QUANTILE = 0.9, 0.95
"""A container waits for CPU that is short, and is killed for memory that is short."""
_QUANTILES = {"cpu": CPU_QUANTILE, "memory": MEMORY_QUANTILE}
UNKNOWN_RISK = (None, None, 0.0)
"""Risk and slack are not known: the donors' own would mislead."""
_OTHERS = "others"
_BY = {
    "image": "of its image",
    "workload": "of its name in workloads called alike",
    _OTHERS: "of its image, one for each of other namespaces without the largest and the smallest",
}


@dataclass(frozen=True, slots=True)
class Donor:
    """Properties that make containers alike, and the sizes if known: cores and bytes."""

    namespace: str
    image: str
    workload: str
    """Common part of the names of similarly named workloads."""
    container: str
    cpu: float | None = None
    memory: float | None = None


class DonorSize(NamedTuple):
    """A size from `count` donors, which share `by` with the container; `low` and `high` enclose nine of ten."""

    size: float
    low: float
    high: float
    donors: int
    by: str


@dataclass(frozen=True, slots=True)
class Donors:
    """Containers that lend their sizes, by their common properties with others."""

    by_degree: Mapping[str, Mapping[Hashable, Sequence[Donor]]]
    _sizes: dict[tuple[str, Hashable], dict[str, DonorSize]] = field(default_factory=dict, init=False, compare=False)
    """Cached sizes by resource of each requested group: many containers share an image."""

    @classmethod
    def of(cls, members: Iterable[Donor]) -> Donors:
        """Group these by every degree."""
        known = list(members)
        return cls({by: _grouped(known, key) for by, key in _DEGREES})

    def sizes(self, newcomer: Donor) -> dict[str, DonorSize]:
        """Return sizes by resource from the most similar donors; empty without donors."""
        return next(filter(None, (self._of_group(by, key(newcomer)) for by, key in _DEGREES)), {})

    def _of_group(self, by: str, key: Hashable) -> dict[str, DonorSize]:
        if (by, key) not in self._sizes:
            donors = self.by_degree[by].get(key, ())
            sizes = {metric: donor_size(_amounts(donors, metric, by), by, _QUANTILES[metric]) for metric in _QUANTILES}
            self._sizes[by, key] = {metric: size for metric, size in sizes.items() if size is not None}
        return self._sizes[by, key]


@dataclass(frozen=True, slots=True)
class ColdStart:
    """A container without a day of its own; `killed_at` is the limit in bytes of an OOM kill, None without one."""

    sizing: ContainerSizing
    own: Donor
    killed_at: float | None
    policy: VerticalPolicy

    def cpu(self, donated: DonorSize) -> ChosenSize:
        """Return at least the size for its own hours, and the present one: donors raise and never lower."""
        now, own = self.sizing.now, self.sizing.cpu
        least = max(donated.size, own.request if own else 0.0, self.policy.min_cpu)
        request = max(least, now.cpu_request or 0.0)
        limit = None if self.policy.cpu_limit == "none" else _in_ratio(request, now.cpu_request, now.cpu_limit)
        return ChosenSize(request, limit, *UNKNOWN_RISK, unchanged=request == now.cpu_request)

    def memory(self, donated: DonorSize) -> ChosenSize:
        """Return the size like that of CPU, and above the limit of a kill."""
        now, own = self.sizing.now, self.sizing.memory
        least = max(donated.size, own.request if own else 0.0, oom_floor(self.killed_at), self.policy.min_memory)
        request = max(least, now.memory_request or 0.0)
        limit = self._memory_limit(request, now)
        return ChosenSize(request, limit, *UNKNOWN_RISK, unchanged=request == now.memory_request)

    def _memory_limit(self, request: float, now: Resources) -> float | None:
        match self.policy.memory_limit:
            case "none":
                return None
            case "keep-ratio":
                return _in_ratio(request, now.memory_request, now.memory_limit)
            case _:
                return max(request, now.memory_limit or 0.0)


def with_donors(
    fresh: Mapping[WorkloadId, PodSizing],
    known: Mapping[WorkloadId, PodSizing],
    facts: ContainerFacts,
    policies: Policies,
    alike: Callable[[WorkloadId], str],
) -> dict[WorkloadId, PodSizing]:
    """Return `fresh` with sizes for cold starts that have donors in `known` or `fresh`; others stay as they are.

    `alike` is what the names of workloads that are called alike have in common.
    """

    def donor(id_: WorkloadId, container: ContainerSizing) -> Donor:
        cpu, memory = (sized.request if sized else None for sized in (container.cpu, container.memory))
        image = facts.images.get(ContainerId(id_, container.name), "")
        return Donor(id_.namespace, image, alike(id_), container.name, cpu, memory)

    new = ((id_, container) for id_, sizing in fresh.items() for container in sizing if _is_cold(container))
    cold = {(id_, container.name): donor(id_, container) for id_, container in new}
    if not cold:
        return dict(fresh)
    images, places = {own.image for own in cold.values()}, {(own.namespace, own.container) for own in cold.values()}
    donors = Donors.of(
        donor(id_, container)
        for id_, sizing in {**known, **fresh}.items()
        for container in sizing
        if container.days >= OWN_DAYS
        and ((id_.namespace, container.name) in places or facts.images.get(ContainerId(id_, container.name)) in images)
    )

    def sized(id_: WorkloadId, container: ContainerSizing) -> ContainerSizing:
        own = cold.get((id_, container.name))
        if own is None:
            return container
        killed_at = facts.oom_limits.get(ContainerId(id_, container.name))
        return _sized(ColdStart(container, own, killed_at, policies.of(id_).vertical), donors)

    return {id_: tuple(sized(id_, container) for container in sizing) for id_, sizing in fresh.items()}


def donor_size(sizes: Sequence[float], by: str, quantile: float = CPU_QUANTILE) -> DonorSize | None:
    """Return the quantile of the donors' sizes; None without sizes.

    Few donors that differ much say little: no more is taken than the largest of them alone would lend.
    """
    logs = [log(size) for size in sizes if size > 0]
    if not logs:
        return None
    mean = fmean(logs)
    own = sqrt(sum((each - mean) ** 2 for each in logs) / max(len(logs) - 1, 1))
    spread = max(own, MIN_SPREAD) * sqrt(1 + 1 / len(logs))
    low, size, high = (exp(mean + NormalDist().inv_cdf(p) * spread) for p in (0.05, quantile, 0.95))
    most = exp(max(logs) + NormalDist().inv_cdf(quantile) * MIN_SPREAD * sqrt(2))
    return DonorSize(min(size, most), low, high, len(logs), by)


def _amounts(donors: Sequence[Donor], metric: str, by: str) -> list[float]:
    """Return the donors' amounts; of other namespaces each median, without the smallest and the largest."""
    amounts = [(donor.namespace, amount) for donor in donors if (amount := getattr(donor, metric))]
    if by != _OTHERS:
        return [amount for _, amount in amounts]
    of_namespace: dict[str, list[float]] = defaultdict(list)
    for namespace, amount in amounts:
        of_namespace[namespace].append(amount)
    return sorted(map(median, of_namespace.values()))[1:-1]


def _is_cold(container: ContainerSizing) -> bool:
    return bool(container.name) and not container.note and container.days < OWN_DAYS


def _sized(cold: ColdStart, donors: Donors) -> ContainerSizing:
    sizes = donors.sizes(cold.own)
    if not sizes:
        return cold.sizing
    return replace(
        cold.sizing,
        cpu=cold.cpu(sizes["cpu"]) if "cpu" in sizes else None,
        memory=cold.memory(sizes["memory"]) if "memory" in sizes else None,
        explained={metric: _sentence(metric, size, cold.sizing.days) for metric, size in sizes.items()},
    )


def _sentence(metric: str, size: DonorSize, days: float) -> str:
    low, high = (resource_amount(value, metric) for value in (size.low, size.high))
    donors = f"{counted(size.donors, 'donor')} {_BY[size.by]}"
    return f"a cold start with {days * 24:.1f} h of usage; by {donors}, nine of ten take {low} to {high}"


def _in_ratio(request: float, before: float | None, limit: float | None) -> float | None:
    return None if limit is None or not before else request * max(limit / before, 1.0)


def _grouped(members: Iterable[Donor], key: Callable[[Donor], Hashable]) -> dict[Hashable, list[Donor]]:
    groups: dict[Hashable, list[Donor]] = defaultdict(list)
    for donor in members:
        if (shared := key(donor)) is not None:
            groups[shared].append(donor)
    return groups


_DEGREES: tuple[tuple[str, Callable[[Donor], Hashable]], ...] = (
    ("image", lambda donor: (donor.namespace, donor.image) if donor.image else None),
    ("workload", lambda donor: (donor.namespace, donor.workload, donor.container)),
    (_OTHERS, lambda donor: donor.image or None),
)
"""Degrees of similarity, the closest first."""
