"""Containers with less than a day of their own: sized by what their relatives take, as widely as that deserves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forecaster.domain.amounts import resource_amount
from forecaster.forecasting.cold_start import family as named_alike
from forecaster.vertical.sizing.containers import OWN_DAYS, ChosenSize, ContainerSizing
from forecaster.vertical.sizing.donors import CPU_QUANTILE, MEMORY_QUANTILE, Donor, Donors, DonorSize, donor_size
from forecaster.vertical.sizing.memory import oom_floor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import VerticalPolicy
    from forecaster.domain.workload import ContainerFacts, Resources, WorkloadId
    from forecaster.vertical.sizing.containers import PodSizing

_BY = {"image": "of its image", "workload": "of its name in workloads called alike", "chart": "of its chart"}
_QUANTILES = {"cpu": CPU_QUANTILE, "memory": MEMORY_QUANTILE}


def with_donors(
    fresh: Mapping[WorkloadId, PodSizing],
    known: Mapping[WorkloadId, PodSizing],
    facts: ContainerFacts,
    policies: Policies,
) -> dict[WorkloadId, PodSizing]:
    """The same, with sizes for each newcomer that has relatives; nothing is invented for one that has none."""
    if not any(_is_new(one) for sizing in fresh.values() for one in sizing):
        return dict(fresh)
    images = {(id_.workload, id_.name): image for id_, image in facts.images.items()}
    killed = {(id_.workload, id_.name): limit for id_, limit in facts.oom_limits.items()}
    family = Donors.of(_kin({**known, **fresh}, images))
    return {
        id_: tuple(
            _sized(ColdStart(one, id_, killed.get((id_, one.name)), policies.of(id_).vertical), images, family)
            if _is_new(one)
            else one
            for one in sizing
        )
        for id_, sizing in fresh.items()
    }


def _is_new(one: ContainerSizing) -> bool:
    return bool(one.name) and not one.note and one.days < OWN_DAYS


def _kin(sizings: Mapping[WorkloadId, PodSizing], images: Mapping[tuple[WorkloadId, str], str]) -> Iterable[Donor]:
    for id_, sizing in sizings.items():
        for one in sizing:
            if one.days >= OWN_DAYS:
                cpu, memory = (sized.request if sized else None for sized in (one.cpu, one.memory))
                yield Donor(
                    images.get((id_, one.name), ""), "/".join(named_alike(id_)), one.name, cpu=cpu, memory=memory
                )


@dataclass(frozen=True, slots=True)
class ColdStart:
    """A container, whose it is, the limit at which it was OOM-killed, None if it was not, and its policy."""

    sizing: ContainerSizing
    workload: WorkloadId
    killed_at: float | None
    policy: VerticalPolicy

    def cpu(self, found: DonorSize) -> ChosenSize:
        """At least what its own hours ask, and what it has: relatives raise and fill in, and lower nothing."""
        now, own = self.sizing.now, self.sizing.cpu
        least = max(found.size, own.request if own else 0.0, self.policy.min_cpu)
        request = max(least, now.cpu_request or 0.0)
        limit = None if self.policy.cpu_limit == "none" else _in_ratio(request, now.cpu_request, now.cpu_limit)
        return _as_said(request, limit, kept=request == now.cpu_request)

    def memory(self, found: DonorSize) -> ChosenSize:
        """The same, above the limit of a kill."""
        now, own = self.sizing.now, self.sizing.memory
        least = max(found.size, own.request if own else 0.0, oom_floor(self.killed_at), self.policy.min_memory)
        request = max(least, now.memory_request or 0.0)
        return _as_said(request, self._memory_limit(request, now), kept=request == now.memory_request)

    def _memory_limit(self, request: float, now: Resources) -> float | None:
        match self.policy.memory_limit:
            case "none":
                return None
            case "keep-ratio":
                return _in_ratio(request, now.memory_request, now.memory_limit)
            case _:
                return max(request, now.memory_limit or 0.0)


def _sized(new: ColdStart, images: Mapping[tuple[WorkloadId, str], str], family: Donors) -> ContainerSizing:
    one, id_ = new.sizing, new.workload
    related, by = family.relatives(Donor(images.get((id_, one.name), ""), "/".join(named_alike(id_)), one.name))
    found = {
        metric: said
        for metric, quantile in _QUANTILES.items()
        if (said := donor_size([size for each in related if (size := getattr(each, metric))], by, quantile))
    }
    if not found:
        return one
    return replace(
        one,
        cpu=new.cpu(found["cpu"]) if "cpu" in found else None,
        memory=new.memory(found["memory"]) if "memory" in found else None,
        borrowed={metric: _told(metric, said, one.days) for metric, said in found.items()},
    )


def _told(metric: str, said: DonorSize, days: float) -> str:
    low, high = (resource_amount(value, metric) for value in (said.low, said.high))
    count = "1 container" if said.relatives == 1 else f"{said.relatives} containers"
    return (
        f"a newcomer with {days * 24:.1f} h of usage; going by {count} {_BY[said.by]}, nine of ten take {low} to {high}"
    )


def _as_said(request: float, limit: float | None, *, kept: bool) -> ChosenSize:
    """Risk and waste are not known: they would be those of others."""
    return ChosenSize(request, limit, over_request=None, over_limit=None, slack=0.0, kept=kept)


def _in_ratio(request: float, before: float | None, limit: float | None) -> float | None:
    return None if limit is None or not before else request * max(limit / before, 1.0)
