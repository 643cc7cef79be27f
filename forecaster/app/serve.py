"""`forecaster run`: builds the service and its serving process, starts both, and stops both in order.

What can fail without stopping the main job (database, snapshot) becomes a line in the log and in every report; what it
cannot do without (its directory, its port) is refused before anything starts.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from forecaster import __version__
from forecaster.app import telemetry
from forecaster.app.clock import current
from forecaster.app.cluster_metrics import BenefitMetrics, CertificateMetrics, LiveMetrics, StatusMetrics
from forecaster.app.compose import (
    ClusterWriters,
    build_cycle,
    election_of,
    observed_cluster_client,
    origins_file,
    service_source,
)
from forecaster.app.facts import tell_facts
from forecaster.app.outlets import (
    AnnouncedTable,
    NodesText,
    node_pools,
    offer_table,
    pictures,
    remote_writers,
    serving_process,
    start_scaler,
    table_path,
)
from forecaster.app.reload import SettingsFiles, SettingsReload
from forecaster.app.restored import ReleaseState, StateBefore, StateNews, read_past, restored, state_keys, state_secret
from forecaster.app.service import Service
from forecaster.app.telemetry import Metrics
from forecaster.cycle.benefit import LiveBenefit
from forecaster.cycle.run import Cycle, Effects
from forecaster.cycle.workload_facts import encoded_facts
from forecaster.domain.window import HOUR, last_multiple
from forecaster.errors import StoreError
from forecaster.forecasting.peaks import Paths
from forecaster.kube.client import ApiError
from forecaster.kube.config import client_config_source
from forecaster.kube.objects import MetadataOnly
from forecaster.publish.beside import BENEFIT_KEY, VPAS_KEY, TextsBeside
from forecaster.publish.health import HealthHistory, settings_in_force
from forecaster.publish.new_pods import PauseMark, new_pods_path
from forecaster.publish.publisher import OfferPublisher, OfferReceiver, last_offers, published_at
from forecaster.serving.options import WRITTEN, Address
from forecaster.sources.prometheus import PrometheusSource
from forecaster.store.ledger import SqlLedger
from forecaster.store.state import BENEFIT_FILE, FOREIGN, ClusterIdentity, ObservedFile, StateSettings, claim_state

if TYPE_CHECKING:
    from forecaster.app.child import ServingProcess
    from forecaster.app.compose import ServiceFacts
    from forecaster.app.live_facts import LiveFacts
    from forecaster.app.restored import RestoredState
    from forecaster.app.sharding.cycle import ShardedCycle
    from forecaster.config.settings import Settings
    from forecaster.cycle.observed import Observed
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import WorkloadId
    from forecaster.kube.lease import Election
    from forecaster.ports import Publisher, Source
    from forecaster.publish.table import TableMeta
    from forecaster.store.history import HistoryStore

BENEFIT_INTERVAL = HOUR
"""Time between two comparisons with the HPA alone: each workload is replayed once an hour."""
IDENTITY_SECONDS = 10.0
"""Seconds that a start waits to learn which cluster its Prometheus belongs to."""
IN_SHARDS = "the histories that nodes are forecast from are with workers; `forecaster nodes` reads them itself"
"""Reason why a fleet in shards has no node pools."""


def serve(settings: Settings, clock: Callable[[], datetime] = current, files: SettingsFiles | None = None) -> int:
    """Run until SIGTERM or SIGINT; the exit code is 1 when the last cycle did not finish within its grace.

    Raises:
        StoreError: the state directory cannot be made, or nothing can listen on the address.
    """
    telemetry.configure()
    log = telemetry.logger()
    directory = state_directory(settings.state)
    stop = stop_on_signals()
    with ExitStack() as parts:
        serving = serving_process(settings, directory, log)
        program = Program(settings, directory, log, parts, stop, clock, files)
        finished = program.replicated(serving) if serving and settings.replicas.enabled else program.alone(serving)
        if serving:
            serving.stop()
        log.info("stopped", finished=finished)
    return 0 if finished else 1


class Program(NamedTuple):
    """Arguments of `forecaster run`. Both ways to run return whether the last cycle finished."""

    settings: Settings
    directory: Path
    log: telemetry.Log
    parts: ExitStack
    stop: threading.Event
    clock: Callable[[], datetime]
    files: SettingsFiles | None

    def alone(self, serving: ServingProcess | None) -> bool:
        """Compute until stopped."""
        service = self._service(self.parts, serving)
        self._start_answering(serving)
        service.schedule.start()
        self.stop.wait()
        return service.stop()

    def replicated(self, serving: ServingProcess) -> bool:
        """Compute while this replica leads, otherwise serve the leader's table."""
        from forecaster.app.replicas import Follower, Replica, leader_config  # noqa: PLC0415  only beside others

        settings, log, table = self.settings, self.log, table_path(self.directory)
        self._start_answering(serving)
        facts = service_source(settings, table, log, self.parts, self.clock)
        port = serving.secure_address.port if serving.secure_address else settings.serving.secure.port
        election = election_of(settings, self.parts, str(Address(settings.replicas.host, port)))
        if settings.resize.initial:
            election.tell_pause = PauseMark(new_pods_path(table)).put

        def taken(meta: TableMeta) -> None:
            serving.tell(WRITTEN)
            if facts.live:
                facts.live.copied(meta)

        config = leader_config(settings, client_config_source(settings.acting.kubeconfig))
        follower = Follower(table, config, taken, log, lambda: self.clock().timestamp())
        build = partial(self._service, serving=serving, facts=facts, election=election)
        return Replica(election, follower, build, serving.tell, log).run(self.stop)

    def _service(
        self,
        parts: ExitStack,
        serving: ServingProcess | None,
        facts: ServiceFacts | None = None,
        election: Election | None = None,
    ) -> Service:
        health = HealthHistory()
        service = build_service(
            self.settings,
            self.directory,
            self.log,
            parts,
            clock=self.clock,
            tell=serving.tell if serving else lambda _: None,
            facts=facts,
            election=election,
            health=health,
        )
        self._show(self.settings, health)
        if self.files:
            reload = SettingsReload(self.files, self.settings, self.log, partial(self._show, health=health))
            from forecaster.app.own_pod import settings_events  # noqa: PLC0415  only where files can be refused

            if events := settings_events(self.settings, self.clock, self.log):
                reload.on_refusal = events.tell
            service.reload = reload
        tell_facts(self.settings.serving, known_of(service.cycle), self.directory, self.log, parts)
        return service

    def _show(self, settings: Settings, health: HealthHistory) -> None:
        """Settings that are in force, with their origins, for the dashboard."""
        origins = self.files.origins() if self.files else {}
        health.settings = settings_in_force(settings.model_dump(mode="json"), origins)

    def _start_answering(self, serving: ServingProcess | None) -> None:
        settings, log = self.settings, self.log
        if serving:
            serving.start()
        start_scaler(settings, self.directory, log, self.parts)
        address = str(serving.address) if serving else "none"
        log.info("started", prometheus=settings.prometheus.url, address=address, mode=settings.policy.mode)


