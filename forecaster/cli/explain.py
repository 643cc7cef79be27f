"""`forecaster explain`: the decision record of a workload in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from forecaster.cli.options import CycleOptions, Named, finished, grouped
from forecaster.cli.recommend import Objects, ServerVersion
from forecaster.cli.streams import tell
from forecaster.report.formats import DocumentOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from forecaster.config.settings import Settings
    from forecaster.cycle.run import Cycle, Outcome
    from forecaster.domain.decision import Recommendation
    from forecaster.domain.policies import Policies
    from forecaster.domain.window import Window
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.forecasting.peaks import Paths
    from forecaster.hpa.spec import HpaSpec
    from forecaster.publish.decided import DecidedRows
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.report.recommendations import ExplanationDocument
    from forecaster.vertical.admission.cluster import Cluster


@grouped
def explain(
    given: CycleOptions,
    workload: Named,
    output: Annotated[DocumentOutput, typer.Option("--output", "-o", help="Output format.")] = DocumentOutput.TEXT,
    joint: Annotated[bool, typer.Option("--joint", help="Also choose count and size together.")] = False,
    changed: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Also decide by another policy, e.g. quantile=0.95 or horizontal.lead_time=5m.",
        ),
    ] = None,
    objects: Objects = None,
    server_version: ServerVersion = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="OUT", dir_okay=False, help="Write a page with pictures here.")
    ] = None,
) -> None:
    """Say how the numbers of a workload came about: inputs, model, quantile, every clamp in order, and why."""
    from forecaster.cli.once import cycle_run, workloads_of
    from forecaster.cli.snapshot import cluster_from
    from forecaster.cli.streams import check_writable
    from forecaster.forecasting.peaks import Paths as NewPaths
    from forecaster.report.progress import shown_progress

    check_writable(html)
    paths = NewPaths() if html else None
    cluster = cluster_from(objects, server_version)
    with given.staged(given.at, demo=given.demo) as (settings, now), shown_progress("explain") as shown:
        changes = with_changes(settings.policies, changed, workload) if changed else None
        cycle, outcome = cycle_run(settings, now, workload, shown, paths, donors=given.donors)
        ids = workloads_of(outcome, workload, settings)
        otherwise = cycle.what_if(changes, outcome.report.at) if changes else None
        joints = _joint_lines(cycle, outcome, cluster) if joint else {}
        vpas = _vpas(cluster, settings, outcome)
        explanations = Explanations(cycle, outcome, _prover(cluster), vpas, joints, otherwise, changed or ())
    explanations.give(sorted(ids), output, html, paths)
    finished(shown)


@dataclass(frozen=True)
class Explanations:
    """Explanations of the workloads of one cycle; parts shared by all workloads are made once."""

    cycle: Cycle
    outcome: Outcome
    prove: Callable[[Workload, Recommendation], list[str]]
    vpas: Callable[[WorkloadId], list[str]]
    joints: Mapping[WorkloadId, list[str]]
    otherwise: Sequence[Recommendation] | None
    changed: Sequence[str]

    def give(self, ids: Sequence[WorkloadId], output: DocumentOutput, html: Path | None, paths: Paths | None) -> None:
        """Failures first; printed, or written as a page. Exits with 1 where no workload is meant."""
        from forecaster.report.recommendations import failure_lines

        for line in failure_lines(self.outcome):
            tell(line)
        if not ids:
            raise typer.Exit(1)
        if html is None or paths is None:
            self.print(ids, output)
        else:
            self.write(ids, html, paths)

    def print(self, ids: Sequence[WorkloadId], output: DocumentOutput) -> None:
        """Print the explanations, one workload after the other."""
        from forecaster.report.plot import windows_of
        from forecaster.report.printed import print_json, print_text, print_yaml
        from forecaster.report.recommendations import ExplanationsDocument

        if output is DocumentOutput.TEXT:
            windows = windows_of(self.cycle.history)
            print_text(*(line for id_ in ids for line in self.drawn(id_, windows)))
        else:
            document = ExplanationsDocument([self.document(id_) for id_ in ids])
            (print_json if output is DocumentOutput.JSON else print_yaml)(document)

    def write(self, ids: Sequence[WorkloadId], path: Path, paths: Paths) -> None:
        """Write the explanations as a page."""
        from forecaster.cli.streams import write_file
        from forecaster.report.explained_page import Explained, explained_page

        decided = {recommendation.id: recommendation for recommendation in self.outcome.recommendations}
        explanations = [
            Explained(decided[id_], self.lines(id_), {str(k): v for k, v in paths.by_workload.get(id_, {}).items()})
            for id_ in ids
        ]
        write_file(path, explained_page(explanations, self.cycle.history))

    def drawn(self, id_: WorkloadId, windows: Mapping[str, Window]) -> list[str]:
        """The sentences with the last half day of each signal below the first."""
        from forecaster.report.plot import spoken_half_day

        head, *lines = self.lines(id_)
        recommendation = self.outcome.recommendations[self._places[id_]]
        past = (spoken_half_day(windows, id_, view.signal, view.unit) for view in recommendation.signals)
        return [head, *(f"  {line}" for line in past if line), *lines]

    def lines(self, id_: WorkloadId) -> list[str]:
        """Return the lines of inputs, steps and decision, and of the HPA's answer. No name breaks a line."""
        from forecaster.horizontal.sentences import explanation

        place = self._places[id_]
        lines = [
            *explanation(self.outcome.recommendations[place]),
            *(f"  {line}" for line in self._consequences(place)),
        ]
        if self.otherwise is not None:
            lines += [f"what if {', '.join(self.changed)}", *explanation(self.otherwise[place])[1:]]
        return [" ".join(line.splitlines()) for line in lines]

    def document(self, id_: WorkloadId) -> ExplanationDocument:
        """The recommendation as the API has it, and the sentences."""
        from forecaster.publish.views import recommendation_view
        from forecaster.report.recommendations import ExplanationDocument as Document

        place = self._places[id_]
        return Document(recommendation_view(self.outcome.recommendations[place]), self.lines(id_))

    def _consequences(self, place: int) -> list[str]:
        """Return the HPA's answer to the offer, the cluster's answer to the sizes, and the joint choice."""
        from forecaster.horizontal.hpa_next import next_sync
        from forecaster.publish.values import encoded_readers, values_for

        target, recommendation = self.outcome.inventory.workloads[place], self.outcome.recommendations[place]
        id_, readers = recommendation.id, encoded_readers(recommendation.targets)
        policy = self.cycle.policies.of(id_)
        offer = self._offers.offer(place, readers)
        offered = values_for(offer, recommendation.targets, recommendation.at, policy.horizontal.demand_signal)
        scalers, origins = _live_facts(self.cycle, id_, recommendation.at)
        least, behavior = (scalers[0].bounds.min_replicas, scalers[0].behavior) if scalers else (None, None)
        names = [hpa.name for hpa in scalers]
        following = next_sync(target, recommendation, offered, policy.mode, least, behavior, names)
        sizes = [*self.vpas(id_), *self.prove(target, recommendation), *self.joints.get(id_, ())]
        return [*following, *origins, *_policy_origins(self.cycle.policies, id_), *sizes]

    @cached_property
    def _places(self) -> Mapping[WorkloadId, int]:
        """Rows of the workloads."""
        return {id_: place for place, id_ in enumerate(self.outcome.inventory.ids)}

    @cached_property
    def _offers(self) -> OfferedCycle:
        """Return the offers of all workloads."""
        from forecaster.publish.publisher import offered_cycle

        decided = cast("DecidedRows", self.outcome.recommendations)
        policies = [self.cycle.policies.of(recommendation.id) for recommendation in decided]
        return offered_cycle(self.outcome.report.at, decided, policies)


