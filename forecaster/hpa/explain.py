"""Aims of an HPA, and the steps of one pass, in sentences.

Every sentence is made from the values of a pass; no rule is applied a second time.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import NamedTuple

from forecaster.domain.amounts import counted
from forecaster.domain.quantity import QuantityFormat, milli_quantity
from forecaster.hpa.behavior import ScalingPolicy, ScalingRules, allowed_by_policy
from forecaster.hpa.limits import Limited, growth_limit, windows
from forecaster.hpa.observation import Observation, ScaleSubresource, total_of
from forecaster.hpa.outcome import Pass
from forecaster.hpa.proposals import CombinedProposal, MetricProposal, Unmeasured
from forecaster.hpa.samples import Answer
from forecaster.hpa.spec import SHIPPED, Controller, HpaSpec, MetricSpec, tolerance_of
from forecaster.hpa.state import ConditionType, HpaState, find_condition
from forecaster.hpa.wording import STABILIZATION

RESOURCE_SOURCES = frozenset({"Resource", "ContainerResource"})
_CONDITIONS: tuple[ConditionType, ...] = ("AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero")


class PassExplanation(NamedTuple):
    """One sentence for the pass as a whole, and one for each step of it."""

    summary: str
    steps: tuple[str, ...] = ()


class _Story(NamedTuple):
    """One pass with everything that went in."""

    spec: HpaSpec
    observation: Observation
    before: HpaState
    outcome: Pass
    now: datetime
    controller: Controller
    current: int


def explain(
    spec: HpaSpec,
    observation: Observation,
    before: HpaState,
    outcome: Pass,
    now: datetime,
    controller: Controller = SHIPPED,
) -> PassExplanation:
    """The pass that `reconcile` made of this spec, observation and state at `now`."""
    scale = observation.scale
    if not isinstance(scale, ScaleSubresource):
        return PassExplanation(f"At the next sync your HPA does nothing: {_message(outcome, 'AbleToScale')}.")
    story = _Story(spec, observation, before, outcome, now, controller, scale.spec_replicas)
    if outcome.desired.branch != "metrics":
        return PassExplanation(f"At the next sync your HPA {_without_metrics(story)}.")
    recommendation, limited = outcome.desired.recommendation, outcome.desired.limited
    if recommendation is None or limited is None:
        return PassExplanation(_blocked(story), tuple(_metric_steps(story)))
    steps = (*_metric_steps(story), *_limit_steps(story, recommendation, limited))
    return PassExplanation(_summary(story, recommendation.metric, limited), steps)


def aims(spec: HpaSpec) -> tuple[str, ...]:
    """Return the aim of each metric of the spec, in order; the largest of their proposals wins."""
    return tuple(_aim(metric) for metric in spec.metrics)


def _aim(metric: MetricSpec) -> str:
    target = metric.target
    where = f" of container {metric.container}" if metric.container else ""
    if target.average_utilization_percent is not None and target.average_value_milli is None:
        return f"each pod uses about {target.average_utilization_percent} % of its requested {metric.name}{where}"
    described = metric.described_object
    on = f" on {described.kind} {described.name}" if described else ""
    if _is_total(metric):
        return f"{metric.name}{on} is about {target_amount(metric, target.value_milli or 0)} in total"
    each = target_amount(metric, target.average_value_milli or 0)
    return f"{metric.name}{on}{where} is about {each} for each pod"


def _is_total(metric: MetricSpec) -> bool:
    """Whether HPA rules §8.3 apply: External looks at the average first, Object at the type."""
    if metric.source == "External":
        return metric.target.average_value_milli is None
    return metric.source == "Object" and metric.target.type == "Value"


def _without_metrics(story: _Story) -> str:
    """A pass that looks at no metric."""
    if story.outcome.desired.branch == "disabled":
        return "does nothing: the target has 0 replicas, which switches scaling off; it will say ScalingDisabled"
    least, most = story.spec.bounds.min_replicas, story.spec.max_replicas
    bound = f"maxReplicas {most}" if story.current > most else f"minReplicas {least}"
    return (
        f"goes from {story.current} to {bound} in one step, looking at no metric and no policy; "
        f"it will say {_reason(story.outcome, 'AbleToScale')}"
    )


def _blocked(story: _Story) -> str:
    """A pass that could not make a recommendation."""
    message, reason = _message(story.outcome, "ScalingActive"), _reason(story.outcome, "ScalingActive")
    return f"At the next sync your HPA keeps {pods(story.current)}: {message}; it will say {reason}."


def _summary(story: _Story, place: int, limited: Limited) -> str:
    """The credited metric, what held it back, what the status will say."""
    desired = story.outcome.desired
    metric, answer, proposal = story.spec.metrics[place], story.observation.answers[place], desired.proposals[place]
    clauses = [
        f"At the next sync your HPA will see {_reading(metric, answer, proposal, story.current)}",
        _tolerance_clause(story, proposal),
        _stabilization_clause(limited),
        _clamp_clause(story, limited),
        f"it will {_move(story.current, desired.replicas)} and say {_main_reason(story.outcome)}",
    ]
    return "; ".join(clause for clause in clauses if clause) + "."


def _reading(metric: MetricSpec, answer: Answer, proposal: MetricProposal | Unmeasured, current: int) -> str:
    """Return a reading and its proposal: `5.2 cores / 500m = 11 pods`, `260 % of … / 70 % × 4 pods = 15 pods`."""
    if isinstance(proposal, Unmeasured):
        return f"no answer ({proposal.message}), which blocks scaling down"
    target = metric.target
    percent, aim = proposal.utilization_percent, target.average_utilization_percent
    if percent is not None and aim is not None:
        # Where pods without samples or readiness count otherwise, another number is multiplied.
        of_all = proposal.hold is None and math.ceil(percent / aim * current) == proposal.replicas
        used = f"{percent} % of requested {metric.name} in use / {aim} %" + (f" × {pods(current)}" if of_all else "")
        return f"{used} = {pods(proposal.replicas)}{_hold(proposal)}"
    goal = target.value_milli if _is_total(metric) else target.average_value_milli
    quotient = f"{amount(metric, total_of(answer) or 0)} / {target_amount(metric, goal or 0)}"
    return f"{quotient} = {pods(proposal.replicas)}{_hold(proposal)}"


def _hold(proposal: MetricProposal) -> str:
    match proposal.hold:
        case "tolerance":
            return f" (ratio {proposal.ratio:.4g} is within the tolerance: no change)"
        case "direction":
            return " (counting pods that are not ready or have no sample turns the direction around: no change)"
        case None:
            return ""


def _tolerance_clause(story: _Story, proposal: MetricProposal | Unmeasured) -> str:
    if isinstance(proposal, Unmeasured) or proposal.hold is not None:
        return ""
    tolerance = tolerance_of(story.spec.behavior, story.controller)
    return f"tolerance {tolerance.up if proposal.ratio > 1.0 else tolerance.down:g} does not apply"


def _stabilization_clause(limited: Limited) -> str:
    if limited.stabilization == "ReadyForNewScale":
        return ""
    return f"stabilization makes it {limited.stabilized} ({limited.stabilization})"


def _clamp_clause(story: _Story, limited: Limited) -> str:
    """Return the limit between the stabilised and the desired count."""
    match limited.clamp:
        case "ScaleUpLimit":
            kind = "growth limit" if story.spec.behavior is None else "scale-up policy"
            return f"{kind} allows {limited.replicas}"
        case "ScaleDownLimit":
            return f"scale-down policy allows {limited.replicas}"
        case "TooManyReplicas":
            return f"maxReplicas is {story.spec.max_replicas}"
        case "TooFewReplicas":
            return f"minReplicas is {story.spec.bounds.min_replicas}"
        case "DesiredWithinRange":
            return ""


def _metric_steps(story: _Story) -> list[str]:
    """One step per metric, in order."""
    readings = zip(story.spec.metrics, story.observation.answers, story.outcome.desired.proposals, strict=False)
    return [
        f"{metric.source} {metric.name}: {_reading(metric, answer, proposal, story.current)}"
        for metric, answer, proposal in readings
    ]


def _limit_steps(story: _Story, recommendation: CombinedProposal, limited: Limited) -> list[str]:
    """The steps after the recommendation, with the numbers behind them."""
    spec = story.spec
    conditions = [find_condition(story.outcome.conditions, kind) for kind in _CONDITIONS]
    texts = [f"{condition.type}={condition.status} ({condition.reason})" for condition in conditions if condition]
    return [
        f"recommendation: the largest proposal, {pods(recommendation.replicas)}",
        f"stabilization: {_stabilization_step(story, limited)}",
        *_rate_steps(story, limited),
        f"bounds: minReplicas {spec.bounds.min_replicas}, maxReplicas {spec.max_replicas}",
        f"conditions: {', '.join(texts)}",
    ]


def _stabilization_step(story: _Story, limited: Limited) -> str:
    if story.spec.behavior is None:
        window = f"window {seconds(story.controller.downscale_stabilization)} down"
    else:
        up, down = windows(story.spec.behavior, story.controller.downscale_stabilization)
        window = f"windows {seconds(up)} up and {seconds(down)} down"
    if limited.stabilization == "ReadyForNewScale":
        return f"{window}, nothing held back"
    return f"{window}: {STABILIZATION[limited.stabilization].message}, {pods(limited.stabilized)}"


def _rate_steps(story: _Story, limited: Limited) -> list[str]:
    """Return the limit of each policy in the direction taken; empty where the size stays."""
    behavior, before = story.spec.behavior, story.before
    rising = limited.stabilized > story.current
    if limited.stabilized == story.current or (behavior is None and not rising):
        return []
    if behavior is None:
        largest = growth_limit(story.current, story.controller.growth)
        return [f"growth: without behavior at most {largest} in this pass"]
    rules = behavior.scale_up if rising else behavior.scale_down
    allowed = allowed_by_policy(story.current, rules, before.scale_ups, before.scale_downs, story.now, up=rising)
    return [f"policies {'up' if rising else 'down'}: {_policies(rules, allowed)}"]


def _policies(rules: ScalingRules, allowed: list[int]) -> str:
    if rules.select_policy == "Disabled":
        return "Disabled, no move in this direction"
    each = [f"{_policy(policy)} allows {limit}" for policy, limit in zip(rules.policies, allowed, strict=True)]
    return f"{', '.join(each)}; selectPolicy {rules.select_policy}"


def _policy(policy: ScalingPolicy) -> str:
    size = f"{policy.value} %" if policy.type == "Percent" else pods(policy.value)
    return f"{size} per {seconds(policy.period)}"


def _move(current: int, desired: int) -> str:
    return f"keep {pods(current)}" if desired == current else f"go from {current} to {desired}"


def _main_reason(outcome: Pass) -> str:
    """Return the most informative reason: the limit where one binds, else the ability to scale."""
    limited = find_condition(outcome.conditions, "ScalingLimited")
    binds = limited is not None and limited.status == "True"
    return _reason(outcome, "ScalingLimited" if binds else "AbleToScale")


def _reason(outcome: Pass, kind: ConditionType) -> str:
    condition = find_condition(outcome.conditions, kind)
    return "" if condition is None else condition.reason


def _message(outcome: Pass, kind: ConditionType) -> str:
    condition = find_condition(outcome.conditions, kind)
    return "" if condition is None else condition.message


def amount(metric: MetricSpec, milli: int) -> str:
    """A measured amount: `5.2 cores`, `3Gi` of memory, or the plain number."""
    if metric.source in RESOURCE_SOURCES and metric.name == "cpu":
        return f"{_decimal(milli)} cores"
    text = target_amount(metric, milli)
    return _decimal(milli) if text.endswith("m") and abs(milli) > 1000 else text  # noqa: PLR2004 - one whole unit


def target_amount(metric: MetricSpec, milli: int) -> str:
    """A target as the manifest writes it: `500m`, `1Gi`, `1k`."""
    binary = metric.source in RESOURCE_SOURCES and metric.name == "memory"
    return str(milli_quantity(milli, QuantityFormat.BINARY_SI if binary else QuantityFormat.DECIMAL_SI))


def pods(count: int) -> str:
    """`1 pod`, `2 pods`."""
    return counted(count, "pod")


def seconds(duration: timedelta) -> str:
    """`300 s`."""
    return f"{duration.total_seconds():g} s"


def _decimal(milli: int) -> str:
    """Thousandths as a decimal number, exact."""
    sign, whole, rest = "-" if milli < 0 else "", *divmod(abs(milli), 1000)
    return f"{sign}{whole}.{rest:03}".rstrip("0").rstrip(".")
