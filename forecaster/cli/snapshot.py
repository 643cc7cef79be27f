"""Inputs of `forecaster recommend` and `forecaster nodes`: a cycle, its history, and the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from forecaster.app.clock import instant
from forecaster.app.compose import single_cycle
from forecaster.app.demo import staged
from forecaster.app.live_facts import vpas_of
from forecaster.cli.once import tell_missing_donors
from forecaster.cli.options import narrowed
from forecaster.cli.streams import tell
from forecaster.cycle.advice import JointAdvice, advices, joint_advice
from forecaster.cycle.node_forecast import NodeForecast, node_forecast
from forecaster.cycle.sizes import with_cron_jobs
from forecaster.domain.window import last_multiple
from forecaster.errors import SourceError
from forecaster.report.recommendations import failure_lines
from forecaster.sources import cluster_facts, cluster_objects, factory
from forecaster.sources.cron_jobs import run_queries
from forecaster.vertical.admission.advice import CRON_JOB, Advice
from forecaster.vertical.admission.cluster import Cluster
from forecaster.vertical.admission.context import ROLLED_OUT, ApplyTerms
from forecaster.vertical.cluster_rules.server import Server

if TYPE_CHECKING:
    from forecaster.cli.recommend import AdviceOptions
    from forecaster.config.settings import Settings
    from forecaster.cycle.run import Cycle, Outcome
    from forecaster.domain.workload import Resources, WorkloadId
    from forecaster.ports import StageWatch
    from forecaster.sources.prometheus import PrometheusSource
    from forecaster.vertical.sizing.joint import ResourceCosts


@dataclass(frozen=True, slots=True)
class CycleSnapshot:
    """One cycle, and its cluster."""

    outcome: Outcome
    cycle: Cycle
    cluster: Cluster
    unknown: str = ""
    """Reason why the cluster is not known; empty when it is."""

    def advices(
        self, previous: Mapping[WorkloadId, Resources], *, compare: bool, terms: ApplyTerms = ROLLED_OUT
    ) -> list[Advice]:
        """Advice for every workload."""
        inventory = self.outcome.inventory
        return advices(
            inventory.workloads,
            self.outcome.recommendations,
            self.cycle.history,
            self.cluster,
            previous=previous or None,
            compared=compare,
            terms=terms,
        )

    def joint(self, costs: ResourceCosts, terms: ApplyTerms = ROLLED_OUT) -> dict[WorkloadId, JointAdvice]:
        """Count and size of every workload together."""
        inventory, cycle = self.outcome.inventory, self.cycle
        advices = joint_advice(
            inventory.workloads,
            self.outcome.recommendations,
            cycle.history,
            cycle.forecaster,
            cycle.policies,
            self.cluster,
            self.outcome.report.at,
            costs,
            terms,
        )
        return dict(zip((workload.id for workload in inventory.workloads), advices, strict=True))

    def node_forecast(self, quantile: float, warm_minutes: int) -> NodeForecast:
        """Node pools ahead of time."""
        return node_forecast(
            self.outcome.inventory.workloads,
            self.cycle.history,
            self.cycle.forecaster,
            self.cycle.policies,
            self.cluster,
            self.outcome.report.at,
            quantile=quantile,
            warm=timedelta(minutes=warm_minutes),
        )

    def tell_faults(self) -> None:
        """Print the failures on standard error."""
        for line in failure_lines(self.outcome):
            tell(line)
        if not self.outcome.lost:
            for fault in (*self.cluster.faults, *([self.unknown] if self.unknown else [])):
                tell(f"! {fault}")


CLUSTER_MAY_BE = timedelta(minutes=5)
"""Age of the cluster's facts up to which they are not asked anew."""


class Observer:
    """Takes snapshots one after the other, with what earlier ones have learned."""

    def __init__(
        self,
        settings: Settings,
        now: datetime,
        objects: Sequence[Path] | None,
        server: str | None,
        watch: StageWatch | None = None,
    ) -> None:
        self._source = factory.prometheus(settings.prometheus, settings.queries, settings.signals)
        self._cycle = single_cycle(settings, now, source=self._source, watch=watch)
        self._objects = cluster_from(objects, server)
        self._facts: tuple[datetime, tuple[Cluster, str]] | None = None

    def snapshot(self, now: datetime) -> CycleSnapshot:
        """One cycle on Prometheus, and the cluster from its objects or from kube-state-metrics."""
        known, why = (self._objects, "") if self._objects else self._fresh_facts(now)
        return CycleSnapshot(self._cycle.run(now), self._cycle, known, why)

    def _fresh_facts(self, now: datetime) -> tuple[Cluster, str]:
        if self._facts is None or now - self._facts[0] >= CLUSTER_MAY_BE:
            self._facts = (now, _facts(self._source, now))
        return self._facts[1]


def take_snapshot(
    settings: Settings,
    at: str | None,
    objects: Sequence[Path] | None,
    server: str | None,
    watch: StageWatch | None = None,
) -> CycleSnapshot:
    """Snapshot of the last full minute, or of the instant given."""
    now = last_multiple(instant(at), settings.cycle.interval)
    return Observer(settings, now, objects, server, watch).snapshot(now)


def take_demo_snapshot(
    objects: Sequence[Path] | None, server: str | None, watch: StageWatch | None = None, stated: Settings | None = None
) -> CycleSnapshot:
    """The recorded load under the policies that are stated; of its cluster only objects that are given are known."""
    known = cluster_from(objects, server) or Cluster()
    with staged() as stage:
        stage.cycle.watch = watch
        if stated:
            stage.cycle.policies.restate(stated.policies.defaults, stated.policies.overrides)
        return CycleSnapshot(stage.cycle.run(stage.begin), stage.cycle, known)


def requested_snapshot(settings: Settings, options: AdviceOptions, watch: StageWatch | None) -> CycleSnapshot:
    """Run a cycle over the requested workloads, CronJobs included; others are read only if donors are needed."""
    if options.demo:
        return take_demo_snapshot(options.objects, options.server_version, watch, settings if options.config else None)
    less = settings if options.donors else narrowed(settings, options.workload)
    snapshot = take_snapshot(less, options.at, options.objects, options.server_version, watch)
    tell_missing_donors(snapshot.cycle, snapshot.outcome, options.workload, donors=options.donors)
    if options.kind not in {None, CRON_JOB} or not less.queries.per_container or snapshot.outcome.lost:
        return snapshot
    with closing(factory.prometheus(less.prometheus, run_queries(less.queries))) as source:
        return replace(snapshot, outcome=with_cron_jobs(snapshot.outcome, source, snapshot.cycle.policies))


def cluster_from(paths: Sequence[Path] | None, server: str | None) -> Cluster | None:
    """The cluster from files of its objects; None without any."""
    try:
        version = None if server is None else Server.parse(server)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--server-version") from error
    try:
        return cluster_objects.read_cluster(paths, version) if paths else None
    except SourceError as error:
        raise typer.BadParameter(str(error), param_hint="--objects") from error


def with_vpas(known: Cluster, settings: Settings, at: datetime) -> Cluster:
    """Return the cluster with recommendations of VPAs, read from the API server unless the objects contain them."""
    if known.vpas:
        return known
    vpas, why = vpas_of(settings, at)
    return replace(known, vpas=vpas, faults=(*known.faults, why) if why else known.faults)


def _facts(source: PrometheusSource, now: datetime) -> tuple[Cluster, str]:
    """Read the cluster's facts; without them the proof names each rule that could not be checked."""
    try:
        return cluster_facts.cluster_of(source, now), ""
    except SourceError as error:
        return Cluster(), f"the cluster is not known: {error}"