def _live_facts(cycle: Cycle, id_: WorkloadId, at: datetime) -> tuple[list[HpaSpec], list[str]]:
    """Return the HPAs, unless `at` is past, and the source of each fact; empty where the API server is disabled."""
    from forecaster.sources.live_source import LiveSource

    if not isinstance(cycle.source, LiveSource):
        return [], []
    scalers = cycle.source.live.scalers(id_) if id_.kind in cycle.source.live_kinds(at) else []
    return [hpa.spec for _, hpa in scalers], cycle.source.origins(id_)


def _policy_origins(policies: Policies, id_: WorkloadId) -> list[str]:
    """Say which layer states each setting that is no default, over which other, and which layers are left out."""
    from forecaster.domain.layers import leaf_origins, origin_sentences

    refused = [f"Policy: {layer.origin} is left out: {why}." for layer, why in policies.refused(id_)]
    return [*origin_sentences(leaf_origins(policies.effective_layers(id_))), *refused]


def with_changes(policies: Policies, changed: Sequence[str], workload: str = "*") -> Policies:
    """Policies with these settings over the workloads of a pattern; a name without a dot is of `policy.horizontal`.

    Raises:
        ConfigError: a change is not `NAME=VALUE`, or no policy can have it.
    """
    import yaml
    from pydantic import ValidationError

    from forecaster.config.files import faults_of
    from forecaster.config.settings import with_spelling
    from forecaster.domain.layers import Layer, merged
    from forecaster.domain.policies import Policies, overlap
    from forecaster.domain.policy import Policy, PolicySelector
    from forecaster.errors import ConfigError, Fault

    fragment: dict[str, object] = {}
    for change in changed:
        name, equals, value = change.partition("=")
        if not (name and equals):
            raise ConfigError("--set", [Fault("--set", change, "NAME=VALUE is expected, e.g. quantile=0.95")])
        *sections, field = name.removeprefix("policy.").split(".") if "." in name else ("horizontal", name)
        try:
            nested: object = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise ConfigError("--set", [Fault(name, value, "a value as in a settings file is expected")]) from error
        for key in reversed([*sections, field]):
            nested = {key: nested}
        fragment = merged(fragment, nested)  # type: ignore[arg-type]  # a mapping after at least one section
    namespace, _, name = workload.rpartition("/")
    selector = PolicySelector(namespace=namespace or "*", name=name)
    try:
        for base in ({}, *(layer for other, layer in policies.overrides if overlap(other, selector))):
            Policy.model_validate(merged(merged(policies.defaults.model_dump(), base), fragment))
    except ValidationError as error:
        raise ConfigError("--set", [with_spelling(fault, "policy.") for fault in faults_of(error)]) from error
    changes = ((selector, Layer("--set", fragment)),)
    return Policies(
        policies.defaults, policies.overrides, signals=policies.signals, ceilings=policies.ceilings, changes=changes
    )


