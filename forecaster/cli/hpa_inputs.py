"""Inputs of `forecaster hpa`: manifests, pods, answers of the metrics APIs, or totals instead of the last two."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import yaml

from forecaster.app.clock import current, instant
from forecaster.cli.streams import tell
from forecaster.domain.quantity import QuantityError, parse_quantity, right_spelling
from forecaster.errors import ConfigError, Fault, ForecasterError
from forecaster.hpa.documents import DocumentError, answers_of, newest_sample, pods_of
from forecaster.hpa.manifest import KIND, RefusedManifest, read_manifest
from forecaster.hpa.observation import POD_LABELS, SELECTOR, Observation, ScaleSubresource, observe_totals
from forecaster.hpa.spec import Controller, FeatureGates, HpaSpec
from forecaster.vertical.cluster_rules.server import Server


class InputError(ForecasterError):
    """A file or an option cannot be used; the text names it, the value and the remedy."""


def controller_of(version: str, *, scale_to_zero: bool | None = None) -> Controller:
    """The controller of a version of Kubernetes with its gates at their defaults, but for one where it is stated.

    Raises:
        ConfigError: there is no version in the text.
    """
    try:
        minor = Server.parse(version).minor
    except ValueError as error:
        raise ConfigError("command line", [Fault("--server-version", ..., str(error))]) from None
    gates = FeatureGates.of(minor)
    return Controller(
        gates=gates if scale_to_zero is None else replace(gates, scale_to_zero=scale_to_zero), minor=minor
    )


@dataclass(frozen=True, slots=True)
class StreamedHpa:
    """One HPA of a stream, and its origin where it is not written as one."""

    spec: HpaSpec
    note: str = ""

    @property
    def title(self) -> str:
        """Return its name and its origin."""
        name = f"{self.spec.namespace}/{self.spec.name}" if self.spec.namespace else self.spec.name
        return f"HPA {name}" + (f", which KEDA makes of {self.note}" if self.note else "")


def streamed(paths: Sequence[Path], controller: Controller) -> list[StreamedHpa]:
    """Return the HPAs of manifests, lists, streams and Helm's output; objects of other kinds are ignored.

    Raises:
        InputError: with every fault where the API server would refuse one, or where there is none.
    """
    if not paths:
        raise ConfigError("command line", [Fault("FILE", ..., "name a manifest, or - for standard input")])
    hpas, faults, kinds = [], [], set()
    for path in paths:
        for document in (part for outer in _documents(path) for part in _items(outer)):
            kind = document.get("kind") if isinstance(document, dict) else None
            if isinstance(kind, str) and kind not in {KIND, SCALED_OBJECT}:
                kinds.add(kind)
                continue
            parsed = _read(document, controller, scaled=kind == SCALED_OBJECT)
            if isinstance(parsed, StreamedHpa):
                hpas.append(parsed)
            else:
                faults += [f"{_named(path)}: {fault}" for fault in parsed]
    if faults:
        raise InputError("the API server would refuse this\n  " + "\n  ".join(faults))
    if not hpas:
        others = f"; there are {', '.join(sorted(kinds))}" if kinds else ""
        raise InputError(f"{', '.join(map(_named, paths))}: no {KIND} and no ScaledObject is in it{others}")
    return hpas


def _read(document: Any, controller: Controller, *, scaled: bool) -> StreamedHpa | Sequence[object]:
    """Return the HPA of a manifest, or of a ScaledObject; or its faults."""
    try:
        manifest = hpa_of_scaled_object(document) if scaled else document
    except InputError as error:
        return [str(error)]
    spec = read_manifest(manifest, scale_to_zero=controller.gates.scale_to_zero)
    if isinstance(spec, RefusedManifest):
        return spec.faults
    return StreamedHpa(spec, f"{SCALED_OBJECT} {document['metadata']['name']}" if scaled else "")


def _items(document: Any) -> list[Any]:
    """The objects of a list, or the object itself."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List"):
        return [document]
    items = document.get("items") or []
    above = {"kind": kind.removesuffix("List"), "apiVersion": document.get("apiVersion")}
    listed = items if isinstance(items, list) else [items]
    return [{**above, **item} if isinstance(item, dict) else item for item in listed]


SCALED_OBJECT = "ScaledObject"
T = TypeVar("T")
THRESHOLDS = ("threshold", "value", "targetValue", "lagThreshold", "queueLength", "target", "desiredReplicas")
"""Names of the amount per pod in KEDA's scalers, the most usual first."""


def hpa_of_scaled_object(document: dict[str, Any]) -> dict[str, Any]:
    """Return the HPA that KEDA makes of a ScaledObject (keda.sh, "Scaling Deployments"): one metric per trigger.

    Of 0 replicas KEDA itself takes care: the HPA begins at 1. A trigger without an amount counts as 1 a pod.

    Raises:
        InputError: a field has another type, or it has no name.
    """
    metadata, spec = _field(document, "metadata", dict), _field(document, "spec", dict)
    own = _field(_field(spec, "advanced", dict), "horizontalPodAutoscalerConfig", dict)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", **_field(spec, "scaleTargetRef", dict)}
    name = _field(metadata, "name", str)
    made = {
        "scaleTargetRef": {key: target.get(key) for key in ("apiVersion", "kind", "name")},
        "minReplicas": max(1, _field(spec, "minReplicaCount", int)),
        "maxReplicas": spec.get("maxReplicaCount", 100),
        "metrics": [_metric_of(i, trigger, name) for i, trigger in enumerate(_field(spec, "triggers", list))],
    }
    if not name:
        raise InputError(f"{SCALED_OBJECT}: metadata.name is missing; its HPA is named after it")
    if own.get("behavior"):
        made["behavior"] = own["behavior"]
    named = {**metadata, "name": own.get("name") or f"keda-hpa-{name}"}
    return {"apiVersion": "autoscaling/v2", "kind": KIND, "metadata": named, "spec": made}


