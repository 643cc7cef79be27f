"""Texts and facts of a row from policies, targets and decisions, beside its numbers."""

from __future__ import annotations

from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.policy_numbers import stated_numbers
from forecaster.domain.signal import Measured, Unknown
from forecaster.domain.workload import Workload
from forecaster.horizontal.decide import Decisions
from forecaster.horizontal.inputs import USUAL
from forecaster.horizontal.row import (
    CHECKED,
    EVENT,
    FIRST_NUMBER,
    GONE,
    IMPOSSIBLE,
    KNOWN,
    NO_RULES,
    NONE,
    READY,
    REPLICAS,
    SILENCE,
    DecidedRow,
    DecidedTarget,
    RuleNumbers,
)
from forecaster.horizontal.sentences import unseen_sentence
from forecaster.horizontal.targets import PodTarget, Unusable, stated_pod, targets_of
from forecaster.horizontal.terms import UNREADABLE_TERMS, Terms


def unread_row(workload: Workload) -> DecidedRow:
    """Return the row of a workload of which no rule and no target is known."""
    return DecidedRow(NO_RULES, autoscaler=workload.autoscaler.name if workload.autoscaler else "")


def stated_row(workload: Workload, policy: HorizontalPolicy, terms: Terms) -> DecidedRow:
    """Return what policy and HPA state of a row: its rules, targets and autoscaler."""
    numbers = dict(zip((*stated_numbers(), *USUAL), terms.policy, strict=True))
    rules = RuleNumbers(
        newsvendor=terms.rules.sizing == "newsvendor",
        lowest=int(numbers["min_replicas"]),
        highest=int(numbers["max_replicas"]),
        max_sample_age=float(numbers["max_sample_age"]),
        may_sleep=policy.min_replicas == 0,
        comes_back=terms.rules.comes_back,
        survive=policy.survive,
        numbers=tuple((name, float(numbers[name])) for name in sorted(stated_numbers()) if numbers[name] > 0.0),
    )
    targets = () if terms is UNREADABLE_TERMS else tuple(map(_stated_target, targets_of(workload, policy)))
    return DecidedRow(rules, targets, autoscaler=workload.autoscaler.name if workload.autoscaler else "")


def _stated_target(target: PodTarget | Unusable) -> DecidedTarget:
    """Return the parts of a target that do not depend on measurements."""
    if isinstance(target, Unusable):
        return DecidedTarget(target.metric, note=target.note)
    signal = target.signal
    return DecidedTarget(str(signal), target=str(target), unit=signal.unit, pod=stated_pod(target))


def failure_words(decisions: Decisions, row: int) -> str:
    """Name the impossible number because of which the row has no decision."""
    inputs, code = decisions.inputs, int(decisions.failed[row])
    counts = {REPLICAS: inputs.current, READY: inputs.ready, EVENT: inputs.events.floors}
    if code in counts:
        return f"{CHECKED[code]}: {counts[code][row]} is impossible"
    if code >= FIRST_NUMBER:
        name, number = inputs.policy.number_of(code, row)
        return f"{name}: {number:g} is impossible"
    return f"{CHECKED[code]}: nothing can be computed by it"


def outage_words(decisions: Decisions, row: int) -> str:
    """Say why the floor of an outage holds: load is gone, load is back, or samples are or were missing."""
    state, limit = decisions.state, float(decisions.inputs.policy.max_sample_age[row])
    cause = state.cause[row]
    if cause == NONE:
        return ""
    if cause == SILENCE:
        columns = zip(state.signals, state.missing[:, row].tolist(), state.missing_age[:, row].tolist(), strict=True)
        missing = [(signal, code, age) for signal, code, age in columns if code != KNOWN]
        reasons = (f"{signal}: {unseen_sentence(code, signal, age, limit)}" for signal, code, age in missing)
        return "samples were missing: " + "; ".join(reasons)
    gone = state.signals[state.gone[row]]
    return f"{gone} load has gone" if cause == GONE else f"{gone} load is back after an outage"


def unmeasured_words(decisions: Decisions, row: int, target: int, measured: Measured | Unknown) -> str:
    """Say why a measurement is missing or incomplete, where its code and age do not say it."""
    code, signal = int(decisions.unseen[target, row]), decisions.inputs.rules.kinds[target].signal
    if code == KNOWN:
        return ""
    if code == IMPOSSIBLE:
        return f"what was measured, {decisions.inputs.measured[target, row]:g}, is no amount of demand"
    note = (measured.lower_bound or "no sample") if isinstance(measured, Measured) else measured.note
    age, limit = decisions.inputs.age[target, row], decisions.inputs.policy.max_sample_age[row]
    return "" if note == unseen_sentence(code, str(signal), float(age), float(limit)) else note
