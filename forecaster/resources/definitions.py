"""CustomResourceDefinitions of PredictiveAutoscaler and PredictivePolicy, made of the settings of a policy.

For `forecaster init` also a PredictiveAutoscaler for each workload that something scales or sizes, and what to keep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import yaml

from forecaster.domain.policy import Policy, PolicySelector
from forecaster.domain.workload import WorkloadId
from forecaster.kube.objects import Wire
from forecaster.resources.neighbours import Hpa, Neighbours, ScaledObject, VpaNeighbour, by_target
from forecaster.resources.objects import (
    API_VERSION,
    AUTOSCALER,
    AUTOSCALERS,
    DEFAULT_POLICIES,
    DEFAULTS,
    GROUP,
    VERSION,
)
from forecaster.resources.policy_status import PolicyStatus
from forecaster.resources.schema import MAX_CHARACTERS, schema_of
from forecaster.resources.status import AutoscalerStatus

Document = dict[str, Any]
PRINTER_COLUMNS = (
    ("Target", "string", ".spec.scaleTargetRef.name"),
    ("Mode", "string", ".status.mode"),
    ("Current", "integer", ".status.currentReplicas"),
    ("Recommended", "integer", ".status.recommendedReplicas"),
    ("Peak", "string", ".status.forecastPeak"),
    ("Forecast", "string", ".status.gate"),
    ("Reason", "string", ".status.reason"),
    ("Age", "date", ".metadata.creationTimestamp"),
)
COLUMNS_OF_DEFAULTS = (
    ("Namespaces", "string", ".spec.match.namespace"),
    ("Kinds", "string", ".spec.match.kind"),
    ("Names", "string", ".spec.match.name"),
    ("Mode", "string", ".spec.mode"),
    ("Workloads", "integer", ".status.workloads"),
    ("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason"),
    ("Age", "date", ".metadata.creationTimestamp"),
)
DESCRIPTIONS = {
    AUTOSCALER: "The policy of one workload, its recommendation, and why.",
    DEFAULTS: "Defaults of the policies of the workloads that it selects. Of several the later name wins, key by key.",
}
HEAD = "# Made by `python -m deploy.generate` of the settings of a policy (forecaster/resources/schema.py).\n"


def definitions_text() -> str:
    """Return both definitions as YAML."""
    documents = (yaml.safe_dump(kind, sort_keys=False, allow_unicode=True, width=120) for kind in definitions())
    return HEAD + "---\n".join(documents)


def definitions() -> tuple[Document, Document]:
    """The definition of PredictiveAutoscaler, and that of PredictivePolicy."""
    policy = schema_of(Policy)
    properties = policy["properties"]
    name = {"type": "string", "minLength": 1, "maxLength": MAX_CHARACTERS}
    target = {
        "type": "object",
        "description": "The workload that is meant, in the same namespace.",
        "required": ["name"],
        "properties": {
            "apiVersion": {**name, "default": "apps/v1", "description": "As an HPA has it."},
            "kind": {**name, "default": "Deployment", "description": "Its kind."},
            "name": {**name, "description": "Its name."},
        },
    }
    policy["description"] = "A layer of the policy: fields left out stay as the layers below state them."
    autoscaler = {**policy, "required": ["scaleTargetRef"], "properties": {"scaleTargetRef": target, **properties}}
    match = {**schema_of(PolicySelector, filled=True), "default": {}}
    defaults = {**policy, "properties": {"match": match, **properties}}
    of_autoscaler = _version(AUTOSCALER, autoscaler, _status(AutoscalerStatus), PRINTER_COLUMNS)
    of_defaults = _version(DEFAULTS, defaults, _status(PolicyStatus), COLUMNS_OF_DEFAULTS)
    return (
        _definition(AUTOSCALER, AUTOSCALERS, "fpa", "Namespaced", of_autoscaler),
        _definition(DEFAULTS, DEFAULT_POLICIES, "fpp", "Cluster", of_defaults),
    )


def _version(kind: str, spec: Document, status: Document, columns: Sequence[tuple[str, str, str]]) -> Document:
    stated = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    properties = {**stated, "spec": spec, "status": status}
    whole = {"type": "object", "description": DESCRIPTIONS[kind], "required": ["spec"], "properties": properties}
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": whole},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": name, "type": type_, "jsonPath": path} for name, type_, path in columns],
    }


def _definition(kind: str, plural: str, short: str, scope: str, version: Document) -> Document:
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower(), "shortNames": [short]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Helm would delete it with the release, and with it the objects of every team.
        "metadata": {"name": f"{plural}.{GROUP}", "annotations": {"helm.sh/resource-policy": "keep"}},
        "spec": {"group": GROUP, "names": names, "scope": scope, "versions": [version]},
    }


def _status(struct: type[Wire]) -> Document:
    schema = msgspec.json.schema(struct)
    status: Document = _inlined(schema["$defs"][struct.__name__], schema["$defs"])
    conditions = status["properties"]["conditions"]
    conditions |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    return status


def _inlined(part: Any, known: Document) -> Any:
    """Return a schema without references, titles and defaults; nullable fields become optional."""
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inlined(known[part["$ref"].rpartition("/")[2]], known)
    kinds = [kind for kind in part.get("anyOf", ()) if kind != {"type": "null"}]
    remaining = {key: value for key, value in part.items() if key not in {"anyOf", "title", "default"} and value != []}
    return {key: _inlined(value, known) for key, value in {**remaining, **(kinds[0] if kinds else {})}.items()}


VPA_MINIMUMS = {"cpu": "minCpu", "memory": "minMemory"}
"""Settings of `vertical` by the resource of a VPA's `minAllowed`."""


