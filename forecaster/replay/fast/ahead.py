"""What lanes foresee, block by block: peaks at each lane's quantile, or what is sized by their whole distribution."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.decisions.quantile import stated_quantile
from forecaster.decisions.targets import full_pod
from forecaster.replay.fast.batch import decided_targets
from forecaster.replay.fast.worth import Group, Worth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forecaster.domain.policy import Policy
    from forecaster.domain.signal import Signal
    from forecaster.replay.fast.asking import Kind
    from forecaster.replay.fast.numbers import Counts, Floats
    from forecaster.replay.foresight import Foresight
    from forecaster.replay.lane import Lane
    from forecaster.replay.sight import Sight


@dataclass(frozen=True, slots=True)
class AheadOf:
    """The lanes of a chunk; their policies differ in what is a number of a lane only."""

    lanes: Sequence[Lane]
    sight: Sight

    def peaks(self, signal: Signal, span: slice, quantile: float | None = None) -> Floats:
        """[minute, lane] forecast peaks, each lane at its own quantile unless one is given; NaN where there is none."""
        found = np.full((span.stop - span.start, len(self.lanes)), np.nan)
        for foresight, policy, places, rows in self._alike():
            peak = foresight.peak(signal, quantile or stated_quantile(policy.horizontal), span)
            if peak is not None:
                allowed = self.sight.foreseeable(signal, policy, span)[:, rows]
                found[:, places] = np.where(allowed, peak[:, rows], np.nan)
        return found

    def worths(self, kinds: Sequence[Kind], span: slice) -> list[Worth]:
        """What each target is sized by."""
        return [self._worth(i, kind.signal, span) for i, kind in enumerate(kinds)]

    def _worth(self, target: int, signal: Signal, span: slice) -> Worth:
        in_pods, groups = np.full((span.stop - span.start, len(self.lanes)), np.nan), []
        for foresight, policy, places, rows in self._alike():
            pod = np.array([self._full_pod(place, target) for place in places])
            measured = self.sight.measured(signal, policy, span)[:, rows]
            in_pods[:, places] = measured / pod
            if signal not in foresight.values:
                continue
            values, foreseeable = foresight.values[signal][span], self.sight.foreseeable(signal, policy, span)[:, rows]
            groups.append(
                Group(
                    places=np.array(places, np.int64),
                    rows=rows,
                    levels=foresight.levels,
                    price=1.0 - stated_quantile(policy.horizontal),
                    share=(1.0 + policy.horizontal.headroom) / pod,
                    values=values,
                    measured=measured,
                    known=foreseeable & ~np.isnan(measured + values[:, rows, 0]),
                )
            )
        return Worth(groups, in_pods)

    def _full_pod(self, place: int, target: int) -> float:
        lane = self.lanes[place]
        if lane.policy is None:
            raise TypeError("a lane without a policy is not sized by newsvendor")
        return full_pod(decided_targets(lane)[target], lane.policy.horizontal.peak_target)

    def _alike(self) -> Iterator[tuple[Foresight, Policy, list[int], Counts]]:
        """Lanes that read one foresight at one quantile: their places and rows."""
        groups: dict[tuple[int, float], list[int]] = defaultdict(list)
        for place, lane in enumerate(self.lanes):
            if lane.policy is not None and lane.foresight is not None:
                groups[id(lane.foresight), stated_quantile(lane.policy.horizontal)].append(place)
        for places in groups.values():
            first = self.lanes[places[0]]
            if first.policy is not None and first.foresight is not None:
                yield first.foresight, first.policy, places, np.array([self.lanes[i].row for i in places], np.int64)
