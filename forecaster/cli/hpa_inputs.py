"""What `forecaster hpa` reads: manifests, pods, answers of the metrics APIs, or totals in place of the last two."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import yaml

from forecaster.app.clock import current, instant
from forecaster.domain.quantity import QuantityError, parse_quantity, right_spelling
from forecaster.errors import ForecasterError
from forecaster.hpa.documents import DocumentError, answers_of, newest_sample, pods_of
from forecaster.hpa.manifest import KIND, RefusedManifest, read_manifest
from forecaster.hpa.observation import POD_LABELS, SELECTOR, Observation, ScaleSubresource, observe_totals
from forecaster.hpa.spec import Controller, FeatureGates, HpaSpec
from forecaster.vertical.cluster_rules.server import Server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path


class InputError(ForecasterError):
    """A file or an option cannot be used; the text names it, the value and the remedy."""


def controller_of(version: str, *, scale_to_zero: bool | None = None) -> Controller:
    """The controller of a version of Kubernetes with its gates at their defaults, but for one where it is stated.

    Raises:
        InputError: there is no version in the text.
    """
    try:
        minor = Server.parse(version).minor
    except ValueError as error:
        raise InputError(f"--server-version {error}") from None
    gates = FeatureGates.of(minor)
    return Controller(
        gates=gates if scale_to_zero is None else replace(gates, scale_to_zero=scale_to_zero), minor=minor
    )


@dataclass(frozen=True, slots=True)
class StreamedHpa:
    """One HPA of a stream, and where it is not written as one, what it was made of."""

    spec: HpaSpec
    note: str = ""

    @property
    def title(self) -> str:
        """Return its name and its origin."""
        name = f"{self.spec.namespace}/{self.spec.name}" if self.spec.namespace else self.spec.name
        return f"HPA {name}" + (f", which KEDA makes of {self.note}" if self.note else "")


def streamed(paths: Sequence[Path], controller: Controller) -> list[StreamedHpa]:
    """The HPAs of manifests, lists, streams and Helm's output; objects of other kinds are passed over.

    Raises:
        InputError: with every fault where the API server would refuse one, or where there is none.
    """
    if not paths:
        raise InputError("name a manifest, or - for standard input")
    found, faults, kinds = [], [], set()
    for path in paths:
        for document in (part for one in _documents(path) for part in _items(one)):
            kind = document.get("kind") if isinstance(document, dict) else None
            scaled = kind == "ScaledObject"
            if kind not in {KIND, "ScaledObject", None}:
                kinds.add(str(kind))
                continue
            manifest = hpa_of_scaled_object(document) if scaled else document
            spec = read_manifest(manifest, scale_to_zero=controller.gates.scale_to_zero)
            if isinstance(spec, RefusedManifest):
                faults += [f"{_named(path)}: {fault}" for fault in spec.faults]
            else:
                found.append(StreamedHpa(spec, f"ScaledObject {document['metadata'].get('name')}" if scaled else ""))
    if faults:
        raise InputError("the API server would refuse this\n  " + "\n  ".join(faults))
    if not found:
        others = f"; there are {', '.join(sorted(kinds))}" if kinds else ""
        raise InputError(f"{', '.join(map(_named, paths))}: no {KIND} and no ScaledObject is in it{others}")
    return found


def _items(document: Any) -> list[Any]:
    """The objects of a list, or the object itself."""
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        kind = str(document["kind"]).removesuffix("List")
        return [{"kind": kind, "apiVersion": document.get("apiVersion"), **one} for one in document.get("items") or ()]
    return [document]


THRESHOLDS = ("threshold", "value", "targetValue", "lagThreshold", "queueLength", "target", "desiredReplicas")
"""What KEDA's scalers call the amount of a pod, the most usual first."""


def hpa_of_scaled_object(document: dict[str, Any]) -> dict[str, Any]:
    """The HPA that KEDA makes of a ScaledObject (keda.sh, "Scaling Deployments"): one metric a trigger.

    Of 0 replicas KEDA itself takes care: the HPA begins at 1. A trigger without an amount counts as 1 a pod.
    """
    metadata, spec = document.get("metadata") or {}, document.get("spec") or {}
    own = ((spec.get("advanced") or {}).get("horizontalPodAutoscalerConfig")) or {}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", **(spec.get("scaleTargetRef") or {})}
    name = str(metadata.get("name", ""))
    made = {
        "scaleTargetRef": {key: target.get(key) for key in ("apiVersion", "kind", "name")},
        "minReplicas": max(1, spec.get("minReplicaCount") or 0),
        "maxReplicas": spec.get("maxReplicaCount", 100),
        "metrics": [_metric_of(i, one, name) for i, one in enumerate(spec.get("triggers") or ())],
    }
    if own.get("behavior"):
        made["behavior"] = own["behavior"]
    named = {**metadata, "name": own.get("name") or f"keda-hpa-{name}"}
    return {"apiVersion": "autoscaling/v2", "kind": KIND, "metadata": named, "spec": made}


