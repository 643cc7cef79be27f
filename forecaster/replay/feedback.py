"""Effects of shortage and fresh pods on the load of a replay: retried requests, pods that are slow at first.

Without feedback, demand is as recorded, whatever the pods did. With feedback, a sync period brings new and waiting
demand; the pods carry what they can, and a share of the rest is retried in the next period. Used CPU is at most the
carried load, so that HPAs and decisions see the saturation that they would see; requests are counted as they arrive.
Forecasts are those of the recorded demand.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from forecaster.domain.signal import CPU
from forecaster.horizontal.codes import KNOWN
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.numbers import Counts, Floats, millis
from forecaster.replay.hpas import Usage
from forecaster.replay.pods import Pods


@dataclass(frozen=True, slots=True)
class Feedback:
    """Reaction of load to pods.

    Raises:
        ValueError: a share is outside of 0 to 1, or the time is negative.
    """

    returns: float = 0.0
    """Share of unserved demand that is retried in the next sync period; 1 is a queue."""
    cold: timedelta = timedelta()
    """Time for which a newly ready pod carries less: caches, pools, a compiler that warms up."""
    cold_share: float = 1.0
    """Share of its capacity that a pod has while it is cold."""

    def __post_init__(self) -> None:
        for name, share in (("returns", self.returns), ("cold_share", self.cold_share)):
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"{name} {share:g} must be between 0 and 1")
        if self.cold < timedelta():
            raise ValueError(f"cold {self.cold} must not be negative")


NO_FEEDBACK = Feedback()


def load_of(feedback: Feedback, capacity: Floats, signal: str, sync: timedelta) -> ReplayLoad:
    """Return the load of rows with pods that carry so much of a signal."""
    if feedback == NO_FEEDBACK:
        return RecordedLoad(capacity)
    return AnsweringLoad(feedback, capacity, signal, -(-feedback.cold // sync))


class RecordedLoad:
    """Demand as it was recorded, whatever the pods did."""

    def __init__(self, capacity: Floats) -> None:
        self._capacity = capacity

    def missing(self, pods: Pods, coming: Floats) -> Floats:
        """Return the demand above the capacity of ready pods."""
        missing = coming - pods.ready * self._capacity
        return np.maximum(missing, 0.0, out=missing)

    def used(self, usage: dict[str, Usage], *, earlier: bool) -> dict[str, Usage]:  # noqa: ARG002  an answering load reads it
        """Return the usage as recorded."""
        return usage

    def measured(self, inputs: Inputs) -> Inputs:
        """Return the inputs as recorded."""
        return inputs

    def end_minute(self) -> None:
        """Do nothing: recorded load has no state."""


class AnsweringLoad:
    """Demand that answers to a shortage, and pods that are slow at first; [row] each."""

    def __init__(self, feedback: Feedback, capacity: Floats, signal: str, cold: int) -> None:
        self._feedback, self._capacity, self._signal = feedback, capacity, signal
        self._waiting = np.zeros(len(capacity))
        self._ready: Counts | None = None
        self._young: deque[Floats] = deque(maxlen=cold)
        self._seen: list[Floats] = []
        self._minutes: deque[Floats | None] = deque([None, None], maxlen=2)
        """Mean measurements of the last two minutes, older first."""

    def missing(self, pods: Pods, coming: Floats) -> Floats:
        """Return the unserved part of new and waiting demand; a share of it keeps waiting."""
        offered = coming + self._waiting
        carried = np.minimum(offered, self._carries(pods))
        missing = offered - carried
        self._waiting = self._feedback.returns * missing
        self._seen.append(carried if self._signal == CPU else offered)
        return missing

    def _carries(self, pods: Pods) -> Floats:
        """Pods that became ready lately carry less; those that are removed meanwhile are taken for warm ones."""
        before = pods.ready if self._ready is None else self._ready
        self._ready = pods.ready
        if self._young.maxlen:
            self._young.append(np.maximum(pods.ready - before, 0).astype(np.float64))
        young = np.minimum(np.sum(self._young, axis=0), pods.ready) if self._young else 0.0
        return np.asarray((pods.ready - (1.0 - self._feedback.cold_share) * young) * self._capacity)

    def used(self, usage: dict[str, Usage], *, earlier: bool) -> dict[str, Usage]:
        """Return usage with the mean of the minute for the signal that fills pods, where it was recorded at all."""
        mean = self._minutes[0 if earlier else 1]
        if mean is None or self._signal not in usage:
            return usage
        return {**usage, self._signal: Usage(millis(mean), usage[self._signal].known)}

    def measured(self, inputs: Inputs) -> Inputs:
        """Return the inputs of a decision with the load that answers to pods."""
        mean = self._minutes[1]
        if mean is None:
            return inputs
        values = inputs.measured.copy()
        for target, kind in enumerate(inputs.rules.kinds):
            if kind.signal == self._signal:
                values[target] = np.where(inputs.unseen[target] == KNOWN, mean, values[target])
        return replace(inputs, measured=values)

    def end_minute(self) -> None:
        """Set the minute's measurement to the mean of its sync periods."""
        self._minutes.append(np.mean(self._seen, axis=0))
        self._seen.clear()


ReplayLoad = RecordedLoad | AnsweringLoad
"""Load on the pods of all rows, sync period by sync period."""
