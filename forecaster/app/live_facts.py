"""Live facts of the service: the source with them, the overlay that passes changes to readers at once, and VPAs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forecaster.app.clock import current
from forecaster.app.compose import ServiceFacts, observed_cluster_client, wants_live, watched_kubeconfig
from forecaster.domain.report import Check
from forecaster.errors import StoreError
from forecaster.kube.client import ApiClient, ApiError, UnreachableError
from forecaster.kube.config import client_config_source
from forecaster.kube.connections import RawRequest
from forecaster.publish.beside import TextsBeside, listed_vpas_beside
from forecaster.publish.overlay import GONE, OverlayWriter, PresentWorkload, overlay_path
from forecaster.publish.values import metric_readers
from forecaster.resources.neighbours import VPAS, neighbours_of
from forecaster.sources.live import PAST_SECONDS, LiveCluster
from forecaster.sources.live_objects import BUILT_IN_KINDS
from forecaster.sources.live_source import LiveSource
from forecaster.sources.prometheus import PrometheusSource
from forecaster.store.state import ObservedFile

if TYPE_CHECKING:
    from forecaster.app.telemetry import Log
    from forecaster.config.settings import Settings
    from forecaster.domain.workload import WorkloadId
    from forecaster.kube.watch import Watch
    from forecaster.ports import Source
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.publish.table import TableMeta
    from forecaster.sources.settings import ScalableKind
    from forecaster.sources.stated import StatedBefore
    from forecaster.vertical.recommenders.baselines import VpaSizes

STARTED_SECONDS = 10.0
"""Seconds to wait for the watches when the service starts."""
PROBE_SECONDS = 3.0
"""Interval of probes of the API server. A refusal counts as an answer."""
UNANSWERED_SECONDS = 7.0
"""Time after the last answer from which on streamed objects no longer count as complete."""
SILENT_SECONDS = 10.0
"""Time without a watch until a line reports it: a restart of an API server is shorter."""


class LiveFacts:
    """Live facts of the service: the source with them, and the overlay that passes changes to readers at once."""

    def __init__(self, source: LiveSource, client: ApiClient, table: Path, log: Log) -> None:
        self.source = source
        self._client, self._log = client, log
        self._cluster = source.live
        self._overlay = OverlayWriter(overlay_path(table), self._present, self.confirmed)
        self._cluster.changed = self._overlay.changed
        self._stop = threading.Event()
        self._threads = (
            threading.Thread(target=self._overlay.run, args=(self._stop, self._tell), name="overlay", daemon=True),
            threading.Thread(target=self._probe, name="api-server-probe", daemon=True),
        )
        self._answered = 0.0
        self.heard: Callable[[], float] = lambda: 0.0
        """Returns when the same API server last answered another request, in seconds since 1970."""
        self._away: dict[str, bool] = {}
        self._fault = ""
        self._began = time.time()
        self._copies: deque[float] = deque(maxlen=3)
        """Instants at which the last tables of another replica arrived."""

    def stated_file(self, settings: Settings) -> ObservedFile[StatedBefore]:
        """Return the file with the policies that cluster objects state."""
        return stated_file(settings, self._cluster)

    def start(self) -> None:
        """Begin to watch. Returns when everything is listed or refused, or not so soon: the first cycle is live."""
        self._cluster.start(self._client)
        for thread in self._threads:
            thread.start()
        self._cluster.wait(STARTED_SECONDS)

    def close(self) -> None:
        """Close the overlay; readers stop using facts that are no longer confirmed."""
        self._stop.set()
        self._cluster.stop(self._client)
        for thread in self._threads:
            thread.join()
        with suppress(OSError):  # one that cannot be removed lapses
            self._overlay.close()

    @property
    def watches(self) -> tuple[Watch[Any, Any], ...]:
        """Watched collections."""
        return self._cluster.watches

    def receive(self, cycle: OfferedCycle) -> None:
        """Note that a table was written: if it has live facts, older changes are in it."""
        if self.source.live_kinds(cycle.at):
            self._overlay.published(cycle.at)

    def copied(self, meta: TableMeta) -> None:
        """Note that the table of another replica was put into place.

        Its instant is by another clock than ours, by which changes are dated: changes before the table before the last
        one are in it by any clock.
        """
        self._copies.append(time.time())
        if meta.live:
            since = self._copies[0] if len(self._copies) == self._copies.maxlen else 0.0
            self._overlay.published(meta.published_at, since)

    def confirmed(self) -> float:
        """The instant up to which counts and HPAs are known, seconds since 1970."""
        known, answered = self._cluster.confirmed(), max(self._answered, self.heard())
        return known if time.time() - answered <= UNANSWERED_SECONDS else min(known, answered)

    def _probe(self) -> None:
        """Probe the API server: the streams of a hanging one are as silent as those of a quiet one.

        A renewed Lease proves the same.
        """
        while not self._stop.is_set():
            if time.time() - self.heard() > PROBE_SECONDS:
                with suppress(UnreachableError):
                    answer = self._client.exchange(RawRequest("GET", "/readyz"))
                    if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                        self._answered = time.time()
            self._stop.wait(PROBE_SECONDS)

    def _present(self, id_: WorkloadId) -> PresentWorkload:
        present = self._cluster.present(id_)
        return PresentWorkload(present.replicas, metric_readers(present.targets)) if present else PresentWorkload(GONE)

    def _tell(self) -> None:
        """Log one line whenever a collection is away for long, or back."""
        now = time.time()
        if self._overlay.fault and not self._fault:
            self._log.warning("overlay_not_written", error=self._overlay.fault)
        self._fault = self._overlay.fault
        for watch in self.watches:
            path, health, confirmed = watch.path, watch.health, watch.confirmed()
            away = health.refused or now - max(confirmed, self._began) > SILENT_SECONDS
            if (not away and not confirmed) or away is self._away.get(path):
                continue
            self._away[path] = away
            if away:
                self._log.warning("live_facts_missing", path=path, fault=health.fault or "it is being listed")
            else:
                self._log.info("live_facts", path=path, objects=len(watch.objects))


def watched_source(
    settings: Settings, source: Source, table: Path, log: Log, parts: ExitStack, clock: Callable[[], datetime]
) -> ServiceFacts:
    """Return the source with live facts over it, which are watched until `parts` close."""
    watched = live_cluster(settings)
    if watched is None or not isinstance(source, PrometheusSource):
        return ServiceFacts(source, None)
    client, cluster = watched
    over = LiveSource(source, cluster, lambda: clock().timestamp(), signals=[*settings.signal_table.by_name])
    live = LiveFacts(over, client, table, log)
    live.start()
    parts.callback(live.close)
    return ServiceFacts(live.source, live)


LISTED_SECONDS = 30.0
"""Time for which a command waits for the lists of the API server; 100,000 pods take a few seconds."""


def stated_file(settings: Settings, live: LiveCluster) -> ObservedFile[StatedBefore]:
    """Return the file with the policies that cluster objects state."""
    return ObservedFile(settings.state.directory / "stated.json", live.before)


def scalable_kinds(settings: Settings) -> tuple[ScalableKind, ...]:
    """Kinds of workloads with a scale subresource, including custom resources."""
    return BUILT_IN_KINDS + settings.kubernetes.custom_kinds


def live_cluster(settings: Settings) -> tuple[ApiClient, LiveCluster] | None:
    """The watches that the settings ask for, not yet begun; None where they ask for none."""
    given, kubeconfig = settings.kubernetes, watched_kubeconfig(settings)
    if not wants_live(settings):
        return None
    watched = [kind for kind in scalable_kinds(settings) if kind.kind in settings.queries.kinds]
    cluster = LiveCluster(watched, resources=settings.resources.enabled, pool_labels=given.pool_labels)
    return ApiClient(client_config_source(kubeconfig), connections=len(cluster.watches) + 1), cluster


def with_live_facts(settings: Settings, source: Source) -> Source:
    """A source with live facts over it, for one look; a fault of its inventory says what could not be listed."""
    watched = live_cluster(settings)
    if watched is None or not isinstance(source, PrometheusSource):
        return source
    with suppress(StoreError):  # whose file that is says so itself
        stated_file(settings, watched[1]).load()
    cluster = listed_once(*watched)
    return LiveSource(source, cluster, tells=True, signals=[*settings.signal_table.by_name])


def vpas_of(settings: Settings, at: datetime) -> tuple[Mapping[WorkloadId, tuple[VpaSizes, ...]], str]:
    """Return the recommendations of VPAs, by workload, and why they are not known.

    Empty for an instant in the past, and where the API server is disabled.
    """
    past = current().timestamp() - at.timestamp() > PAST_SECONDS
    client = None if past else observed_cluster_client(settings)
    if client is None:
        return {}, ""
    try:
        return listed_vpas(client)
    except ApiError as error:
        return {}, f"VPAs are not known: {error}"
    finally:
        client.close()


def listed_vpas(client: ApiClient) -> tuple[Mapping[WorkloadId, tuple[VpaSizes, ...]], str]:
    """Return the recommendations of VPAs, by workload, and why they are not known. Empty where there are no VPAs.

    Raises:
        UnreachableError: the API server does not answer.
    """
    neighbours = neighbours_of(client, (VPAS,))
    return neighbours.sizes(), neighbours.not_known(VPAS)


def live_checks(settings: Settings) -> list[Check]:
    """Whether each collection of the API server can be listed, for `forecaster doctor`."""
    watched = live_cluster(settings)
    if watched is None:
        detail = "not read: this is no pod, and kubernetes.kubeconfig names no file; or kubernetes.live is off"
        return [Check("live facts", ok=True, detail=detail)]
    return [
        Check(
            f"live facts {watch.path}",
            ok=(listed := watch.synced.is_set()),
            detail=f"{len(watch.objects)} objects"
            if listed
            else watch.health.fault or f"no list in {LISTED_SECONDS:g} s",
            remedy="grant list and watch on it as in deploy/base/rights.yaml; until then kube-state-metrics is read",
        )
        for watch in listed_once(*watched).watches
    ]


def listed_once(client: ApiClient, cluster: LiveCluster) -> LiveCluster:
    """The cluster with everything listed that may be, no longer followed."""
    cluster.start(client)
    cluster.wait(LISTED_SECONDS)
    cluster.stop(client)
    return cluster


VPA_INTERVAL = timedelta(minutes=5)
"""VPAs renew their recommendations by the minute and hardly change them; a list of 10,000 is some 20 MB."""
ENDED_SECONDS = 5.0


class VpaReader:
    """Reader of the latest list. No cycle waits for the API server: it publishes the last list."""

    def __init__(self, client: ApiClient, clock: Callable[[], datetime], every: timedelta = VPA_INTERVAL) -> None:
        self.latest = TextsBeside()
        self._client, self._clock, self._every = client, clock, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vpas", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """End it; a request that is under way is broken off."""
        self._stop.set()
        self._client.close()
        self._thread.join(ENDED_SECONDS)
        self._client.close()  # what the last request may have opened meanwhile

    def _run(self) -> None:
        while not self._stop.is_set():
            self.latest = self._listed()
            self._stop.wait(self._every.total_seconds())

    def _listed(self) -> TextsBeside:
        """List the VPAs; where they cannot be listed, return none: nothing older is shown."""
        now = self._clock()
        try:
            sizes, unknown = listed_vpas(self._client)
        except ApiError as error:
            sizes, unknown = {}, str(error)
        return listed_vpas_beside(now, sizes, unknown)