def build_service(
    settings: Settings,
    directory: Path,
    log: telemetry.Log,
    parts: ExitStack,
    *,
    clock: Callable[[], datetime] = current,
    tell: Callable[[bytes], None] = lambda _: None,
    facts: ServiceFacts | None = None,
    election: Election | None = None,
    health: HealthHistory | None = None,
) -> Service:
    """Return the service with its real parts, its history restored; `parts` closes them.

    `tell` is called with whether each table was written. With other replicas, their election and the source with live
    facts exist before and after the service.
    """
    now = last_multiple(clock(), settings.cycle.interval)
    address = partial(database_address, settings.state)  # it is read again after each failure
    source, live = facts or service_source(settings, table_path(directory), log, parts, clock)
    metrics, paths = Metrics(__version__), Paths()
    news = StateNews(log, metrics.state_refused)
    uid = bind_state(settings, directory, live.source.source if live else source, now, news)
    secret = state_secret(settings, parts, news)
    keys = state_keys(settings, directory, secret, news)
    release = ReleaseState(keys, secret, uid, election.holds if election else lambda: True)
    state = restored(settings, directory, address, release, now, news)
    ledger = SqlLedger(address, keep=settings.state.keep)
    state.follow(None if state.shards else origins_file(settings, source, release.keys_of_files), news)
    state.follow(live.stated_file(settings) if live else None, news)
    table = offer_table(
        settings, directory, read_past(ledger, now, log), metrics, paths, live, lambda: service.report, health
    )
    judged_here = () if state.shards else (partial(gate_unjudged, settings.policies, state.observed),)
    writers = writers_of(settings, log, parts, live, election, table.path, source, *judged_here)
    receivers: dict[str, OfferReceiver] = {"state": StateBefore(state.earned)} if election else {}
    receivers["table"] = AnnouncedTable(table, log, tell)
    receivers |= ({"live": live} if live else {}) | remote_writers(settings, parts) | writers.receivers
    receivers |= {} if state.shards else pictures(settings, table.path, state.history, paths)
    benefit = None if state.shards else LiveBenefit(settings.prices.stated)
    if benefit:
        benefit.scalers = live.source.live.scalers if live else benefit.scalers
        receivers["benefit"] = benefit
        state.follow(ObservedFile(directory / BENEFIT_FILE, benefit), news, every=BENEFIT_INTERVAL)
        table.beside[BENEFIT_KEY] = lambda: benefit.texts
        metrics.register(BenefitMetrics(lambda: benefit.view))
    publisher = OfferPublisher(
        settings.policies, receivers, before=last_offers(table.path), counting=metrics.counting_failures
    )
    parts.callback(close_ledger, ledger, log)
    watch(metrics, settings, None if state.shards else state.history, live, writers)
    nodes = table.nodes = NodesText(None, IN_SHARDS) if state.shards else NodesText(node_pools(settings))
    table.beside |= vpa_texts(settings, clock, parts)
    effects = Effects(fenced(publisher, election), ledger, writers.actuators, metrics.counting_failures)
    cycle: Cycle | ShardedCycle
    if state.shards:
        from forecaster.app.sharding.cycle import sharded_cycle  # noqa: PLC0415  only where there are shards

        cycle = sharded_cycle(settings, source, effects, state.shards, parts)
    else:
        cycle = whole_cycle(settings, source, effects, state, nodes, paths)
        cycle.benefit = benefit
    service = Service(cycle, settings.cycle, metrics, state.files, log, clock)
    service.taken_over = published_at(table.path) if election else None
    return service


