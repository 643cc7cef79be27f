"""`decide` on arrays: replicas from measured demand, raised by the forecast, stabilised and bounded, lane by lane."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.decisions.surge import FEW
from forecaster.hpa.proposals import Tolerance
from forecaster.replay.fast.asking import combined, proposals
from forecaster.replay.fast.numbers import UNKNOWN, Counts, Flags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.signal import Signal
    from forecaster.replay.fast.asking import Targets
    from forecaster.replay.fast.clamping import Clamps
    from forecaster.replay.fast.outages import Loads
    from forecaster.replay.fast.pods import Pods
    from forecaster.replay.fast.worth import Worth


class Seen(NamedTuple):
    """What every lane knows, by signal in milli-units: the newest demand that may be acted on, and the forecast peak.

    `worth` has one entry for each target where lanes are sized by newsvendor, and none where they are not; `loads` are there
    where outages are looked for.
    """

    measured: Mapping[Signal, Counts]
    ahead: Mapping[Signal, Counts]
    worth: Sequence[Worth] = ()
    loads: Loads | None = None


@dataclass(slots=True, eq=False)
class Deciders:
    """One `decide` a lane; all have the same policy, apart from what the clamps have by lane."""

    targets: Sequence[Targets]
    policy: HorizontalPolicy
    clamps: Clamps
    frozen: Flags | None = None
    """[minute] whether a maintenance window is on."""
    acting: Flags | None = None
    """[minute, lane] whether the gate lets the forecast have its say."""
    tolerance: Tolerance = field(init=False)
    ready_before: Counts = field(init=False)

    def __post_init__(self) -> None:
        self.ready_before = np.zeros(len(self.clamps.least), np.int64)
        self.tolerance = Tolerance(self.policy.tolerance, self.policy.tolerance)

    def floors(self, pods: Pods, seen: Seen, before: Counts, minute: int) -> Counts:
        """The recommended counts; where nothing can be said the floor stays as it was before."""
        wanted, scales = self._wanted(pods, seen, None if self.acting is None else self.acting[minute])
        if self.frozen is not None and self.frozen[minute]:
            scales = np.zeros_like(scales)
        elif self.clamps.outages is not None and seen.loads is not None:
            silent = (pods.asked > 0) & (pods.ready > 0) & ~scales
            self.clamps.outages.look(seen.loads, scales, silent, pods.asked, minute)
        self.ready_before = np.where(scales, pods.ready, self.ready_before)
        return np.where(scales, self.clamps.clamped(wanted, scales, pods.asked, minute), before)

    def _wanted(self, pods: Pods, seen: Seen, acting: Flags | None) -> tuple[Counts, Flags]:
        """The counts before the clamps, and where there is one: `decisions.wanted.wanted_by`."""
        now = [self._proposals(one, seen.measured, pods) for one in self.targets]
        worth = [one.served_by(pods.ready, self.ready_before) for one in seen.worth]
        asked = [add for add, _ in worth] or [self._proposals(one, seen.ahead, pods) for one in self.targets]
        ahead = [np.where(known < 0, UNKNOWN, coming) for known, coming in zip(now, asked, strict=True)]
        if acting is not None:
            ahead = [np.where(acting, coming, UNKNOWN) for coming in ahead]
        reactive, coming = combined(now, pods.asked), combined(ahead, pods.asked).replicas
        lowers = (coming >= 0) & ~reactive.partial if self.policy.scale_in_by_forecast else np.False_
        replaced = np.where(lowers, _everywhere(now, ahead), coming)
        kept = np.where(coming < 0, UNKNOWN, self._kept(now, [keep for _, keep in worth], replaced, pods.asked))
        wanted = np.where(lowers, kept, np.maximum(reactive.replicas, kept))
        asks = np.where(reactive.valid, wanted, coming)
        bounded = self._bounded(asks, np.where(reactive.valid, reactive.replicas, pods.asked), pods.asked)
        someone = (pods.asked > 0) & (pods.ready > 0) & (reactive.replicas >= 0)
        raises = ~reactive.valid & (coming > pods.asked)
        return bounded, someone & (reactive.valid | raises)

    @staticmethod
    def _kept(now: Sequence[Counts], keep_each: Sequence[Counts], ahead: Counts, current: Counts) -> Counts:
        """Pods that are there and still worth keeping stay: `decisions.wanted._kept`."""
        if not keep_each:
            return ahead
        sides = [np.where(known < 0, UNKNOWN, keep) for known, keep in zip(now, keep_each, strict=True)]
        keep = np.maximum.reduce(sides)
        return np.maximum(ahead, np.where(keep < 0, ahead, np.minimum(current, keep)))

    def _bounded(self, wanted: Counts, reactive: Counts, current: Counts) -> Counts:
        """The blast radius of a forecast: `decisions.wanted._bounded`."""
        if self.policy.surge is None:
            return wanted
        radius = np.maximum(FEW, np.ceil(self.policy.surge * current).astype(np.int64))
        near = np.clip(wanted, current - radius, current + radius)
        rises, falls = np.maximum(near, reactive), np.minimum(near, reactive)
        return np.where(wanted > reactive, rises, np.where(wanted < reactive, falls, wanted))

    def _proposals(self, targets: Targets, demand: Mapping[Signal, Counts], pods: Pods) -> Counts:
        asked = proposals(targets, demand[targets.kind.signal], pods.ready, pods.asked, self.tolerance)
        return np.where(pods.ready < 1, UNKNOWN, asked)


def _everywhere(now: Sequence[Counts], ahead: Sequence[Counts]) -> Counts:
    """The forecast counts, where a signal without a forecast asks for what it measures."""
    sides = [np.where(coming < 0, measured, coming) for measured, coming in zip(now, ahead, strict=True)]
    result: Counts = np.maximum.reduce(sides)
    return result
