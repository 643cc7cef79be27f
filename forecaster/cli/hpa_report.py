"""What `forecaster hpa explain` prints: sentences about one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.hpa.cautions import cautions
from forecaster.hpa.explain import aims, explain
from forecaster.hpa.observation import ScaleSubresource
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.state import NEW_HPA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from forecaster.hpa.observation import Observation
    from forecaster.hpa.spec import Controller, HpaSpec


def explained(
    spec: HpaSpec,
    seen: Observation,
    now: datetime,
    controller: Controller,
    others: Sequence[HpaSpec],
    vertical: frozenset[str],
) -> Iterator[str]:
    """The aims, the next pass in one sentence and in steps, and the cautions."""
    told = explain(spec, seen, NEW_HPA, reconcile(spec, seen, NEW_HPA, now, controller), now, controller)
    yield f"Aims: {'; '.join(aims(spec))}. The largest proposal wins."
    yield told.summary
    yield from (f"  - {step}" for step in told.steps)
    replicas = seen.scale.spec_replicas if isinstance(seen.scale, ScaleSubresource) else 0
    found = cautions(spec, replicas, controller=controller, pods=seen.pods, others=others, vertical_resources=vertical)
    yield from (f"! {caution}" for caution in found)


def aims_and_cautions(
    spec: HpaSpec, controller: Controller, others: Sequence[HpaSpec], vertical: frozenset[str]
) -> Iterator[str]:
    """What can be said of a manifest without pods: at its lowest count."""
    yield f"Aims: {'; '.join(aims(spec))}. The largest proposal wins."
    yield "Give --replicas N and --usage METRIC=QUANTITY, or --pods FILE, for what it does at the next sync."
    lowest = max(1, spec.bounds.min_replicas)
    found = cautions(spec, lowest, controller=controller, others=others, vertical_resources=vertical)
    yield from (f"! {caution}" for caution in found)