def _field(block: Any, key: str, kind: type[T]) -> T:
    """A field of a ScaledObject, empty where it is not stated."""
    value = block.get(key) or kind() if isinstance(block, dict) else block
    if not isinstance(value, kind):
        raise InputError(f"{SCALED_OBJECT}: {key} is {value!r:.40}; {kind.__name__} is expected")
    return value


def _metric_of(place: int, trigger: Any, scaled_object: str) -> dict[str, Any]:
    metadata = _field(trigger, "metadata", dict)
    kind, metric_type = str(trigger.get("type", "")), trigger.get("metricType")
    if kind in {"cpu", "memory"}:
        utilization = (metric_type or metadata.get("type") or "Utilization") == "Utilization"
        amount = str(metadata.get("value", "0"))
        aim: dict[str, object] = (
            {"type": "Utilization", "averageUtilization": int(amount) if amount.isdecimal() else amount}
            if utilization
            else {"type": "AverageValue", "averageValue": amount}
        )
        container = metadata.get("containerName")
        block = {"name": kind, "target": aim} | ({"container": container} if container else {})
        return (
            {"type": "ContainerResource", "containerResource": block}
            if container
            else {"type": "Resource", "resource": block}
        )
    amount = str(next((metadata[key] for key in THRESHOLDS if key in metadata), "1"))
    per_pod: dict[str, object] = {"type": "AverageValue", "averageValue": amount}
    aim = {"type": "Value", "value": amount} if metric_type == "Value" else per_pod
    selector = {"matchLabels": {"scaledobject.keda.sh/name": scaled_object}}
    return {
        "type": "External",
        "external": {"metric": {"name": f"s{place}-{kind}", "selector": selector}, "target": aim},
    }


def specs_of(paths: Sequence[Path], controller: Controller) -> list[HpaSpec]:
    """The specs of manifest files with one HPA each; InputError as `streamed` raises it."""
    specs = [hpa.spec for hpa in streamed(paths, controller)] if paths else []
    if len(specs) != len(paths):
        raise InputError(f"expected one HPA a file, got {len(specs)} in {len(paths)}")
    return specs


def observation_of(
    spec: HpaSpec,
    pods: Path | None,
    metrics: Path | None,
    replicas: int | None,
    usage: Sequence[str],
    request: Sequence[str],
    at: str | None,
) -> tuple[Observation, datetime]:
    """Return the HPA's observation and its time: from files where pods are given, else from totals."""
    stated = None if at is None else instant(at)
    if pods is not None:
        try:
            return _from_files(spec, pods, metrics, replicas, stated)
        except DocumentError as error:
            raise InputError(str(error)) from error
    if replicas is None:
        remedy = "give --pods FILE, or --replicas N with --usage METRIC=QUANTITY"
        raise ConfigError("command line", [Fault("--replicas", ..., remedy)])
    now, totals = stated or current(), amounts_of(usage, "--usage")
    known = [metric.name for metric in spec.metrics]
    for name in sorted(totals.keys() - set(known)):
        tell(f"! --usage {name}: HPA {spec.name} has no such metric; its metrics: {', '.join(known)}")
    return observe_totals(spec, replicas, totals, amounts_of(request, "--request"), now), now


def _from_files(
    spec: HpaSpec, pods: Path, metrics: Path | None, replicas: int | None, at: datetime | None
) -> tuple[Observation, datetime]:
    """Every pod of the file belongs to the target, whatever its labels; pods that have ended are no replicas."""
    answers = [] if metrics is None else _documents(metrics)
    matched = [replace(pod, labels=POD_LABELS) for pod in pods_of(_documents(pods))]
    there = sum(pod.active for pod in matched)
    count = there if replicas is None else replicas
    observation = Observation(ScaleSubresource(count, there, SELECTOR), matched, answers_of(spec, answers))
    return observation, at or newest_sample(answers) or current()


def amounts_of(pairs: Sequence[str], option: str) -> dict[str, int]:
    """Milli-units by name from NAME=QUANTITY."""
    amounts = {}
    for pair in pairs:
        name, _, quantity = pair.partition("=")
        try:
            amounts[name] = parse_quantity(quantity).milli
            if quantity.startswith("-"):
                raise ConfigError("command line", [Fault(option, pair, "write an amount of 0 or more")])
        except QuantityError as error:
            meant = right_spelling(quantity)
            why = f"write {meant}" if meant else str(error)
            raise ConfigError("command line", [Fault(option, pair, why)]) from error
    return amounts


def _documents(path: Path) -> list[Any]:
    """The YAML or JSON documents of a file, empty ones left out."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        return [document for document in yaml.safe_load_all(_manifests(text)) if document is not None]
    except OSError as error:
        raise ConfigError("command line", [Fault("FILE", str(path), error.strerror or "")]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        message = str(error).replace('in "<unicode string>", ', "in ")
        raise InputError(f"{_named(path)} is no YAML: {message}") from error


def _named(path: Path) -> str:
    """Return the name of a file in a sentence."""
    return "standard input" if str(path) == "-" else str(path)


def _manifests(text: str) -> str:
    """The manifests of what `helm install --dry-run` prints, without its head and notes; other text as it is."""
    _, head, behind = text.partition("\nMANIFEST:\n")
    return behind.partition("\nNOTES:\n")[0] if head else text