class Proposal(NamedTuple):
    """One object, and what to know before it is applied."""

    workload: WorkloadId
    document: dict[str, Any]
    notes: tuple[str, ...]

    def text(self) -> str:
        """Return the proposal as YAML; the notes are comments above it, each line of them.

        They name kinds and owners of objects, for which the API server lets a tenant write several lines.
        """
        comments = "".join(f"# {line}\n" for note in self.notes for line in note.splitlines())
        return comments + yaml.safe_dump(self.document, sort_keys=False, allow_unicode=True)


def proposals(known: Neighbours) -> list[Proposal]:
    """One for each workload, by namespace and name. All observe: what acts is for its owner to say."""
    hpas, scaled, vpas = by_target(known.hpas), by_target(known.scaled_objects), by_target(known.vpas)
    ids = sorted({*hpas, *scaled, *vpas})
    shared = Counter((id_.namespace, id_.name) for id_ in ids)

    def proposal(id_: WorkloadId) -> Proposal:
        counts = _of_counts(id_, hpas.get(id_, ()), scaled.get(id_, ()))
        return _proposal(id_, counts, vpas.get(id_, ()), alone=shared[id_.namespace, id_.name] == 1)

    return [proposal(id_) for id_ in ids]


def _proposal(id_: WorkloadId, counts: Iterator[str], vpas: Sequence[VpaNeighbour], *, alone: bool) -> Proposal:
    name = id_.name if alone else f"{id_.name}-{id_.kind.lower()}"
    spec: dict[str, Any] = {"scaleTargetRef": {"kind": id_.kind, "name": id_.name}, "mode": "observe"}
    if minimums := _minimum(vpas):
        spec["vertical"] = minimums
    document = {
        "apiVersion": API_VERSION,
        "kind": AUTOSCALER,
        "metadata": {"name": name, "namespace": id_.namespace},
        "spec": spec,
    }
    return Proposal(id_, document, (*counts, *map(_of_sizes, vpas)))


def _of_counts(id_: WorkloadId, all_hpas: Sequence[Hpa], scaled: Sequence[ScaledObject]) -> Iterator[str]:
    made = {f"ScaledObject {scaler.name}" for scaler in scaled}
    for scaler in scaled:
        yield f"Keep ScaledObject {scaler.name}: with mode publish a trigger may read the forecast (docs/integrate.md)."
        if scaler.paused:
            yield f"It is paused ({scaler.paused}): nothing of ours ends that."
    hpas = [hpa for hpa in all_hpas if hpa.maker not in made]
    for hpa in hpas:
        if hpa.maker:
            yield f"HPA {hpa.name} is made from {hpa.maker}: state its minimum and metrics there."
        else:
            yield f"Keep HPA {hpa.name}: mode floor raises its minReplicas, by mode publish it reads the forecast."
    if len(hpas) + len(scaled) > 1:
        yield f"{len(hpas) + len(scaled)} autoscalers scale {id_.kind} {id_.name}: keep one, none is used until then."


def _of_sizes(vpa: VpaNeighbour) -> str:
    if vpa.writes:
        return (
            f"VPA {vpa.name} writes requests (updateMode {vpa.mode}): keep it, and ours are only recommended; or set "
            "it to Off, and its numbers may be compared with ours: forecaster recommend."
        )
    return f"VPA {vpa.name} is Off: keep it to compare, or delete it; forecaster recommend has its arithmetic, too."


def _minimum(vpas: Sequence[VpaNeighbour]) -> dict[str, str]:
    """The smallest requests that a VPA may set are those that we may recommend."""
    stated = vpas[0].least if len(vpas) == 1 else {}
    return {setting: str(stated[resource]) for resource, setting in VPA_MINIMUMS.items() if resource in stated}
