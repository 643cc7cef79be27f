"""The result of a pass, and what its steps look at (HPA rules §3)."""

from datetime import datetime
from typing import Literal, NamedTuple

from forecaster.hpa.combine import Recommendation
from forecaster.hpa.conditions import Conditions, find_condition
from forecaster.hpa.controller import Controller
from forecaster.hpa.limits import Limited
from forecaster.hpa.observation import Observation, Scale
from forecaster.hpa.proposals import Proposal
from forecaster.hpa.spec import HpaSpec
from forecaster.hpa.state import ScalingState
from forecaster.hpa.unmeasured import Unmeasured
from forecaster.hpa.wording import Action, ErrorKind, Event

Branch = Literal["unread", "disabled", "above_max", "below_min", "metrics"]


class Desired(NamedTuple):
    """What the pass decided, and how.

    `replicas` is the status' desired count after the pass, `written` whether the scale was written. `branch` names the
    way taken in step 5. `proposals` belong to the metrics in order (empty where none was computed), `recommendation`
    and `limited` are None where the pass did not get that far. `error` is how the controller counts the pass.
    """

    replicas: int
    written: bool
    branch: Branch
    action: Action = "none"
    error: ErrorKind = "none"
    events: tuple[Event, ...] = ()
    proposals: tuple[Proposal | Unmeasured, ...] = ()
    recommendation: Recommendation | None = None
    limited: Limited | None = None


class Pass(NamedTuple):
    """The result of one pass; `conditions` are also part of `state`."""

    desired: Desired
    conditions: Conditions
    state: ScalingState


class Outlook(NamedTuple):
    """What every step of one pass may look at."""

    spec: HpaSpec
    observation: Observation
    scale: Scale
    state: ScalingState
    now: datetime
    controller: Controller

    @property
    def was_scaled_to_zero(self) -> bool:
        """HPA rules §3, step 5: the gate is on and this HPA itself brought the target to zero."""
        if not self.controller.gates.scale_to_zero:
            return False
        condition = find_condition(self.state.conditions, "ScaledToZero")
        return condition is not None and condition.status == "True"
