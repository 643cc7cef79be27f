"""Answers to the suites of the cluster's own rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forecaster.vertical.cluster_rules import limit_range
from forecaster.vertical.cluster_rules.manifest import limit_range_item_of, read_spec, taint_of
from forecaster.vertical.cluster_rules.node import Node, Occupancy, Resident
from forecaster.vertical.cluster_rules.node_fit import fit
from forecaster.vertical.cluster_rules.pod import pod_limits, pod_requests
from forecaster.vertical.cluster_rules.qos import (
    MemoryUser,
    eviction_order,
    exclusive_cpus,
    oom_score_adj,
    qos_of,
)
from forecaster.vertical.cluster_rules.quota import Quota, Scope, charge, charged_with, unstated
from forecaster.vertical.cluster_rules.resize import resize
from forecaster.vertical.cluster_rules.resource_list import parsed, texts
from forecaster.vertical.cluster_rules.server import Server
from forecaster.vertical.cluster_rules.validation import defaulted, with_early_defaults, with_late_defaults
from tests.oracles.oom_score import tie_broken
from tests.vectors.vertical_comparison import Json, Suite, exact, listed, quantities

if TYPE_CHECKING:
    from forecaster.vertical.cluster_rules.pod import Pod, Requirements

ASSUMED_SERVER = "1.35"
"""Version of the API server for resize cases that name none, according to the suite."""


def pod(given: Json, status: Json | None = None, labels: Json | None = None) -> Pod:
    """The vectors write a bare spec, and call the priority class and the system by shorter names."""
    spec = {**given, "priorityClassName": given.get("priorityClass"), "os": {"name": given.get("os")}}
    return read_spec(spec, {"labels": labels or {}}, status or {})


def qos_class(given: Json) -> str:
    return str(qos_of(pod(given["pod"], {"qosClass": given.get("recordedClass")})))


def defaulting(given: Json) -> Json:
    if "resources" in given:
        whole = defaulted(pod({"containers": [{"name": "c", "resources": given["resources"]}]}))
        return {**block(whole.containers[0].resources), "qos": str(qos_of(whole))}
    whole = defaulted(pod(given["pod"]))
    level = {} if whole.pod_level is None else {"podResources": block(whole.pod_level)}
    containers = {container.name: block(container.resources) for container in whole.every_container()}
    return {"containers": containers, **level, "qos": str(qos_of(whole))}


def block(resources: Requirements) -> Json:
    return {
        kind: texts(amounts)
        for kind, amounts in (("requests", resources.requests), ("limits", resources.limits))
        if amounts
    }


def oom_scores(given: Json) -> Json:
    scores = tie_broken if given["tieBreakGate"] else oom_score_adj
    return scores(pod(given["pod"]), given["nodeMemoryBytes"])


def effective_requests(given: Json) -> Json:
    whole = pod(given["pod"], given.get("status"))
    return texts(pod_requests(whole, status=given["useStatus"], overhead=not given["excludeOverhead"]))


def effective_limits(given: Json) -> Json:
    whole = pod(given["pod"], given.get("status"))
    return texts(pod_limits(whole, status=given["useStatus"], overhead=not given["excludeOverhead"]))


def limit_ranges(given: Json) -> Json:
    whole = pod(given["pod"])
    ranges = [limit_range.LimitRange(tuple(limit_range_item_of(item) for item in given["items"]))]
    if not given["applyDefaults"]:
        return {"admitted": not limit_range.refusals(whole, ranges)}
    ranges = [limit_range.stored(stored_range) for stored_range in ranges]
    whole = with_late_defaults(limit_range.with_defaults(with_early_defaults(whole), ranges))
    admitted = not limit_range.refusals(whole, ranges)
    return {"admitted": admitted, "resources": block(whole.containers[0].resources)}


def resource_quota(given: Json) -> Json:
    scopes = tuple(Scope(name) for name in given.get("scopes") or ())
    quota = Quota(parsed(given["hard"]), parsed(given["used"]), scopes)
    change = given["change"]
    old = defaulted(pod(change["old"])) if "old" in change else None
    charged = charge(quota, defaulted(pod(change["new"])), old)
    if charged.admitted:
        return {"admitted": True, "usedAfter": texts(charged_with(quota, charged.growth, 1).used)}
    missing = () if charged.admitted else tuple(unstated(quota, defaulted(pod(change["new"]))))
    return {"admitted": False} | ({"mustSpecify": list(missing)} if missing else {})


def inplace_resize(given: Json) -> Json:
    server = Server.parse(given.get("serverVersion", ASSUMED_SERVER))
    answer = resize(pod(given["old"]), pod(given["new"]), server)
    if answer.allowed:
        return {"allowed": True, "restarts": bool(answer.restarts)}
    return {"allowed": False, "rules": sorted({refusal.rule for refusal in answer.refusals})}


def same_resize(expected: Json, answered: Json) -> str:
    """A rule that is named must be the only one that refuses; `any` leaves the rules open."""
    rule = expected.get("rule")
    if answered["allowed"] or rule in {None, "any"}:
        return listed(exact)({key: value for key, value in expected.items() if key != "rule"}, answered)
    return exact({"allowed": expected["allowed"], "rules": [rule]}, answered)


def evicted(given: Json) -> list[str]:
    users = [
        MemoryUser(user["name"], user["usageBytes"], user["requestBytes"], user["priority"]) for user in given["pods"]
    ]
    return [user.name for user in eviction_order(users)]


def static_cpu(given: Json) -> Json:
    exclusive = exclusive_cpus(defaulted(pod(given)))
    static = given["cpuManagerPolicy"] == "static" and given["kubeletReservesCpu"]
    return exclusive if static else dict.fromkeys(exclusive, 0)


def node_fit(given: Json) -> Json:
    nodes = [
        Node(
            node["name"],
            parsed(node["allocatable"]),
            node.get("labels") or {},
            tuple(taint_of(taint) for taint in node.get("taints") or ()),
            node.get("unschedulable", False),
        )
        for node in given["nodes"]
    ]
    residents = [
        Resident.of(defaulted(pod(resident["pod"], labels=resident.get("labels"))), resident["node"])
        for resident in given["existing"]
    ]
    placed = fit(defaulted(pod(given["pod"], labels=given["podLabels"])), given["count"], Occupancy(nodes, residents))
    return {"fits": placed.count, "placed": dict(placed.placed)}


def only_listed(expected: Any, answered: Any) -> str:
    return listed(exact)(expected, answered)


SUITES: dict[str, Suite] = {
    "k8s-defaulting": Suite(defaulting, quantities),
    "k8s-eviction-order": Suite(evicted, exact),
    "k8s-inplace-resize": Suite(inplace_resize, same_resize),
    "k8s-limit-range": Suite(limit_ranges, quantities),
    "k8s-node-fit": Suite(node_fit, exact),
    "k8s-oom-score-adj": Suite(oom_scores, only_listed),
    "k8s-pod-limits": Suite(effective_limits, quantities),
    "k8s-pod-requests": Suite(effective_requests, quantities),
    "k8s-qos-class": Suite(qos_class, exact),
    "k8s-resource-quota": Suite(resource_quota, quantities),
    "k8s-static-cpu": Suite(static_cpu, exact),
}
