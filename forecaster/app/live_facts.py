"""Live facts of the service: what is read with them, and the overlay that tells readers of changes at once."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from forecaster.app.compose import live_cluster
from forecaster.kube.client import UnreachableError
from forecaster.kube.connections import RawRequest
from forecaster.publish.overlay import GONE, OverlayWriter, PresentWorkload, overlay_path
from forecaster.publish.values import metric_readers
from forecaster.sources.factory import close, source_of
from forecaster.sources.live_source import LiveSource
from forecaster.sources.prometheus import PrometheusSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack
    from datetime import datetime
    from pathlib import Path

    from forecaster.app.telemetry import Log
    from forecaster.config.settings import Settings
    from forecaster.domain.workload import WorkloadId
    from forecaster.kube.client import ApiClient
    from forecaster.ports import Source
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.publish.table import TableMeta
    from forecaster.sources.live_objects import WatchState

STARTED_SECONDS = 10.0
"""Seconds to wait for the watches when the service starts."""
PROBE_SECONDS = 3.0
"""How often the API server is asked whether it is there. A refusal is an answer."""
UNANSWERED_SECONDS = 7.0
"""So long after its last answer, what it streamed since is no longer taken for all there is."""
SILENT_SECONDS = 10.0
"""So long a watch may be away before a line says so: a restart of an API server takes less."""


class LiveFacts:
    """Live facts of the service: the source with them, and the overlay that tells readers of changes at once."""

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

    def start(self) -> None:
        """Begin to watch. Returns when everything is listed or refused, or not so soon: the first cycle is live."""
        self._cluster.start(self._client)
        for thread in self._threads:
            thread.start()
        self._cluster.wait(STARTED_SECONDS)

    def close(self) -> None:
        """End it; what is not confirmed any more is not believed by readers."""
        self._stop.set()
        self._cluster.stop(self._client)
        for thread in self._threads:
            thread.join()
        self._overlay.close()

    def states(self) -> list[WatchState]:
        """Each collection that is watched."""
        return self._cluster.states()

    def receive(self, cycle: OfferedCycle) -> None:
        """A table was written: where it has live facts, older changes are in it."""
        if self.source.live_kinds(cycle.at):
            self._overlay.published(cycle.at)

    def copied(self, meta: TableMeta) -> None:
        """The table of another replica was put into its place.

        Its instant is by another clock than ours, by which changes are known: what came before the table before the
        last is in it by any clock.
        """
        self._copies.append(time.time())
        if meta.live:
            since = self._copies[0] if len(self._copies) == self._copies.maxlen else 0.0
            self._overlay.published(meta.published_at, since)

    def confirmed(self) -> float:
        """The instant up to which counts and HPAs are known, seconds since 1970."""
        told, answered = self._cluster.confirmed(), max(self._answered, self.heard())
        return told if time.time() - answered <= UNANSWERED_SECONDS else min(told, answered)

    def _probe(self) -> None:
        """Ask the API server whether it is there: on the streams of one that hangs nothing comes, as of a quiet one.

        A Lease that is renewed says as much.
        """
        while not self._stop.is_set():
            if time.time() - self.heard() > PROBE_SECONDS:
                with suppress(UnreachableError):
                    answer = self._client.exchange(RawRequest("GET", "/readyz"))
                    if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                        self._answered = time.time()
            self._stop.wait(PROBE_SECONDS)

    def _present(self, id_: WorkloadId) -> PresentWorkload:
        found = self._cluster.present(id_)
        return (
            PresentWorkload(GONE) if found is None else PresentWorkload(found.replicas, metric_readers(found.targets))
        )

    def _tell(self) -> None:
        """One line whenever a collection is away for long, or back."""
        now = time.time()
        if self._overlay.fault and not self._fault:
            self._log.warning("overlay_not_written", error=self._overlay.fault)
        self._fault = self._overlay.fault
        for state in self.states():
            away = state.refused or now - max(state.confirmed, self._began) > SILENT_SECONDS
            if (not away and not state.confirmed) or away is self._away.get(state.path):
                continue
            self._away[state.path] = away
            if away:
                self._log.warning("live_facts_missing", path=state.path, fault=state.fault or "it is being listed")
            else:
                self._log.info("live_facts", path=state.path, objects=state.objects)


class ServiceFacts(NamedTuple):
    """What a service reads."""

    source: Source
    live: LiveFacts | None


def service_source(
    settings: Settings, table: Path, log: Log, parts: ExitStack, clock: Callable[[], datetime]
) -> ServiceFacts:
    """What is read, with live facts over it where the settings ask for them; `parts` closes both."""
    source = source_of(settings)
    parts.callback(close, source)
    found = live_cluster(settings)
    if found is None or not isinstance(source, PrometheusSource):
        return ServiceFacts(source, None)
    client, cluster = found
    over = LiveSource(source, cluster, lambda: clock().timestamp(), signals=[*settings.signal_table.by_name])
    live = LiveFacts(over, client, table, log)
    live.start()
    parts.callback(live.close)
    return ServiceFacts(live.source, live)
