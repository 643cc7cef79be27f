"""Read the JSON of the HPA vectors into values of forecaster.hpa. Times are seconds; zero is `EPOCH`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from forecaster.domain.quantity import milli_quantity
from forecaster.hpa.behavior import Behavior, PastRecommendation, ScaleEvent
from forecaster.hpa.limits import Growth
from forecaster.hpa.manifest import behavior_of
from forecaster.hpa.observation import Observation, ScaleSubresource, ScaleUnread
from forecaster.hpa.pods import HpaPod, PodContainer, ReadyCondition
from forecaster.hpa.proposals import Tolerance, Unmeasured
from forecaster.hpa.samples import (
    Answer,
    ContainerUsage,
    ObjectMetric,
    PodMetrics,
    PodSample,
    read_external_values,
    read_pod_usage,
    read_pod_values,
)
from forecaster.hpa.selectors import parse_selector, selector_text
from forecaster.hpa.spec import (
    Controller,
    CrossVersionObjectReference,
    FeatureGates,
    HpaMetricTarget,
    HpaSpec,
    MetricSpec,
)
from forecaster.hpa.state import HpaCondition, HpaState, MetricStatus

Json = dict[str, Any]
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
DEFAULTS = Controller()
RESOURCE_SOURCES = {"Resource", "ContainerResource"}


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def seconds(amount: float | None) -> timedelta | None:
    return None if amount is None else timedelta(seconds=amount)


# --- rules -----------------------------------------------------------------------------------------------------------


def given_rules(rules: Json | None) -> Json | None:
    """One direction of `behavior` as a manifest has it."""
    if rules is None:
        return None
    tolerance, policies = rules.get("tolerance_milli"), rules.get("policies")
    return {
        "stabilizationWindowSeconds": rules.get("stabilization_window_s"),
        "selectPolicy": rules.get("select_policy"),
        "policies": None if policies is None else [policy(p) for p in policies],
        "tolerance": None if tolerance is None else str(milli_quantity(tolerance)),
    }


def policy(raw: Json) -> Json:
    return {"type": raw["type"], "value": raw["value"], "periodSeconds": raw["period_s"]}


def behavior(raw: Json | None) -> Behavior | None:
    if raw is None:
        return None
    return behavior_of({"scaleUp": given_rules(raw.get("scale_up")), "scaleDown": given_rules(raw.get("scale_down"))})


def tolerance(raw: Json) -> Tolerance:
    return Tolerance(up=float(raw["scale_up"]), down=float(raw["scale_down"]))


# --- memory ----------------------------------------------------------------------------------------------------------


def history(raw: list[Json]) -> tuple[PastRecommendation, ...]:
    return tuple(PastRecommendation(entry["replicas"], at(-entry["age_s"])) for entry in raw)


def events(raw: list[Json] | None) -> tuple[ScaleEvent, ...]:
    return tuple(ScaleEvent(e["change"], at(-e["age_s"]), e.get("outdated") or False) for e in raw or ())


def previous_state(raw: Json) -> HpaState:
    status = raw["previous_status"]
    last = status.get("last_scale_time_s")
    return HpaState(
        history=None if raw.get("history") is None else history(raw["history"]),
        scale_ups=events(raw.get("scale_up_events")),
        scale_downs=events(raw.get("scale_down_events")),
        conditions=tuple(HpaCondition(c["type"], c["status"], c["reason"]) for c in status.get("conditions") or ()),
        current_replicas=status["current_replicas"],
        desired_replicas=status["desired_replicas"],
        current_metrics=_stored_cpu(status),
        last_scale_time=None if last is None else at(last),
    )


def _stored_cpu(status: Json) -> tuple[MetricStatus, ...]:
    """The cpu metric of a stored status, which a few cases state under names that begin with `cpu_`."""
    percent, average = status.get("cpu_utilization_percent"), status.get("cpu_average_milli")
    return () if percent is None and average is None else (MetricStatus("Resource", "cpu", percent, average),)


# --- pods and samples ------------------------------------------------------------------------------------------------


def pod(raw: Json, labels: Json | None = None) -> HpaPod:
    ready, start = raw.get("ready"), raw.get("start_time_s")
    return HpaPod(
        name=raw["name"],
        phase=raw.get("phase") or "",
        deleting=raw.get("deleting") or False,
        start_time=None if start is None else at(start),
        ready=None if ready is None else ReadyCondition(ready["status"], at(ready["last_transition_s"])),
        containers=[container(c) for c in raw.get("containers") or ()],
        init_containers=[container(c) for c in raw.get("init_containers") or ()],
        pod_requests_milli=raw.get("pod_requests_milli"),
        overhead_milli=raw.get("overhead_milli") or {},
        labels=labels if labels is not None else raw.get("labels") or {},
    )


def container(raw: Json) -> PodContainer:
    return PodContainer(raw["name"], raw.get("requests_milli") or {}, raw.get("restart_policy") == "Always")


def samples(raw: list[Json]) -> dict[str, PodSample]:
    return {s["pod"]: sample(s) for s in raw}


def sample(raw: Json) -> PodSample:
    return PodSample(raw["value_milli"], at(raw.get("timestamp_s") or 0), timedelta(seconds=raw.get("window_s") or 0))


def pod_usage(raw: list[Json]) -> list[PodMetrics]:
    return [
        PodMetrics(
            item["pod"],
            at(item["timestamp_s"]),
            timedelta(seconds=item.get("window_s") or 0),
            [ContainerUsage(c["name"], c.get("usage_milli") or {}) for c in item.get("containers") or ()],
        )
        for item in raw
    ]


def pod_values(raw: list[Json]) -> Answer:
    return read_pod_values(
        (v["pod"], v["value_milli"], at(v.get("timestamp_s") or 0), seconds(v.get("window_s"))) for v in raw
    )


def object_value(value_milli: int | None) -> Answer:
    if value_milli is None:
        return Unmeasured("no_samples", "no object value")
    return ObjectMetric(value_milli)


# --- the object ------------------------------------------------------------------------------------------------------


def metric(raw: Json) -> MetricSpec:
    described = raw.get("described_object")
    target = raw.get("target") or {}
    return MetricSpec(
        source=raw["source"],
        name=raw.get("resource") or raw.get("metric") or "",
        target=HpaMetricTarget(
            target.get("type") or "",
            target.get("average_utilization_percent"),
            target.get("average_value_milli"),
            target.get("value_milli"),
        ),
        container=raw.get("container") or "",
        described_object=None if described is None else reference(described),
    )


def reference(raw: Json) -> CrossVersionObjectReference:
    return CrossVersionObjectReference(raw["kind"], raw["name"], raw.get("api_version") or "")


def hpa(raw: Json) -> HpaSpec:
    return HpaSpec(
        scale_target=reference(raw["scale_target"]),
        max_replicas=raw["max_replicas"],
        metrics=tuple(metric(m) for m in raw["metrics"]),
        min_replicas=raw.get("min_replicas"),
        behavior=behavior(raw.get("behavior")),
        name=raw["name"],
    )


def controller(raw: Json, gates: Json | None = None) -> Controller:
    gates = gates or {}
    return Controller(
        tolerance=raw.get("tolerance", DEFAULTS.tolerance),
        downscale_stabilization=timedelta(seconds=raw.get("downscale_stabilization_s", 300)),
        cpu_initialization_period=timedelta(seconds=raw.get("cpu_initialization_period_s", 300)),
        initial_readiness_delay=timedelta(seconds=raw.get("initial_readiness_delay_s", 30)),
        growth=Growth(float(raw.get("scale_up_limit_factor", 2)), float(raw.get("scale_up_limit_minimum", 4))),
        gates=FeatureGates(
            scale_to_zero=gates.get("HPAScaleToZero", False),
            configurable_tolerance=gates.get("HPAConfigurableTolerance", True),
            pod_level_resources=gates.get("PodLevelResources", True),
        ),
    )


# --- state of the cluster ---------------------------------------------------------------------------------------------


def observation(raw: Json) -> Observation:
    faults = raw.get("faults") or {}
    return Observation(
        scale=scale(raw["scale"], faults),
        pods=[pod(p) for p in raw["pods"]],
        answers=[answer(m, raw["metrics_api"], faults) for m in raw["hpa"]["metrics"]],
        other_selectors=[
            parse_selector(selector_text({"matchLabels": labels})) for labels in raw.get("other_hpa_selectors") or ()
        ],
        write_conflicts=faults.get("scale_update_conflicts") or 0,
        write_refused=faults.get("scale_update_fails") or False,
    )


def scale(raw: Json, faults: Json) -> ScaleSubresource | ScaleUnread:
    if faults.get("scale_get_fails"):
        return ScaleUnread("the scale subresource was not answered")
    return ScaleSubresource(raw["spec_replicas"], raw["status_replicas"], raw["selector"])


def answer(raw: Json, api: Json, faults: Json) -> Answer:
    """Answer of one metric's API: its own values where listed by name, else the common ones."""
    source = raw["source"]
    if source in RESOURCE_SOURCES:
        if faults.get("resource_api_fails"):
            return Unmeasured("api_failed", "resource metrics API")
        return read_pod_usage(pod_usage(api.get("resource") or []), raw["resource"], raw.get("container") or "")
    by_metric = api.get("by_metric") or {}
    values = by_metric.get(raw.get("metric"), api)
    if values.get("fails") or faults.get("external_api_fails" if source == "External" else "custom_api_fails"):
        return Unmeasured("api_failed", f"{source} metrics API")
    if source == "Pods":
        return pod_values(values.get("pods") or [])
    if source == "External":
        return read_external_values(values.get("external_values_milli") or [])
    return object_value(values.get("object_value_milli"))