def writers_of(
    settings: Settings,
    log: telemetry.Log,
    parts: ExitStack,
    live: LiveFacts | None,
    election: Election | None,
    *beside: Any,
) -> ClusterWriters:
    """Return the writers to the cluster; a service that writes nothing and has no election does not import them."""
    enabled = (settings.floor, settings.scale, settings.resize, settings.resources)
    if election is None and not any(section.enabled for section in enabled):
        return ClusterWriters()
    from forecaster.app.effects import cluster_writers  # noqa: PLC0415  only where something is enabled

    return cluster_writers(settings, log, parts, live, election, *beside)


def fenced(publisher: OfferPublisher, election: Election | None) -> Publisher:
    """Return the publisher, which publishes nothing while another replica leads."""
    if election is None:
        return publisher
    from forecaster.app.replicas import FencedPublisher  # noqa: PLC0415  only beside others

    return FencedPublisher(publisher, election.holds)


def vpa_texts(
    settings: Settings, clock: Callable[[], datetime], parts: ExitStack
) -> dict[str, Callable[[], TextsBeside]]:
    """Return the reader of VPA recommendations for a dashboard in a cluster; `parts` stops it."""
    client = observed_cluster_client(settings) if settings.serving.enabled and settings.serving.dashboard else None
    if client is None:
        return {}
    from forecaster.app.live_facts import VpaReader  # noqa: PLC0415  only beside a cluster

    reader = VpaReader(client, clock)
    reader.start()
    parts.callback(reader.close)
    return {VPAS_KEY: lambda: reader.latest}


def bind_state(settings: Settings, directory: Path, source: Source, now: datetime, news: StateNews) -> str:
    """Bind the state directory to the cluster that the source describes; state of another one is not taken over.

    Returns the UID of its kube-system, empty where that is not known.
    """
    if not isinstance(source, PrometheusSource):
        return ""
    uid = cluster_uid(settings, news.log)
    identity = identity_within(IDENTITY_SECONDS, partial(source.cluster_identity, now))
    if identity is None:
        news.log.warning(
            "state_not_bound", error=f"Prometheus did not identify its cluster within {IDENTITY_SECONDS:g} s"
        )
    if identity is None and not uid:
        return uid
    try:
        why = claim_state(directory, msgspec.structs.replace(identity or ClusterIdentity(), uid=uid))
    except StoreError as error:
        news.log.warning("state_not_bound", error=str(error))
        return uid
    if why:
        news.refused("directory", f"it is of another cluster: {why}; it was moved to {directory / FOREIGN}")
    return uid


