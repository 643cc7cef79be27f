"""Containers with less than a day of their own: what their relatives suggest, and how far that reaches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from forecaster.domain.amounts import amount
from forecaster.vertical.choice.relatives import Family, Inherited, Kin, inherited
from forecaster.vertical.sizing import LEAST_DAYS, ContainerSizing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from forecaster.domain.container import ContainerFacts
    from forecaster.domain.workload import WorkloadId
    from forecaster.vertical.sizing import PodSizing

_BY = {"image": "of its image", "workload": "of its workload", "chart": "of its chart"}


def with_relatives(
    fresh: Mapping[WorkloadId, PodSizing], known: Mapping[WorkloadId, PodSizing], facts: ContainerFacts
) -> dict[WorkloadId, PodSizing]:
    """The same, with a note on each newcomer that has relatives. A suggestion is told and never taken for a size."""
    if not any(_is_new(one) for sizing in fresh.values() for one in sizing):
        return dict(fresh)
    images = {(id_.workload, id_.name): image for id_, image in facts.images.items()}
    family = Family.of(_kin({**known, **fresh}, images))
    return {
        id_: tuple(_told(one, id_, images, family) if _is_new(one) else one for one in sizing)
        for id_, sizing in fresh.items()
    }


def _is_new(one: ContainerSizing) -> bool:
    return bool(one.name) and not one.note and one.days < LEAST_DAYS


def _kin(sizings: Mapping[WorkloadId, PodSizing], images: Mapping[tuple[WorkloadId, str], str]) -> Iterable[Kin]:
    for id_, sizing in sizings.items():
        for one in sizing:
            if one.days >= LEAST_DAYS:
                cpu, memory = (sized.request if sized else None for sized in (one.cpu, one.memory))
                yield Kin(images.get((id_, one.name), ""), str(id_), one.name, cpu=cpu, memory=memory)


def _told(
    one: ContainerSizing, id_: WorkloadId, images: Mapping[tuple[WorkloadId, str], str], family: Family
) -> ContainerSizing:
    related, by = family.relatives(Kin(images.get((id_, one.name), ""), str(id_), one.name))
    suggestions = [
        _suggestion(metric, found)
        for metric in ("cpu", "memory")
        if (found := inherited([size for each in related if (size := getattr(each, metric))], by))
    ]
    if not suggestions:
        return one
    count = "1 container" if len(related) == 1 else f"{len(related)} containers"
    said = f"{count} {_BY[by]} would take {' and '.join(suggestions)}"
    return replace(one, note=f"a newcomer, kept; {said}")


def _suggestion(metric: str, found: Inherited) -> str:
    size, low, high = (amount(value, metric) for value in (found.size, found.low, found.high))
    return f"{size} of {metric} ({low} to {high})"
