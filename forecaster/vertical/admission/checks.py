"""Rules of docs/admission.md about a completed pod: one function per rule, which returns its findings."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from forecaster.vertical.admission.context import compute_only, least_needed, most_needed, pods_until_stall
from forecaster.vertical.cluster_rules import limit_range
from forecaster.vertical.cluster_rules.qos import computed_qos, exclusive_cpus
from forecaster.vertical.cluster_rules.quota import Quota, charge, charged_with, matches, times_fitting, unstated, usage
from forecaster.vertical.cluster_rules.resource_list import text_of, texts
from forecaster.vertical.cluster_rules.validation import faults

if TYPE_CHECKING:
    from forecaster.vertical.admission.context import AdmissionContext, ProposedRequirements
    from forecaster.vertical.cluster_rules.pod import Pod

LIMIT_RANGE, VALIDATION, QOS, QUOTA = "LimitRange", "API validation", "QoS class", "ResourceQuota"
STATIC_CPU = "static CPU"


class Verdict(StrEnum):
    """Result of a check, from good to bad; `unknown` where the facts that the rule needs are missing."""

    PASSES = "passes"
    NOTE = "note"
    """Allowed, and worth reading."""
    UNKNOWN = "unknown"
    REFUSED = "refused"


class Finding(NamedTuple):
    """A rule, its result, and the sentence with the values."""

    rule: str
    verdict: Verdict
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}" if self.message else f"{self.rule}: {self.verdict}"


def passes(rule: str, message: str = "") -> Finding:
    """Return a finding without an objection."""
    return Finding(rule, Verdict.PASSES, message)


def note(rule: str, message: str) -> Finding:
    """Allowed, but worth saying."""
    return Finding(rule, Verdict.NOTE, message)


def unknown(rule: str, message: str) -> Finding:
    """Facts are missing."""
    return Finding(rule, Verdict.UNKNOWN, message)


def refused(rule: str, message: str) -> Finding:
    """The cluster would say no."""
    return Finding(rule, Verdict.REFUSED, message)


def limit_ranges(pod: Pod, proposed: ProposedRequirements, context: AdmissionContext) -> Iterator[Finding]:
    """Check containers, init containers and the pod against every LimitRange; report the defaults these add."""
    if context.limit_ranges is None:
        yield unknown(LIMIT_RANGE, "the namespace's LimitRanges are not known")
        return
    yield from (refused(LIMIT_RANGE, text) for text in limit_range.contradictions(context.limit_ranges))
    broken = limit_range.refusals(pod, context.limit_ranges, context.server)
    yield from (refused(LIMIT_RANGE, str(violation)) for violation in broken)
    if not broken:
        yield passes(LIMIT_RANGE, "" if context.limit_ranges else "the namespace has none")
    yield from _injected(pod, proposed)


def _injected(pod: Pod, proposed: ProposedRequirements) -> Iterator[Finding]:
    """Limits that are added although none is proposed: dropping a CPU limit under a maximum brings it back."""
    for container in pod.every_container():
        stated, limits = proposed.get(container.name), compute_only(container.resources.limits)
        if stated is not None and (added := {name: limits[name] for name in limits if name not in stated.limits}):
            additions = ", ".join(f"{name} {text}" for name, text in texts(added).items())
            yield note(LIMIT_RANGE, f"{container.name}: a LimitRange adds the limit {additions}")


def validation(pod: Pod, context: AdmissionContext) -> Iterator[Finding]:
    """Report the values that the API refuses in any pod."""
    refusals = faults(pod, context.server)
    yield from (refused(VALIDATION, str(refusal)) for refusal in refusals)
    if not refusals:
        yield passes(VALIDATION)


def qos(pod: Pod, before: Pod, context: AdmissionContext) -> Iterator[Finding]:
    """The class stays, unless its change is accepted; in place it can never change."""
    old, new = computed_qos(before, context.server), computed_qos(pod, context.server)
    if old == new:
        yield passes(QOS, f"stays {new}")
    elif context.accepts_qos_change and not context.in_place:
        yield note(QOS, f"changes from {old} to {new}, as accepted")
    else:
        yield refused(QOS, f"would change from {old} to {new}")


def quotas(pod: Pod, before: Pod, context: AdmissionContext) -> Iterator[Finding]:
    """Check every quota of the namespace, while the change is under way."""
    if context.quotas is None:
        yield unknown(QUOTA, "the namespace's ResourceQuotas are not known")
        return
    findings = [finding for quota in context.quotas for finding in _quota(quota, pod, before, context)]
    yield from findings
    if not findings:
        yield passes(QUOTA, "" if context.quotas else "the namespace has none")


def _quota(quota: Quota, pod: Pod, before: Pod, context: AdmissionContext) -> Iterator[Finding]:
    if not matches(quota, pod, context.server):
        return
    missing = unstated(quota, pod, context.server)
    for name, containers in missing.items():
        yield refused(QUOTA, f"{quota.name} tracks {name}, so {', '.join(containers)} must state it")
    if missing:
        return
    yield from (_resized if context.in_place else _rolled_out)(quota, pod, before, context)


def _resized(quota: Quota, pod: Pod, before: Pod, context: AdmissionContext) -> Iterator[Finding]:
    """Check a quota for a resize in place: pods are resized one after the other, and each one's growth is charged."""
    first, replicas = charge(quota, pod, before, context.server), context.rollout.replicas
    done = times_fitting(quota, first.growth, replicas) if first.admitted else 0
    if done < replicas:
        progress = f"after {done} of {replicas} pods, " if done else ""
        then = charge(charged_with(quota, first.growth, done), pod, before, context.server)
        yield from (refused(QUOTA, progress + str(refusal)) for refusal in then.refusals)


def _rolled_out(quota: Quota, pod: Pod, before: Pod, context: AdmissionContext) -> Iterator[Finding]:
    """Check a quota for a rollout: both generations are charged."""
    charged = usage(before, context.server) if matches(quota, before, context.server) else {}
    rollout = context.rollout
    for name, new in usage(pod, context.server).items():
        if name not in quota.tracked:
            continue
        old = charged.get(name, 0)
        left = quota.hard[name] - max(quota.used.get(name, 0) - rollout.replicas * old, 0)
        stalls = least_needed(rollout, old, new) > left
        text = f"{quota.name}: {name} {text_of(new, name)} a pod, hard {text_of(quota.hard[name], name)}"
        if stalls and new <= old:
            yield note(QUOTA, f"{quota.name}: {name} is used up: no new pod gets through, whatever it requests")
        elif stalls:
            fit = pods_until_stall(rollout, old, new, left)
            yield refused(QUOTA, f"{text}: the rollout would stall after {fit} of {rollout.replicas} pods")
        elif new > old and most_needed(rollout, old, new) > left:
            yield note(QUOTA, f"{text}: the quota slows the rollout down, the surge does not fit into it")


def static_cpu(pod: Pod, before: Pod, context: AdmissionContext) -> Iterator[Finding]:
    """A container that has CPUs of its own keeps them."""
    if not context.static_cpu:
        return
    had, has = exclusive_cpus(before, context.server), exclusive_cpus(pod, context.server)
    lost = [name for name, cpus in had.items() if cpus and not has.get(name)]
    yield from (refused(STATIC_CPU, f"{name} would lose its {had[name]} exclusive CPUs") for name in lost)
    if not lost:
        total = sum(has.values())
        yield passes(STATIC_CPU, f"{total} exclusive CPUs" if total else "no exclusive CPUs")
