"""The recording rules of deploy/rules, made of the very queries that they stand in for.

Plain rule files, and the same groups as PrometheusRule objects for clusters with the Prometheus Operator. Alerts are
written by hand, in `forecaster-alerts.yaml`; only their object is made here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import yaml

from deploy.generate.kustomized import DEPLOY
from forecaster.kube.rights import NAMESPACE
from forecaster.sources import promql
from forecaster.sources.presets import PRESETS
from forecaster.sources.promql import OWNER_JOIN, RAW
from forecaster.sources.queries import Queries

if TYPE_CHECKING:
    from pathlib import Path

RULES = DEPLOY / "rules"
_FRESH = timedelta(minutes=2)
_COARSE = timedelta(minutes=5)
_INTERVAL = "1m"

_HEADER = """\
# Recording rules for forecaster: the queries that it would ask otherwise, one series per workload.
# Made by `python -m deploy.generate`; change the queries, not this file.
"""
ALERTS = "forecaster-alerts"
_ALERTS_HEADER = """\
# Recording rules and alerts about forecaster itself: docs/runbooks.md.
# Made by `python -m deploy.generate` of deploy/rules/forecaster-alerts.yaml; change that.
"""
_LEVELS = {
    "forecaster:workload_memory_bytes:sum": "memory",
    "forecaster:workload_replicas:spec": "replicas",
    "forecaster:workload_replicas:ready": "ready_replicas",
    "forecaster:workload_pod_requests:avg": "pod_requests",
    "forecaster:workload_pod_limits:avg": "pod_limits",
}
"""Name of the recorded series and the query that it records."""


def workload_groups() -> list[dict[str, Any]]:
    """Groups for everything that comes from cAdvisor and kube-state-metrics.

    Pods are joined to workloads once, in the first rule; rules of one group are evaluated in order, so those after it
    see its result. Five-minute rates are a group of their own, which Prometheus evaluates beside the first.
    """
    fresh = [
        _rule("forecaster:pod_workload:owner", OWNER_JOIN, _FRESH),
        _rate("workload_cpu_cores", RAW["cpu"], _FRESH),
        _rate("workload_cpu_pods", RAW["cpu_pods"], _FRESH),
    ]
    levels = [_rule(record, RAW[name], _FRESH) for record, name in _LEVELS.items()]
    return [
        _group("forecaster-workloads", [*fresh, *levels]),
        _group("forecaster-workloads-5m", [_rate("workload_cpu_cores", RAW["cpu"], _COARSE)]),
    ]


def request_groups(preset: str) -> list[dict[str, Any]]:
    """Groups for the request rates of one preset; load the file of at most one of them."""
    query = PRESETS[preset].query
    rules = [_rate("workload_requests", query, window) for window in (_FRESH, _COARSE)]
    return [_group(f"forecaster-requests-{preset}", rules)]


def groups() -> dict[str, list[dict[str, Any]]]:
    """The groups of every file, by its name without ending."""
    requests = {f"forecaster-requests-{name}": request_groups(name) for name in PRESETS if name != "recorded"}
    return {"forecaster-workloads": workload_groups()} | requests


def files() -> dict[Path, str]:
    """All rule files with their texts: each as Prometheus loads it, and as an object of the Prometheus Operator."""
    alerts = yaml.safe_load((RULES / f"{ALERTS}.yaml").read_text(encoding="utf-8"))["groups"]
    made = {
        DEPLOY / "components" / "monitoring" / "alerts.yaml": _ALERTS_HEADER
        + _object(ALERTS, alerts, namespace=NAMESPACE)
    }
    for name, each in groups().items():
        made[RULES / f"{name}.yaml"] = _HEADER + _yaml({"groups": each})
        made[RULES / "operator" / f"{name}.yaml"] = _HEADER + _object(name, each)
    return made


def _object(name: str, groups: list[dict[str, Any]], **metadata: str) -> str:
    known_as = {"name": name} | metadata
    head = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": known_as}
    return _yaml(head | {"spec": {"groups": groups}})


def _rate(name: str, query: str, window: timedelta) -> dict[str, str]:
    return _rule(f"forecaster:{name}:rate{promql.duration(window)}", query, window)


def _rule(record: str, query: str, window: timedelta) -> dict[str, str]:
    return {"record": record, "expr": Queries(preset="recorded").rendered(query, window)}


def _group(name: str, rules: list[dict[str, str]]) -> dict[str, Any]:
    return {"name": name, "interval": _INTERVAL, "rules": rules}


class _Dumper(yaml.SafeDumper):
    """Writes expressions of several lines as such."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _yaml(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000)