def _metric_of(place: int, trigger: dict[str, Any], scaled_object: str) -> dict[str, Any]:
    kind, said = str(trigger.get("type", "")), trigger.get("metadata") or {}
    if kind in {"cpu", "memory"}:
        utilization = (trigger.get("metricType") or said.get("type") or "Utilization") == "Utilization"
        amount = int(said.get("value", 0)) if utilization else str(said.get("value", "0"))
        aim: dict[str, object] = (
            {"type": "Utilization", "averageUtilization": amount} if utilization else average(amount)
        )
        container = said.get("containerName")
        block = {"name": kind, "target": aim} | ({"container": container} if container else {})
        return (
            {"type": "ContainerResource", "containerResource": block}
            if container
            else {"type": "Resource", "resource": block}
        )
    amount = str(next((said[key] for key in THRESHOLDS if key in said), "1"))
    aim = {"type": "Value", "value": amount} if trigger.get("metricType") == "Value" else average(amount)
    selector = {"matchLabels": {"scaledobject.keda.sh/name": scaled_object}}
    return {
        "type": "External",
        "external": {"metric": {"name": f"s{place}-{kind}", "selector": selector}, "target": aim},
    }


def average(amount: object) -> dict[str, object]:
    """A target of so much a pod."""
    return {"type": "AverageValue", "averageValue": amount}


def specs_of(paths: Sequence[Path], controller: Controller) -> list[HpaSpec]:
    """The specs of manifest files with one HPA each; InputError as `streamed` raises it."""
    specs = [one.spec for one in streamed(paths, controller)] if paths else []
    if len(specs) != len(paths):
        raise InputError(f"expected one HPA a file, got {len(specs)} in {len(paths)}")
    return specs


def look(
    spec: HpaSpec,
    pods: Path | None,
    metrics: Path | None,
    replicas: int | None,
    usage: Sequence[str],
    request: Sequence[str],
    at: str | None,
) -> tuple[Observation, datetime]:
    """What the HPA would see and when: from files where pods are given, else from totals."""
    stated = None if at is None else instant(at)
    if pods is not None:
        try:
            return _from_files(spec, pods, metrics, replicas, stated)
        except DocumentError as error:
            raise InputError(str(error)) from error
    if replicas is None:
        raise InputError("give --pods FILE, or --replicas N with --usage METRIC=QUANTITY")
    now = stated or current()
    return observe_totals(spec, replicas, amounts_of(usage, "--usage"), amounts_of(request, "--request"), now), now


def _from_files(
    spec: HpaSpec, pods: Path, metrics: Path | None, replicas: int | None, at: datetime | None
) -> tuple[Observation, datetime]:
    """Every pod of the file belongs to the target, whatever its labels."""
    answers = [] if metrics is None else _documents(metrics)
    matched = [replace(pod, labels=POD_LABELS) for pod in pods_of(_documents(pods))]
    count = len(matched) if replicas is None else replicas
    seen = Observation(ScaleSubresource(count, len(matched), SELECTOR), matched, answers_of(spec, answers))
    return seen, at or newest_sample(answers) or current()


def amounts_of(pairs: Sequence[str], option: str) -> dict[str, int]:
    """Milli-units by name from NAME=QUANTITY."""
    amounts = {}
    for pair in pairs:
        name, _, quantity = pair.partition("=")
        try:
            amounts[name] = parse_quantity(quantity).milli
        except QuantityError as error:
            meant = right_spelling(quantity)
            raise InputError(f"{option} {pair}: {f'write {meant}' if meant else error}") from error
    return amounts


def _documents(path: Path) -> list[Any]:
    """The YAML or JSON documents of a file, empty ones left out."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        return [document for document in yaml.safe_load_all(_manifests(text)) if document is not None]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        said = str(error).replace('in "<unicode string>", ', "in ")
        raise InputError(f"{_named(path)} is no YAML: {said}") from error


def _named(path: Path) -> str:
    """What a file is called in a sentence."""
    return "standard input" if str(path) == "-" else str(path)


def _manifests(text: str) -> str:
    """The manifests of what `helm install --dry-run` prints, without its head and notes; other text as it is."""
    _, head, behind = text.partition("\nMANIFEST:\n")
    return behind.partition("\nNOTES:\n")[0] if head else text
