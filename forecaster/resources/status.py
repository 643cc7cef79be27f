"""The status of a PredictiveAutoscaler, made from the decisions about its workload. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple

import msgspec

from forecaster.domain.amounts import amount
from forecaster.domain.decision import Hold, Recommendation, forecast_state
from forecaster.domain.layers import Layer, Origin
from forecaster.domain.policy import Policy
from forecaster.kube.objects import Wire
from forecaster.resources.objects import AutoscalerResource

CONDITION_MESSAGE_MAX = 1000


def described(text: str) -> msgspec.Meta:
    """A field and its sentence in the definition."""
    return msgspec.Meta(description=text)


class Condition(Wire, frozen=True):
    """One condition, in the style of the HPA's."""

    type: Annotated[str, described("Ready, ForecastActing or Limited.")]
    status: Annotated[str, described("True, False or Unknown.")]
    reason: Annotated[str, described("Why, in one word.")]
    message: Annotated[str, described("Why, in a sentence.")] = ""
    last_transition_time: Annotated[datetime | None, described("When the status became what it is.")] = None
    observed_generation: Annotated[int, described("Generation of the specification that it is about.")] = 0


class AutoscalerStatus(Wire, frozen=True):
    """Last observations and decisions of the service's leader."""

    observed_generation: Annotated[int, described("Generation of the specification that this is about.")] = 0
    mode: Annotated[str, described("The mode in force, by all layers of the policy.")] = ""
    current_replicas: Annotated[int | None, described("Replicas that there are.")] = None
    recommended_replicas: Annotated[int | None, described("Replicas that are recommended; absent while held.")] = None
    forecast_peak: Annotated[str, described("The forecast peak of the signal that needs most replicas.")] = ""
    gate: Annotated[str, described("State of the forecast: learning, observing, acting or held back.")] = ""
    reason: Annotated[str, described("Reason of the latest decision.")] = ""
    message: Annotated[str, described("The latest decision in a sentence.")] = ""
    conditions: Annotated[tuple[Condition, ...], described("Ready, ForecastActing, Limited.")] = ()

    def condition(self, kind: str) -> Condition | None:
        """Return one condition."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    def material(self) -> object:
        """Part that is written at once when it changes; the rest, which changes in every cycle, now and then."""
        facts = [(condition.type, condition.status, condition.reason) for condition in self.conditions]
        numbers = (self.observed_generation, self.mode, self.current_replicas, self.recommended_replicas)
        return *numbers, self.gate, self.reason, *facts


@dataclass(frozen=True, slots=True)
class Decided:
    """Facts about the workload of a PredictiveAutoscaler after a cycle."""

    recommendation: Recommendation | None
    """None: the workload does not exist."""
    policy: Policy
    refused: Sequence[tuple[Layer, str]] = ()
    origins: Sequence[Origin] = ()
    """Origins of the settings that its policy states above the defaults."""
    disabled: Collection[str] = ()
    """Modes that write to the cluster and are not enabled in the settings."""
    refusal: tuple[str, str] | None = None
    """Reason, as a word and a sentence, why the workload is unchanged although its policy asks for a change."""


class ConditionState(NamedTuple):
    """State of one condition."""

    status: str
    reason: str
    message: str = ""


NOT_FOUND = ConditionState("Unknown", "TargetNotFound")
"""State of what a workload that does not exist cannot have."""


def status_of(
    resource: AutoscalerResource, decided: Decided, before: AutoscalerStatus, now: datetime
) -> AutoscalerStatus:
    """Return the status after a cycle; conditions with an unchanged status keep the instants of `before`."""
    recommendation = decided.recommendation
    states = {
        "Ready": _ready(resource, decided),
        "ForecastActing": _acting(recommendation) if recommendation else NOT_FOUND,
        "Limited": _limited(recommendation) if recommendation else NOT_FOUND,
    }
    conditions = tuple(
        condition_after(kind, state, resource.generation, before.condition(kind), now) for kind, state in states.items()
    )
    if recommendation is None:
        return AutoscalerStatus(resource.generation, decided.policy.mode, conditions=conditions)
    return AutoscalerStatus(
        observed_generation=resource.generation,
        mode=decided.policy.mode,
        current_replicas=recommendation.replicas_now,
        recommended_replicas=None if isinstance(recommendation.replicas, Hold) else recommendation.recommended_replicas,
        forecast_peak=_peak(recommendation),
        gate=_state(recommendation),
        reason=str(recommendation.replicas.reason),
        message=recommendation.replicas.message[:CONDITION_MESSAGE_MAX],
        conditions=conditions,
    )


def _state(recommendation: Recommendation) -> str:
    """State of the forecast of a workload, in the words of every other face."""
    return forecast_state(recommendation.gate_reason, foreseen=any(view.forecast for view in recommendation.signals))[0]


def _ready(resource: AutoscalerResource, decided: Decided) -> ConditionState:
    """Return whether its policy is in force."""
    refused = "; ".join(why for layer, why in decided.refused if layer.origin == resource.layer.origin)
    if resource.fault or refused:
        return ConditionState("False", "PolicyRefused", resource.fault or f"It is left out of the policy: {refused}.")
    if decided.recommendation is None:
        return ConditionState("False", "TargetNotFound", f"No {resource.target.kind} {resource.target} is known.")
    if decided.refusal:
        return ConditionState("False", _word(decided.refusal[0]), decided.refusal[1])
    if (mode := decided.policy.mode) in decided.disabled:
        return ConditionState("False", "ModeNotEnabled", f"Mode {mode} needs {mode}.enabled: true in the settings.")
    if mode == "floor" and not decided.recommendation.autoscaler:
        return ConditionState("False", "NoSingleHpa", f"Floors need one HPA; {resource.target} has none or several.")
    over = [leaf for leaf in decided.origins if any(origin == resource.layer.origin for _, origin in leaf.over)]
    stands = "; ".join(f"{leaf.path} {leaf.value} by {leaf.origin}" for leaf in over)
    overridden, in_force = f"Stated by layers above it: {stands}.", "Its policy is in force."
    return ConditionState("True", *(("PartlyOverridden", overridden) if over else ("PolicyInForce", in_force)))


def _acting(recommendation: Recommendation) -> ConditionState:
    """Whether the forecast acts."""
    if isinstance(recommendation.replicas, Hold):
        return ConditionState("False", _word(str(recommendation.replicas.reason)), recommendation.replicas.message)
    if all(view.forecast is None for view in recommendation.signals):
        return ConditionState("False", "NoForecast", recommendation.replicas.message)
    if recommendation.shadow or recommendation.gate_reason:
        why = recommendation.gate_reason or "The forecast is shown, and has no say yet."
        return ConditionState("False", _word(_state(recommendation)), why)
    return ConditionState("True", "ForecastActing", "The forecast may raise the count.")


def _limited(recommendation: Recommendation) -> ConditionState:
    """Whether a clamp changed the count, and the last that did."""
    limits = [clamp for clamp in recommendation.clamps if clamp.before != clamp.after and clamp.rule != "forecast"]
    if not limits:
        return ConditionState("False", "WithinLimits", "No clamp changed the count.")
    return ConditionState("True", _word(limits[-1].rule), limits[-1].why)


def condition_after(
    kind: str, state: ConditionState, generation: int, old: Condition | None, now: datetime
) -> Condition:
    """A condition; while its status stays, it is so since the instant of the `old` one."""
    same = old is not None and old.status == state.status and old.last_transition_time is not None
    since = old.last_transition_time if old is not None and same else now.replace(microsecond=0)
    return Condition(kind, state.status, state.reason, state.message[:CONDITION_MESSAGE_MAX], since, generation)


def _peak(recommendation: Recommendation) -> str:
    """Say the peak of the signal that asks for most replicas; to two digits, so that it stays while little changes."""
    known = [view for view in recommendation.signals if view.forecast]
    if not known:
        return ""
    view = max(known, key=lambda view: view.forecast_replicas or 0)
    peak = view.forecast.peak if view.forecast else None
    return f"{view.signal} {amount(None if peak is None else float(f'{peak:.2g}'), view.unit)}"


def _word(reason: str) -> str:
    """A reason as conditions have them.

    >>> _word("no-data"), _word("blast radius")
    ('NoData', 'BlastRadius')
    """
    return "".join(part.capitalize() for part in re.split(r"[^a-zA-Z]+", reason))


def news(before: AutoscalerStatus, after: AutoscalerStatus) -> list[Condition]:
    """Return the conditions with a changed status or reason: each is worth an Event. Empty for a first status."""
    return [new for new in after.conditions if new.type != "Limited" and is_news(before.condition(new.type), new)]


def is_news(old: Condition | None, new: Condition) -> bool:
    """Whether status or reason is another one; a first status is where it is False."""
    return new.status == "False" if old is None else (old.status, old.reason) != (new.status, new.reason)
