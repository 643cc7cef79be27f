"""Answers to the suites about the VPA and pods: at admission, in the updater, after OOM kills."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from forecaster.domain.quantity import Quantity, parse_quantity
from forecaster.vertical.cluster_rules.resize import PodCondition, resize_status
from tests.oracles.vpa_admission import Boosted, StartupBoostError, boosted, container_resources
from tests.oracles.vpa_capping import (
    Capped,
    ContainerPolicy,
    StartupBoost,
    cap_for_pod,
    cap_stored,
    controlled_values,
    integer_cpu,
    policy_of,
)
from tests.oracles.vpa_in_place import InPlaceSituation, ReplicaGroup, can_evict, decide_resize, replica_group
from tests.oracles.vpa_limit_range import LimitRange, effective, scale_together
from tests.oracles.vpa_resources import (
    ZERO,
    Container,
    Recommended,
    Requirements,
    ResourceList,
    proportional_limit,
    whole,
)
from tests.oracles.vpa_updater import (
    ContainerStatus,
    EvictionRequirement,
    LastTermination,
    OomKill,
    Priority,
    Termination,
    UpdateRules,
    accepts,
    in_order,
    is_quick_oom,
    may_evict,
    observed_containers,
    oom_of_update,
    ooms_of_eviction,
    priority_of,
    retries,
)
from tests.vectors.vertical_comparison import Json, Suite, exact, listed, quantities, relative

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BOUNDS = {"target": "target", "lower": "lowerBound", "upper": "upperBound", "uncapped": "uncappedTarget"}


# --- values out of JSON and back -------------------------------------------------------------------------------------


def quantity(text: str | None) -> Quantity:
    return ZERO if text is None else parse_quantity(text)


def resource_list(raw: Json | None) -> dict[str, Quantity]:
    return {name: parse_quantity(text) for name, text in (raw or {}).items()}


def requirements(raw: Json | None) -> Requirements:
    raw = raw or {}
    return Requirements(resource_list(raw.get("requests")), resource_list(raw.get("limits")))


def containers(pod: Json) -> list[Container]:
    reported = {
        status["name"]: requirements(status["resources"])
        for status in pod.get("containerStatuses") or ()
        if status.get("resources") is not None
    }
    return [
        Container(container["name"], requirements(container.get("resources")), reported.get(container["name"]))
        for container in pod["containers"]
    ]


def recommended(raw: Sequence[Json] | None) -> list[Recommended] | None:
    if raw is None:
        return None
    return [
        Recommended(
            document["containerName"],
            **{
                field: resource_list(document[wire_name])
                for field, wire_name in _BOUNDS.items()
                if document.get(wire_name) is not None
            },
        )
        for document in raw
    ]


def policies(raw: Sequence[Json] | None) -> list[ContainerPolicy] | None:
    return None if raw is None else [policy(document) for document in raw]


def policy(raw: Json) -> ContainerPolicy:
    given: Json = {"container": raw["containerName"]}
    given |= {field: raw[field] for field in ("mode",) if raw.get(field) is not None}
    bounds = {"min_allowed": "minAllowed", "max_allowed": "maxAllowed"}
    given |= {field: resource_list(raw[wire_name]) for field, wire_name in bounds.items() if wire_name in raw}
    names = {"controlled_values": "controlledValues", "controlled_resources": "controlledResources"}
    given |= {field: raw[wire_name] for field, wire_name in names.items() if raw.get(wire_name) is not None}
    return ContainerPolicy(**given, startup_boost=boost_of(raw.get("startupBoost")))


def boost_of(raw: Json | None) -> StartupBoost | None:
    if raw is None:
        return None
    amount = raw.get("quantity")
    return StartupBoost(raw.get("type") or "", raw.get("factor"), parse_quantity(amount) if amount else None)


def limit_range(raw: Json | None) -> LimitRange | None:
    if raw is None:
        return None
    lists = [resource_list(raw[key]) if key in raw else None for key in ("min", "max", "default")]
    return LimitRange(*lists)


def seconds(amount: float) -> timedelta:
    return timedelta(seconds=amount)


def texts(values: ResourceList) -> Json:
    return {name: str(value) for name, value in values.items()}


def answer_of(recommended_: Recommended) -> Json:
    lists = {wire_name: getattr(recommended_, field) for field, wire_name in _BOUNDS.items()}
    return {"containerName": recommended_.container} | {
        key: texts(amounts) for key, amounts in lists.items() if amounts is not None
    }


# --- recommendation to pod -------------------------------------------------------------------------------------------


def integer(given: Json) -> list[Json]:
    recommendation = recommended(given["recommendation"]) or []
    return [answer_of(capped) for capped in integer_cpu(recommendation, given["annotatedContainers"])]


def policy_capping(given: Json) -> list[Json] | None:
    recommendation = recommended(given["recommendation"])
    if recommendation is None:
        return None
    most = resource_list(given.get("globalMaxAllowed"))
    return [answer_of(capped) for capped in cap_stored(recommendation, policies(given.get("policies")) or [], most)]


def policy_lookup(given: Json) -> Any:
    raw = given.get("policies") or []
    known = policies(raw) or []
    if given["question"] == "controlledValues":
        return controlled_values(given["container"], known)
    chosen = policy_of(given["container"], known)
    return None if chosen is None else next(each for each in raw if policy(each) == chosen)


def capping(given: Json) -> Json | None:
    capped = _capped(given)
    if capped is None:
        return None
    return {"recommendation": [answer_of(part) for part in capped.recommendation], "remarks": dict(capped.remarks)}


def _capped(given: Json) -> Capped | None:
    return cap_for_pod(
        recommended(given["recommendation"]),
        policies(given.get("policies")),
        containers(given["pod"]),
        pod_range=limit_range(given.get("podLimitRange")),
        container_range=limit_range(given.get("containerLimitRange")),
    )


def pod_limit_range(given: Json) -> Json:
    resource = given["resource"]
    lists = {name: {resource: parse_quantity(text)} for name, text in given["targets"].items()}
    item = limit_range(given["podLimitRange"])
    assert item is not None
    changed = scale_together(resource, lists, containers(given["pod"]), item)
    return {name: str(changed.get(name, targets[resource])) for name, targets in lists.items()}


def limit_range_merge(given: Json) -> Json | None:
    items = [
        limit_range(item)
        for document in given["limitRanges"]
        if document["namespace"] == given["namespace"]
        for item in document["limits"]
        if item["type"] == given["type"]
    ]
    merged = effective(item for item in items if item is not None)
    if merged is None:
        return None
    lists = {"min": merged.least, "max": merged.most, "default": merged.default}
    return {key: texts(amounts) for key, amounts in lists.items() if amounts is not None}


def proportional(given: Json) -> Json:
    limit = proportional_limit(
        given["resource"],
        limit=quantity(given["originalLimit"]),
        request=quantity(given["originalRequest"]),
        recommended=quantity(given["recommendedRequest"]),
        default_limit=quantity(given.get("defaultLimit")),
    )
    return {"limit": None if limit.value is None else str(limit.value), "remark": bool(limit.remark)}


def resources(given: Json) -> Json:
    recommendation, remarks = recommended(given["recommendation"]), {}
    if given.get("applyCapping") and recommendation is not None:
        capped = _capped({key: given.get(key) for key in ("recommendation", "policies", "pod")})
        assert capped is not None
        recommendation, remarks = list(capped.recommendation), dict(capped.remarks)
    container = containers(given["pod"])[0]
    written = container_resources(
        container,
        next((part for part in recommendation or () if part.container == container.name), None),
        policies(given.get("policies")) or [],
        default_limits=resource_list(given.get("containerDefaultLimit")),
        list_all=given["listAll"],
    )
    return {
        "requests": texts(written.resources.requests),
        "limits": texts(written.resources.limits),
        "remarks": [*remarks.get(container.name, []), *written.remarks],
    }


def startup_boost(given: Json) -> Json:
    boost = boost_of(given.get("startupBoost"))
    container = Container(given["container"]["name"], requirements(given["container"].get("resources")))
    most = given.get("maxAllowedCpuBoost")
    without = requirements(given["recommendation"])
    try:
        if given["gate"]:
            answer = boosted(container, without, boost, policies(given.get("policies")) or [], most=quantity(most))
        else:
            answer = Boosted(without, remembered=False)
    except StartupBoostError as error:
        return {"error": str(error)}
    request, limit = (part.get("cpu") for part in (answer.resources.requests, answer.resources.limits))
    return {
        "request": None if request is None else str(request),
        "limit": None if limit is None else str(limit),
        "remembersOriginal": answer.remembered,
    }


# --- OOM kills -------------------------------------------------------------------------------------------------------


def oom_observer(given: Json) -> list[Json]:
    if given["kind"] == "evictionEvent":
        return [_kill(kill) for kill in ooms_of_eviction(given["annotations"], _moment(given["creation"]))]
    kill = oom_of_update(status(given["old"]), status(given["new"]))
    return [] if kill is None else [_kill(kill)]


def status(side: Json) -> ContainerStatus:
    raw = side["status"]
    state = raw.get("state") or {}
    reported = raw.get("resources")
    requests = side["specRequests"] if reported is None else reported.get("requests") or {}
    return ContainerStatus(
        raw["name"],
        whole(quantity(requests.get("memory"))),
        raw.get("restartCount", 0),
        "running" in state,
        _termination(state),
        _termination(raw.get("lastState") or {}),
    )


def _termination(state: Json) -> Termination | None:
    raw = state.get("terminated")
    if raw is None:
        return None
    finished = raw.get("finishedAt")
    return Termination(raw.get("reason", ""), _moment(finished) if finished else None)


def _kill(kill: OomKill) -> Json:
    at = None if kill.at is None else kill.at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"container": kill.container, "memoryBytes": kill.memory, "t": at}


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


# --- updater ---------------------------------------------------------------------------------------------------------


def _observed(annotations: Mapping[str, str] | None) -> frozenset[str] | None:
    return observed_containers((annotations or {}).get("vpaObservedContainers"))


def update_priority(given: Json) -> Json:
    pod = given["pod"]
    urgent = priority_of(containers(pod), recommended(given["recommendation"]) or [], _observed(pod.get("annotations")))
    return {
        "outsideRecommendedRange": urgent.outside,
        "scaleUp": urgent.scale_up,
        "resourceDiff": urgent.difference,
    }


def update_decision(given: Json) -> bool:
    raw, config = given["priority"], given["config"]
    rules = UpdateRules(
        config["minChangePriority"],
        seconds(config["lifetimeThresholdSeconds"]),
        seconds(config["evictAfterOomSeconds"]),
    )
    infeasible = given["updateMode"] == "InPlace" and given.get("lastInfeasibleAttempt") is not None
    if infeasible and not retries(
        recommended(given["lastInfeasibleAttempt"]), recommended(given.get("recommendation"))
    ):
        return False
    quick = is_quick_oom(
        _ended(given.get("lastTermination")),
        _observed(given.get("annotations")),
        policies(given.get("policies")) or [],
        rules,
    )
    priority = Priority(raw["outsideRecommendedRange"], raw["scaleUp"], raw["resourceDiff"])
    age = given.get("podAgeSeconds")
    return accepts(priority, None if age is None else seconds(age), rules, quick_oom=quick)


def _ended(raw: Json | None) -> LastTermination | None:
    if raw is None:
        return None
    ago = raw.get("finishedSecondsAgo", 0)
    return LastTermination(raw.get("container", ""), raw["reason"], seconds(raw["ranSeconds"]), seconds(ago))


def update_order(given: Json) -> list[str]:
    return in_order(
        {
            name: Priority(scale_up=raw.get("scaleUp", False), difference=raw["resourceDiff"])
            for name, raw in given["priorities"].items()
        }
    )


def eviction_requirements(given: Json) -> bool:
    raw = given["evictionRequirements"]
    rules = None
    if raw is not None:
        rules = [EvictionRequirement(tuple(each["resources"]), each["changeRequirement"]) for each in raw]
    return may_evict(containers(given["pod"]), recommended(given["recommendation"]) or [], rules)


def disruption_budget(given: Json) -> Json:
    phases = [pod["phase"] for pod in given["pods"]]
    group = replica_group(
        configured=given["configuredReplicas"],
        live=len(phases),
        running=phases.count("Running"),
        tolerance=given["evictionTolerance"],
        min_replicas=given["minReplicas"],
        boosting=given.get("boostInProgress", False),
    )
    at_start = [can_evict(group, pending=phase == "Pending") for phase in phases]
    return {"canEvictAtStart": at_start, "evictionSucceedsInOrder": _evict_each(group, phases)}


def _evict_each(group: ReplicaGroup | None, phases: Sequence[str]) -> list[bool]:
    succeeded = []
    for phase in phases:
        pending = phase == "Pending"
        succeeded.append(can_evict(group, pending=pending))
        if group is not None and succeeded[-1] and not pending:
            group = group.disrupt()
    return succeeded


def _conditions(raw: Sequence[Json]) -> list[PodCondition]:
    return [PodCondition(c["type"], c.get("status", ""), c.get("reason", ""), c.get("message", "")) for c in raw]


def status_of_resize(given: Json) -> str:
    return str(resize_status(_conditions(given["conditions"])))


def inplace(given: Json) -> str:
    live, pending = given["livePods"], given.get("firstPending", False)
    group = replica_group(
        configured=given["configuredReplicas"],
        live=live,
        running=live - pending,
        tolerance=given["evictionTolerance"],
        min_replicas=given["minReplicas"],
        skip_minimum=given["skipDisruptionBudget"],
    )
    last, recommendation = (recommended(given.get(key)) for key in ("lastInfeasibleAttempt", "recommendation"))
    situation = InPlaceSituation(
        given["updateMode"],
        group,
        _conditions(given["conditions"]),
        seconds(given["secondsSinceLastAttempt"]),
        pending=pending,
        has_recommendation=given["hasRecommendation"],
        known_infeasible=last is not None and not retries(last, recommendation),
        skip_budget=given["skipDisruptionBudget"],
        restarts=given.get("firstPodRestarts", False),
    )
    return str(decide_resize(situation))


SUITES = {
    "vpa-capping": Suite(capping, quantities),
    "vpa-container-resources": Suite(resources, listed(quantities)),
    "vpa-disruption-budget": Suite(disruption_budget, exact),
    "vpa-eviction-requirements": Suite(eviction_requirements, exact),
    "vpa-inplace-decision": Suite(inplace, exact),
    "vpa-integer-cpu": Suite(integer, quantities),
    "vpa-limit-range-merge": Suite(limit_range_merge, quantities),
    "vpa-oom-observer": Suite(oom_observer, exact),
    "vpa-pod-limit-range": Suite(pod_limit_range, quantities),
    "vpa-policy-capping": Suite(policy_capping, quantities),
    "vpa-policy-lookup": Suite(policy_lookup, quantities),
    "vpa-proportional-limit": Suite(proportional, quantities),
    "vpa-resize-status": Suite(status_of_resize, exact),
    "vpa-startup-boost": Suite(startup_boost, listed(quantities)),
    "vpa-update-decision": Suite(update_decision, exact),
    "vpa-update-order": Suite(update_order, exact),
    "vpa-update-priority": Suite(update_priority, listed(relative(1e-9, 1e-9))),
}