def _joint_lines(cycle: Cycle, outcome: Outcome, cluster: Cluster | None) -> dict[WorkloadId, list[str]]:
    """Count and size together, in a line for each workload."""
    from forecaster.cli.snapshot import CycleSnapshot
    from forecaster.report.advice import joint_line
    from forecaster.vertical.admission.cluster import Cluster as Known
    from forecaster.vertical.sizing.joint import ResourceCosts

    snapshot = CycleSnapshot(outcome, cycle, cluster or Known())
    return {id_: [f"together: {joint_line(joint)}"] for id_, joint in snapshot.joint(ResourceCosts()).items()}


def _vpas(cluster: Cluster | None, settings: Settings, outcome: Outcome) -> Callable[[WorkloadId], list[str]]:
    """Return the lines about a workload's VPAs: recommendation, or why it is not known; empty without a VPA."""
    from forecaster.cli.snapshot import with_vpas
    from forecaster.vertical.admission.cluster import Cluster as Known

    known = with_vpas(Known(vpas=cluster.vpas if cluster else {}), settings, outcome.report.at)
    return lambda id_: [f"{line}." for line in (*known.faults, *known.vpas.get(id_, ()))]


def _prover(cluster: Cluster | None) -> Callable[[Workload, Recommendation], list[str]]:
    """Return the lines of a workload's admission proof; empty where the cluster's objects are not given."""
    if cluster is None:
        return lambda _workload, _recommendation: []

    from forecaster.report.advice import finding_lines
    from forecaster.vertical.admission.advice import advise

    return lambda workload, recommendation: finding_lines(advise(workload, recommendation, cluster))
