"""What a ScaledObject's trigger asks for. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.published import COUNTS, DEMAND, KEDA_PREFIX
from forecaster.domain.quantity import QuantityError, parse_quantity
from forecaster.serving.asked import Asked
from forecaster.serving.values import METRICS, SIGNALS, NotNamed

if TYPE_CHECKING:
    from collections.abc import Mapping

SHORT = {metric.removeprefix("forecaster_"): metric for metric in METRICS}
"""Triggers say `demand`, `floor` or `replicas`."""


class Trigger(NamedTuple):
    """One number, what one replica carries of it, and from where on the workload counts as active."""

    asked: Asked
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
    if metric == DEMAND and signal not in SIGNALS:
        return NotNamed(f"trigger signal {signal[:64]!r}: use {', '.join(SIGNALS)}")
    target = _amount(metadata.get("target", "1" if metric in COUNTS else ""))
    if target is None or target <= 0:
        return NotNamed("trigger target: say what one replica carries, e.g. 500m cores or 100 requests per second")
    activation = _amount(metadata.get("activationTarget", "0"))
    if activation is None:
        return NotNamed("trigger activationTarget: a quantity is expected, e.g. 0 or 50m")
    workload = metadata.get("workload") or scaled_object
    return Trigger(Asked(namespace, workload, metadata.get("kind", ""), metric, signal, target), activation)


def _amount(text: str) -> float | None:
    """A Kubernetes quantity that is not negative."""
    try:
        value = parse_quantity(text).as_float()
    except QuantityError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
