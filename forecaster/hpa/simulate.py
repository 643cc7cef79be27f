"""Many passes of one HPA under a load that stays as it is.

Every pass is `reconcile`; between passes only this is assumed: a write takes effect at once, the pods are alike and
ready at the next pass, and totals spread evenly over them. Start-up time is left out, so a real cluster is slower.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from forecaster.hpa.controller import SHIPPED, Controller
from forecaster.hpa.observation import Observation, Scale
from forecaster.hpa.outcome import Pass
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.spec import HpaSpec
from forecaster.hpa.state import NEW, ScalingState
from forecaster.hpa.totals import observe_totals, requests_of, totals_of


class Step(NamedTuple):
    """One pass: when, from how many replicas, what was seen, and what came of it."""

    at: datetime
    replicas: int
    observation: Observation
    before: ScalingState
    outcome: Pass


def carry_on(
    spec: HpaSpec,
    seen: Observation,
    start: datetime,
    passes: int,
    controller: Controller = SHIPPED,
    state: ScalingState = NEW,
) -> Iterator[Step]:
    """Passes one sync period apart: the first over `seen` as it is, the others over its totals."""
    totals, requests = totals_of(spec, seen), requests_of(seen)
    at, replicas = start, seen.scale.spec_replicas if isinstance(seen.scale, Scale) else 0
    for _ in range(passes):
        step = Step(at, replicas, seen, state, reconcile(spec, seen, state, at, controller))
        yield step
        at, state, replicas = at + controller.sync_period, step.outcome.state, size_after(step)
        seen = observe_totals(spec, replicas, totals, requests, at)


def size_after(step: Step) -> int:
    """The replicas of the target after a pass; one that wrote nothing leaves them."""
    return step.outcome.desired.replicas if step.outcome.desired.written else step.replicas
