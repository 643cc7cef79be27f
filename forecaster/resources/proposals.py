"""`forecaster init`: a PredictiveAutoscaler for each workload that something scales or sizes, and what to keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import yaml

from forecaster.domain.workload import WorkloadId
from forecaster.resources.neighbours import Hpa, Neighbours, ScaledObject, VpaNeighbour, by_target
from forecaster.resources.objects import API_VERSION, AUTOSCALER

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
