"""Where a workload's forecast stands and when that was judged, in memory and in a form that is kept."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  msgspec resolves the annotations
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from forecaster.decisions.gate import Gate, Standing, Voice
from forecaster.domain.workload import WorkloadId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Place(NamedTuple):
    """Where a workload stands, when it was judged (None before the first time), and before when it is not again."""

    gate: Gate = Gate()
    judged_at: datetime | None = None
    due: datetime | None = None


NOWHERE = Place()


class KeptPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """What outlives the process: all of it, so that a restart changes nothing."""

    id: tuple[str, str, str]
    standing: Standing
    voice: Voice
    why: str
    since: datetime | None = None
    judged_at: datetime | None = None
    due: datetime | None = None


def kept(places: Mapping[WorkloadId, Place]) -> tuple[KeptPlace, ...]:
    """Every place that is not just the beginning."""
    return tuple(
        KeptPlace((id_.namespace, id_.kind, id_.name), gate.standing, gate.voice, gate.why, gate.since, judged_at, due)
        for id_, (gate, judged_at, due) in places.items()
        if (gate, judged_at, due) != NOWHERE
    )


def restored(kept: Iterable[KeptPlace]) -> dict[WorkloadId, Place]:
    """The same again."""
    return {
        WorkloadId(*one.id): Place(Gate(one.standing, one.voice, one.since, one.why), one.judged_at, one.due)
        for one in kept
    }