def cluster_uid(settings: Settings, log: telemetry.Log) -> str:
    """Return the UID of kube-system; empty where the API server is disabled, or does not report it."""
    client = observed_cluster_client(settings)
    if client is None:
        return ""
    with closing(client):
        try:
            return client.get("/api/v1/namespaces/kube-system", MetadataOnly).metadata.uid
        except ApiError as error:
            log.warning(
                "cluster_uid_not_read", error=f"{error}; state is bound to the cluster as Prometheus identifies it"
            )
            return ""


def identity_within(seconds: float, ask: Callable[[], tuple[frozenset[str], frozenset[str]]]) -> ClusterIdentity | None:
    """Return what `ask` answers, None while it does not: a silent Prometheus must not keep the service from ending."""
    answers: list[ClusterIdentity] = []
    thread = threading.Thread(target=lambda: answers.append(ClusterIdentity(*ask())), name="identity", daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else None


def gate_unjudged(policies: Policies, observed: Observed, id_: WorkloadId) -> bool:
    """Whether the policy of a workload asks for a gate that has not been judged since this process began without it."""
    return policies.stated(id_).horizontal.gate and observed.gates.judged(id_) is None


def known_of(cycle: Cycle | ShardedCycle) -> Callable[[WorkloadId], bytes]:
    """Return the function for the facts of one workload: of this process, or of the worker of its shard."""
    return partial(encoded_facts, cycle) if isinstance(cycle, Cycle) else cycle.facts


def whole_cycle(
    settings: Settings, source: Source, effects: Effects, state: RestoredState, nodes: NodesText, paths: Paths
) -> Cycle:
    """Return the cycle of all workloads in this process, with its restored state."""
    cycle = build_cycle(settings, source, state.history, effects, observed=state.observed)
    cycle.nodes = nodes.pools
    if settings.serving.forecast_path:
        cycle.forecaster.paths = paths
    return cycle


def watch(
    metrics: Metrics, settings: Settings, history: HistoryStore | None, live: LiveFacts | None, writers: ClusterWriters
) -> None:
    """Register the metrics of the service's parts; its history may be with shards."""
    if history:
        totals = (measured for measured in settings.signal_table.measured if not measured.of_container)
        metrics.watch_history(totals, history.missing)
    if live:
        metrics.register(LiveMetrics(live.watches, lambda: live.source.misread))
    secure, keda = settings.serving.secure, settings.keda
    ports = {"secure": (secure.enabled, secure.certificate_file, secure.key_file)}
    ports["keda"] = (keda.enabled, keda.certificate_file, keda.key_file)
    metrics.register(
        CertificateMetrics({port: (file, key) for port, (on, file, key) in ports.items() if on and file and key})
    )
    statuses, of_policies = writers.statuses, writers.policy_statuses
    if statuses and of_policies:
        metrics.register(StatusMetrics(lambda: statuses.sender.outcomes + of_policies.sender.outcomes))


def state_directory(settings: StateSettings) -> Path:
    """The directory of everything that is kept, made if it is not there.

    Raises:
        StoreError: it cannot be made.
    """
    try:
        settings.directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"state.directory {settings.directory}: {error.strerror}; name a directory that this user may write"
        ) from error
    return settings.directory


def database_address(settings: StateSettings) -> str:
    """Return the address of the ledger.

    Raises:
        StoreError: the file that holds the address cannot be read.
    """
    if settings.database_file is None:
        return settings.database or f"sqlite:///{settings.directory / 'ledger.sqlite'}"
    try:
        return settings.database_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise StoreError(f"state.database_file {settings.database_file}: {error.strerror}") from error


def close_ledger(ledger: SqlLedger, log: telemetry.Log) -> None:
    """Write what waits; a database that is gone does not keep us."""
    try:
        ledger.close()
    except StoreError as error:
        log.warning("scores_lost", error=str(error))


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
