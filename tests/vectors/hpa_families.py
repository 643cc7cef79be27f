"""One function per family of HPA vectors: the input of a case in, everything we can say about it out.

A family answers in the shape of the vectors' `expected`; the runner compares the keys that a case expects and refuses
keys that a family does not answer, so nothing is skipped silently.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from forecaster.hpa import behavior as both_ways
from forecaster.hpa import limits
from forecaster.hpa.behavior import ScaleEvent, change_since, record_scale_event
from forecaster.hpa.evaluate import MetricContext, evaluate, requested_usage, total_usage
from forecaster.hpa.manifest import SCALE_DOWN, SCALE_UP, rules_of
from forecaster.hpa.observation import Observation, ScaleSubresource
from forecaster.hpa.pods import group_pods, requests_by_pod
from forecaster.hpa.proposals import DEFAULT_TOLERANCE, MetricProposal, Unmeasured, from_average, from_utilization
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.samples import ExternalValues, SampledPods, read_external_values, read_pod_usage
from forecaster.hpa.spec import CrossVersionObjectReference, HpaMetricTarget, HpaSpec, MetricSpec
from forecaster.hpa.state import HpaState
from forecaster.hpa.validate import validate
from tests.oracles.hpa_metrics import metric_action, metric_error, status_quantity
from tests.vectors import hpa_wire as wire
from tests.vectors.hpa_wire import EPOCH, RESOURCE_SOURCES, Json, at, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.hpa.behavior import Behavior, ScalingRules
    from forecaster.hpa.outcome import Pass
    from forecaster.hpa.samples import Answer
    from forecaster.hpa.state import MetricStatus


def replica_calculation(given: Json) -> Json:
    current = given["current_replicas"]
    status = given.get("status_replicas")
    situation = MetricContext(
        current,
        current if status is None else status,
        [wire.pod(p) for p in given.get("pods") or ()],
        wire.tolerance(given["tolerance"]),
        EPOCH,
        wire.controller(given.get("config") or {}),
    )
    metric = wire.metric(given["metric"])
    proposal = evaluate(metric, _single_answer(given), situation)
    if isinstance(proposal, Unmeasured):
        return {"error": proposal.cause}
    if metric.source in RESOURCE_SOURCES:
        reported = {"utilization_percent": proposal.utilization_percent, "average_milli": proposal.average_milli}
    else:
        shared = proposal.average_milli
        reported = {"usage_milli": proposal.value_milli if shared is None else shared}
    return {"replicas": proposal.replicas, **reported}


def _single_answer(given: Json) -> Answer:
    metric = given["metric"]
    match metric["source"]:
        case "Pods":
            return wire.pod_values(given.get("pod_values") or [])
        case "Object":
            return wire.object_value(given.get("object_value_milli"))
        case "External":
            return read_external_values(given.get("external_values_milli") or [])
        case _:
            items = wire.pod_usage(given.get("resource_samples") or [])
            return read_pod_usage(items, metric["resource"], metric.get("container") or "")


def pod_grouping(given: Json) -> Json:
    groups = group_pods(
        [wire.pod(p) for p in given["pods"]],
        wire.samples(given["samples"]),
        given["resource"],
        EPOCH,
        seconds(given["config"]["cpu_initialization_period_s"]),
        seconds(given["config"]["initial_readiness_delay_s"]),
    )
    names = {group: sorted(getattr(groups, group)) for group in ("unready", "missing", "ignored")}
    return {"ready_count": groups.ready, **names}


def pod_requests(given: Json) -> Json:
    pods = [wire.pod(p) for p in given["pods"]]
    gate = given["pod_level_resources_gate"]
    requests = requests_by_pod(pods, given["resource"], given.get("container") or "", pod_level_resources=gate)
    return {"error": requests.cause} if isinstance(requests, Unmeasured) else {"requests_milli": requests}


def usage_ratio(given: Json) -> Json:
    samples = wire.samples(given["samples"])
    if given["function"] == "average":
        target = given["target_average_milli"]
        return _ratio(from_average(total_usage(samples), len(samples), target, 1, 1, DEFAULT_TOLERANCE))
    sums = requested_usage(samples, given.get("requests_milli") or {})
    target = given["target_utilization_percent"]
    return _ratio(from_utilization(sums.usage_milli, sums.request_milli, target, sums.samples, 1, DEFAULT_TOLERANCE))


def _ratio(proposal: MetricProposal | Unmeasured) -> Json:
    if isinstance(proposal, Unmeasured):
        return {"error": proposal.cause}
    return {
        "ratio": proposal.ratio,
        "utilization_percent": proposal.utilization_percent,
        "average_milli": proposal.average_milli,
    }


def sample_reading(given: Json) -> Json:
    items = given["items"]
    answer = _read(given, items)
    if isinstance(answer, Unmeasured):
        return {"error": answer.cause}
    taken = {"timestamp_s": items[0]["timestamp_s"]}
    if isinstance(answer, ExternalValues):
        return {"values_milli": list(answer.values_milli), **taken}
    if isinstance(answer, SampledPods):
        return {"samples": [_sample(pod, sample) for pod, sample in answer.samples.items()], **taken}
    return {"value_milli": answer.value_milli, **taken}


def _read(given: Json, items: list[Json]) -> Answer:
    match given["source"]:
        case "Pods":
            return wire.pod_values(items)
        case "Object":
            return wire.object_value(items[0]["value_milli"] if items else None)
        case "External":
            return read_external_values([item["value_milli"] for item in items])
        case _:
            return read_pod_usage(wire.pod_usage(items), given["resource"], given.get("container") or "")


def _sample(pod: str, sample: Any) -> Json:
    return {
        "pod": pod,
        "value_milli": sample.value_milli,
        "timestamp_s": (sample.timestamp - EPOCH).total_seconds(),
        "window_s": sample.window.total_seconds(),
    }


def limit_legacy(given: Json) -> Json:
    factor, minimum = float(given["scale_up_limit_factor"]), float(given["scale_up_limit_minimum"])
    growth = limits.growth_limit(given["current_replicas"], limits.Growth(factor, minimum))
    replicas, reason = limits.bound(given["desired_replicas"], given["min_replicas"], given["max_replicas"], growth)
    return {"replicas": replicas, "reason": reason}


def limit_behavior(given: Json) -> Json:
    current = given["current_replicas"]
    ups, downs = wire.events(given.get("scale_up_events")), wire.events(given.get("scale_down_events"))
    if given["function"] == "scale_up_limit":
        rules = rules_of(wire.given_rules(given.get("rules")), SCALE_UP)
        return {"limit": both_ways.scale_up_limit(current, rules, ups, downs, EPOCH)}
    if given["function"] == "scale_down_limit":
        rules = rules_of(wire.given_rules(given.get("rules")), SCALE_DOWN)
        return {"limit": both_ways.scale_down_limit(current, rules, ups, downs, EPOCH)}
    behavior = wire.behavior({"scale_up": given.get("scale_up"), "scale_down": given.get("scale_down")})
    assert behavior is not None
    replicas, reason = both_ways.rate_limit(
        given["desired_replicas"],
        current,
        given["min_replicas"],
        given["max_replicas"],
        behavior,
        ups,
        downs,
        EPOCH,
    )
    return {"replicas": replicas, "reason": reason}


def stabilize_legacy(given: Json) -> Json:
    replicas, stored = limits.stabilize_down(
        wire.history(given["history"]), given["recommendation"], seconds(given["downscale_stabilization_s"]), EPOCH
    )
    return {"replicas": replicas, "history_length": len(stored), "history_replicas": [r.replicas for r in stored]}


def stabilize_behavior(given: Json) -> Json:
    replicas, stored = both_ways.stabilize(
        wire.history(given["history"]),
        given["recommendation"],
        given["current_replicas"],
        seconds(given["scale_up_window_s"]),
        seconds(given["scale_down_window_s"]),
        EPOCH,
    )
    return {"replicas": replicas, "history_replicas": [r.replicas for r in stored]}


def scale_event_log(given: Json) -> Json:
    events = wire.events(given["events"])
    change = abs(given["new_replicas"] - given["previous_replicas"])
    counted = change_since(events, at(-given["count_period_s"]))
    if given.get("rules") is not None:
        default = SCALE_UP if given["direction"] == "up" else SCALE_DOWN
        rules = rules_of(wire.given_rules(given.get("rules")), default)
        events = record_scale_event(events, change, EPOCH, rules.policies)
    after = [{"change": event.change, "outdated": event.outdated} for event in events]
    return {"change_in_period_before_store": counted, "events_after": after}


def quantity_of_status(given: Json) -> Json:
    quantity = status_quantity(given["resource"], given["average_milli"])
    return {"value_milli": quantity.milli, "format": str(quantity.format), "string": str(quantity)}


def behavior_defaults(given: Json) -> Json:
    if given["direction"] == "both":
        return {"behavior": _behavior(wire.behavior(given.get("behavior")))}
    default = SCALE_UP if given["direction"] == "scale_up" else SCALE_DOWN
    return {"rules": _rules(rules_of(wire.given_rules(given.get("rules")), default))}


def _behavior(behavior: Behavior | None) -> Json | None:
    if behavior is None:
        return None
    return {"scale_up": _rules(behavior.scale_up), "scale_down": _rules(behavior.scale_down)}


def _rules(rules: ScalingRules) -> Json:
    window, tolerance = rules.stabilization_window, rules.tolerance
    return {
        "stabilization_window_s": None if window is None else window.total_seconds(),
        "select_policy": rules.select_policy,
        "policies": [{"type": p.type, "value": p.value, "period_s": p.period.total_seconds()} for p in rules.policies],
        "tolerance_milli": None if tolerance is None else round(tolerance * 1000),
    }


def trace(given: Json) -> Json:
    """The recommendations reach a whole pass as an External metric of one per replica, with no tolerance."""
    metric = MetricSpec("External", "recommendation", HpaMetricTarget("AverageValue", average_value_milli=1000))
    spec = HpaSpec(
        CrossVersionObjectReference("Deployment", "d"),
        given["max_replicas"],
        (metric,),
        given["min_replicas"],
        wire.behavior(given.get("behavior")),
    )
    controller = wire.controller(given | {"tolerance": 0.0})
    current, state, desired = given["start_replicas"], HpaState(), []
    for time_s, recommendation in zip(given["times_s"], given["recommendations"], strict=True):
        observed = Observation(
            ScaleSubresource(current, current, "app=d"), (), (ExternalValues((recommendation * 1000,)),)
        )
        outcome = reconcile(_without_tolerances(spec), observed, state, at(time_s), controller)
        state, current = outcome.state, outcome.desired.replicas
        desired.append(current)
    return {"desired_replicas": desired}


def _without_tolerances(spec: HpaSpec) -> HpaSpec:
    if spec.behavior is None:
        return spec
    up, down = (replace(rules, tolerance=None) for rules in (spec.behavior.scale_up, spec.behavior.scale_down))
    return replace(spec, behavior=replace(spec.behavior, scale_up=up, scale_down=down))


def reconcile_once(given: Json) -> Json:
    spec, before = wire.hpa(given["hpa"]), wire.previous_state(given)
    controller = wire.controller(given["controller"], given.get("feature_gates"))
    desired, conditions, after = reconcile(spec, wire.observation(given), before, EPOCH, controller)
    by_source = list(zip([m.source for m in spec.metrics], desired.proposals, strict=False))
    cpu = [m.utilization_percent for m in after.current_metrics if m and m.name == "cpu"]
    return {
        "desired_replicas": desired.replicas,
        "scale_written": desired.written,
        "conditions": [{"type": c.type, "status": c.status, "reason": c.reason} for c in conditions],
        "reconcile_action": desired.action,
        "reconcile_error": desired.error,
        "metric_actions": {source: metric_action(p, before.current_replicas) for source, p in by_source},
        "metric_errors": {source: metric_error(p) for source, p in by_source},
        "cpu_utilization_percent": next((percent for percent in cpu if percent is not None), None),
        "current_metrics": [_metric_status(m) for m in after.current_metrics],
        "status_current_replicas": after.current_replicas,
        "events": [event.reason for event in desired.events],
        "history_after": [r.replicas for r in after.history or ()],
        "scale_up_events_after": [e.change for e in after.scale_ups],
        "scale_down_events_after": [e.change for e in after.scale_downs],
        "status_written": desired.status_written,
    }


def _metric_status(metric: MetricStatus | None) -> Json | None:
    if metric is None:
        return None
    numbers = {
        "utilization_percent": metric.utilization_percent,
        "average_milli": metric.average_milli,
        "value_milli": metric.value_milli,
    }
    return {"source": metric.source} | {name: number for name, number in numbers.items() if number is not None}


def trajectory(given: Json) -> Json:
    return Trajectory(given).run()


class Trajectory:
    """Many passes of one controller; the state of a pass is the previous state of the next."""

    def __init__(self, given: Json) -> None:
        self.given = given
        self.hpa = dict(given["hpa"])
        self.pods: dict[str, Json] = {}
        first = given["steps"][0]["spec_replicas"]
        self.state = HpaState(current_replicas=first, desired_replicas=first)
        self.controller = wire.controller(given["controller"], given["feature_gates"])

    def run(self) -> Json:
        passes = [self.step(step) for step in self.given["steps"]]
        return {
            "desired_replicas": [p.desired.replicas for p in passes],
            "scale_written": [p.desired.written for p in passes],
            "reconcile_error": [p.desired.error for p in passes],
            "able_to_scale": [_reason(p, "AbleToScale") for p in passes],
            "scaling_active": [_reason(p, "ScalingActive") for p in passes],
            "scaling_limited": [_reason(p, "ScalingLimited") for p in passes],
            "scaled_to_zero": [_reason(p, "ScaledToZero") for p in passes],
            "history_end": [{"replicas": r.replicas, "at_s": _s(r.at)} for r in self.state.history or ()],
            "scale_up_events_end": [_moved(e) for e in self.state.scale_ups],
            "scale_down_events_end": [_moved(e) for e in self.state.scale_downs],
        }

    def step(self, step: Json) -> Pass:
        self.hpa |= {key: step[key] for key in ("min_replicas", "max_replicas") if step.get(key) is not None}
        self.pods |= {pod["name"]: pod | {"containers": self.given["containers"]} for pod in step.get("pods_set") or ()}
        for name in step.get("pods_remove") or ():
            del self.pods[name]
        outcome = reconcile(wire.hpa(self.hpa), self.look(step), self.state, at(step["at_s"]), self.controller)
        self.state = outcome.state
        return outcome

    def look(self, step: Json) -> Observation:
        faults = step.get("faults") or {}
        api = {
            "resource": [self.item(pod, *usage) for pod, usage in (step.get("usage") or {}).items()],
            "pods": [{"pod": pod, "value_milli": value} for pod, value in (step.get("pod_values") or {}).items()],
            "object_value_milli": step.get("object_value_milli"),
            "external_values_milli": step.get("external_values_milli"),
        }
        scale = {"spec_replicas": step["spec_replicas"], "status_replicas": step["status_replicas"]}
        return Observation(
            wire.scale(scale | {"selector": self.given["selector"]}, faults),
            [wire.pod(pod, self.given["pod_labels"]) for pod in self.pods.values()],
            [wire.answer(metric, api, faults) for metric in self.hpa["metrics"]],
            write_conflicts=faults.get("scale_update_conflicts") or 0,
            write_refused=faults.get("scale_update_fails") or False,
        )

    def item(self, pod: str, value: int, timestamp_s: float) -> Json:
        container = {"name": self.given["containers"][0]["name"], "usage_milli": {self.given["resource"]: value}}
        window = self.given["window_s"]
        return {"pod": pod, "timestamp_s": timestamp_s, "window_s": window, "containers": [container]}


def _reason(outcome: Pass, kind: str) -> str | None:
    return next((c.reason for c in outcome.conditions if c.type == kind), None)


def _moved(event: ScaleEvent) -> Json:
    return {"change": event.change, "at_s": _s(event.at), "outdated": event.outdated}


def _s(moment: Any) -> float:
    seconds_: float = (moment - EPOCH).total_seconds()
    return seconds_


def spec_validation(given: Json) -> Json:
    faults = validate(given["spec"], scale_to_zero=given["scale_to_zero_gate"])
    first = {"error_field": faults[0].path} if faults else {}
    return {"valid": not faults, "all_errors": [f"{fault.path}: {fault.type}" for fault in faults], **first}


FAMILIES: dict[str, Callable[[Json], Json]] = {
    "behavior_defaults": behavior_defaults,
    "limit_behavior": limit_behavior,
    "limit_legacy": limit_legacy,
    "pod_grouping": pod_grouping,
    "pod_requests": pod_requests,
    "reconcile": reconcile_once,
    "replica_calculation": replica_calculation,
    "sample_reading": sample_reading,
    "scale_event_log": scale_event_log,
    "spec_validation": spec_validation,
    "stabilize_behavior": stabilize_behavior,
    "stabilize_legacy": stabilize_legacy,
    "status_quantity": quantity_of_status,
    "trace": trace,
    "trajectory": trajectory,
    "usage_ratio": usage_ratio,
}
