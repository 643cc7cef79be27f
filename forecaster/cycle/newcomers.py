"""Containers with less than a day of their own: sized by what their relatives take, as widely as that deserves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forecaster.domain.amounts import amount
from forecaster.forecasting.cold_start import family as named_alike
from forecaster.vertical.choice.choose import Sized
from forecaster.vertical.choice.oom import RAISE
from forecaster.vertical.choice.relatives import MEMORY_QUANTILE, QUANTILE, Family, Inherited, Kin, inherited
from forecaster.vertical.sizing import LEAST_DAYS, ContainerSizing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import VerticalPolicy
    from forecaster.domain.workload import ContainerFacts, Resources, WorkloadId
    from forecaster.vertical.sizing import PodSizing

_BY = {"image": "of its image", "workload": "of its name in workloads called alike", "chart": "of its chart"}
_QUANTILES = {"cpu": QUANTILE, "memory": MEMORY_QUANTILE}


def with_relatives(
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
    family = Family.of(_kin({**known, **fresh}, images))
    return {
        id_: tuple(
            _sized(Newcomer(one, id_, killed.get((id_, one.name), 0.0), policies.of(id_).vertical), images, family)
            if _is_new(one)
            else one
            for one in sizing
        )
        for id_, sizing in fresh.items()
    }


def _is_new(one: ContainerSizing) -> bool:
    return bool(one.name) and not one.note and one.days < LEAST_DAYS


def _kin(sizings: Mapping[WorkloadId, PodSizing], images: Mapping[tuple[WorkloadId, str], str]) -> Iterable[Kin]:
    for id_, sizing in sizings.items():
        for one in sizing:
            if one.days >= LEAST_DAYS:
                cpu, memory = (sized.request if sized else None for sized in (one.cpu, one.memory))
                yield Kin(images.get((id_, one.name), ""), "/".join(named_alike(id_)), one.name, cpu=cpu, memory=memory)


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A container, whose it is, the limit at which it was OOM-killed (0 if it was not), and its policy."""

    sizing: ContainerSizing
    workload: WorkloadId
    killed_at: float
    policy: VerticalPolicy

    def cpu(self, found: Inherited) -> Sized:
        """At least what its own hours ask, and what it has: relatives raise and fill in, and lower nothing."""
        now, own = self.sizing.now, self.sizing.cpu
        least = max(found.size, own.request if own else 0.0, self.policy.min_cpu)
        request = max(least, now.cpu_request or 0.0)
        limit = None if self.policy.cpu_limit == "none" else _in_ratio(request, now.cpu_request, now.cpu_limit)
        return _as_said(request, limit, kept=request == now.cpu_request)

    def memory(self, found: Inherited) -> Sized:
        """The same, above the limit of a kill."""
        now, own = self.sizing.now, self.sizing.memory
        least = max(found.size, own.request if own else 0.0, self.killed_at * RAISE, self.policy.min_memory)
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


def _sized(new: Newcomer, images: Mapping[tuple[WorkloadId, str], str], family: Family) -> ContainerSizing:
    one, id_ = new.sizing, new.workload
    related, by = family.relatives(Kin(images.get((id_, one.name), ""), "/".join(named_alike(id_)), one.name))
    found = {
        metric: said
        for metric, quantile in _QUANTILES.items()
        if (said := inherited([size for each in related if (size := getattr(each, metric))], by, quantile))
    }
    if not found:
        return one
    return replace(
        one,
        cpu=new.cpu(found["cpu"]) if "cpu" in found else None,
        memory=new.memory(found["memory"]) if "memory" in found else None,
        borrowed={metric: _told(metric, said, one.days) for metric, said in found.items()},
    )


def _told(metric: str, said: Inherited, days: float) -> str:
    low, high = (amount(value, metric) for value in (said.low, said.high))
    count = "1 container" if said.relatives == 1 else f"{said.relatives} containers"
    return (
        f"a newcomer with {days * 24:.1f} h of usage; going by {count} {_BY[said.by]}, nine of ten take {low} to {high}"
    )


def _as_said(request: float, limit: float | None, *, kept: bool) -> Sized:
    """Risk and waste are not known: they would be those of others."""
    return Sized(request, limit, over_request=None, over_limit=None, idle=0.0, kept=kept)


def _in_ratio(request: float, before: float | None, limit: float | None) -> float | None:
    return None if limit is None or not before else request * max(limit / before, 1.0)
