"""What a ScaledObject's trigger asks for, and the answer from the newest table. No gRPC."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.published import COUNTS, DEMAND, KEDA_PREFIX
from forecaster.domain.quantity import QuantityError, parse_quantity
from forecaster.publish.values import HOLD, METRICS, NEUTRAL, NotKnown, NotNamed, OfferedValue
from forecaster.serving.answers import MetricRequest, NotThere, answer, moment_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime, timedelta

    from forecaster.publish.reader import TableReader
    from forecaster.publish.values import Answer


SHORT = {metric.removeprefix("forecaster_"): metric for metric in METRICS}
"""Triggers say `demand`, `floor` or `replicas`."""


class Trigger(NamedTuple):
    """One number, what one replica carries of it, and from where on the workload counts as active."""

    asked: MetricRequest
    activation: float

    @property
    def metric_name(self) -> str:
        """What KEDA calls it in the HPA, behind a number of its own: by this name the HPA's target is ours again."""
        return KEDA_PREFIX + (self.asked.signal or self.asked.metric.removeprefix("forecaster_"))


def parse_trigger(namespace: str, scaled_object: str, metadata: Mapping[str, str]) -> Trigger | NotNamed:
    """The trigger of a ScaledObject; it reads only workloads of its own namespace.

    Metadata: `workload` (default: the ScaledObject's own name), `kind`, `metric` (default: demand), `signal` and
    `target` (for demand, both needed), `activationTarget` (default: 0). What KEDA itself reads, such as
    `scalerAddress`, is left alone.
    """
    short, signal = metadata.get("metric", "demand"), metadata.get("signal", "")
    metric = SHORT.get(short, short)
    if metric not in METRICS:
        return NotNamed(f"trigger metric {short[:64]!r}: use {', '.join(SHORT)}")
    if metric == DEMAND and not signal.isidentifier():
        return NotNamed(f"trigger signal {signal[:64]!r}: say which demand, e.g. cpu, memory or requests")
    target = _amount(metadata.get("target", "1" if metric in COUNTS else ""))
    if target is None or target <= 0:
        return NotNamed("trigger target: say what one replica carries, e.g. 500m cores or 100 requests per second")
    activation = _amount(metadata.get("activationTarget", "0"))
    if activation is None:
        return NotNamed("trigger activationTarget: a quantity is expected, e.g. 0 or 50m")
    workload = metadata.get("workload") or scaled_object
    return Trigger(MetricRequest(namespace, workload, metadata.get("kind", ""), metric, signal, target), activation)


def _amount(text: str) -> float | None:
    """A Kubernetes quantity that is not negative."""
    try:
        value = parse_quantity(text).as_float()
    except QuantityError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


KEEPING = frozenset({NEUTRAL, HOLD})
"""Values that stand for a present count, not for demand."""


class TriggerValues:
    """The trigger's number and whether there is anything to do."""

    def __init__(self, reader: TableReader, clock: Callable[[], datetime], stale_after: timedelta | None) -> None:
        self._reader = reader
        self._clock = clock
        self._stale_after = stale_after

    def value(self, trigger: Trigger) -> Answer | NotThere:
        """The number now, or why there is none."""
        table = self._reader.table
        if table is None:
            return NotKnown(self._reader.fault)
        return answer(table, trigger.asked, moment_at(table, self._clock(), self._stale_after))


def active(trigger: Trigger, value: OfferedValue) -> bool:
    """Does the workload have, or soon have, more to do than the trigger's activation?

    Demand is that at the lead time, so a workload at zero is woken before its load arrives. A count that is kept for
    want of knowledge stays active whatever the activation: ignorance scales nothing to zero.
    """
    return value.value > (0.0 if value.source in KEEPING else trigger.activation)
