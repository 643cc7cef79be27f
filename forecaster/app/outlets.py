"""Outputs of the computing process: table, pictures, node pools, remote write, and the processes that answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from forecaster import __version__
from forecaster.app.child import ServingProcess, scaler_process
from forecaster.app.facts import SOCKET
from forecaster.errors import StoreError
from forecaster.publish.health import HealthHistory, settings_in_force
from forecaster.publish.new_pods import new_pods_path
from forecaster.publish.pictures import PictureFile
from forecaster.publish.table import pictures_path
from forecaster.publish.table_file import TableFile
from forecaster.serving.options import NOT_WRITTEN, WRITTEN, Address, SecureOptions, ServingOptions, UpstreamOptions
from forecaster.sources import factory

if TYPE_CHECKING:
    from contextlib import ExitStack

    from forecaster.app import telemetry
    from forecaster.app.live_facts import LiveFacts
    from forecaster.app.telemetry import Metrics
    from forecaster.config.settings import Settings
    from forecaster.cycle.node_forecast import NodeForecast, NodePools
    from forecaster.domain.report import CycleReport
    from forecaster.forecasting.peaks import Paths
    from forecaster.publish.decision_history import DecisionHistory
    from forecaster.publish.publisher import OfferedCycle, OfferReceiver
    from forecaster.serving.settings import ServingSettings
    from forecaster.store.history import HistoryStore
    from forecaster.vertical.admission.cluster import Cluster

REPORT = "report.html"
"""Name of the weekly report in the state directory, unless the settings name another file."""


def serving_process(settings: Settings, directory: Path, log: telemetry.Log) -> ServingProcess | None:
    """The process that answers, unless the settings say that none should."""
    if not settings.serving.enabled:
        return None
    given = settings.serving
    return ServingProcess(
        table_path(directory),
        Address(given.host, given.port),
        secure_address=Address(given.secure.host, given.secure.port) if given.secure.enabled else None,
        options=serving_options(
            given,
            replicas=settings.replicas.enabled,
            facts=str(directory / SOCKET),
            lease=settings.acting.lease if settings.floor.enabled or settings.scale.enabled else "",
            report=str(given.report or directory / REPORT),
            new_pods=str(new_pods_path(table_path(directory))) if settings.resize.initial else "",
        ),
        on_death=lambda death: log.error("serving_died", **asdict(death)),
    )


def serving_options(
    given: ServingSettings,
    *,
    replicas: bool = False,
    facts: str = "",
    lease: str = "",
    report: str = "",
    new_pods: str = "",
) -> ServingOptions:
    """Return the options of the serving process.

    `facts` is the socket for facts of workloads, `lease` the Lease of the replica that writes, `report` the page of the
    latest week, `new_pods` the file with sizes of new pods.
    """
    stale_after, secure = given.stale_after, given.secure
    adapter = urlsplit(secure.upstream.server)
    trusted = str(secure.upstream.ca_file), str(secure.upstream.token_file)
    secured = SecureOptions(
        certificate=str(secure.certificate_file),
        key=str(secure.key_file),
        kubeconfig=str(secure.kubeconfig or ""),
        service=secure.service,
        upstream=UpstreamOptions(adapter.hostname or "", adapter.port or 443, *trusted) if adapter.hostname else None,
        lease=lease,
        certified_reviews=secure.certified_reviews,
    )
    return ServingOptions(
        stale_after_seconds=None if stale_after is None else stale_after.total_seconds(),
        secure=secured if secure.enabled else None,
        dashboard=given.dashboard,
        replicas=replicas,
        new_pods=new_pods,
        facts=facts,
        report=report if given.dashboard else "",
        zone=given.holidays.zone,
        countries=given.holidays.countries,
    )


def start_scaler(settings: Settings, directory: Path, log: telemetry.Log, parts: ExitStack) -> None:
    """The process that answers KEDA, where the settings ask for it; `parts` stops it."""
    if not settings.keda.enabled:
        return
    scaler = scaler_process(
        table_path(directory),
        settings.keda,
        settings.serving.stale_after,
        on_death=lambda death: log.error("scaler_died", **asdict(death)),
    )
    scaler.start()
    parts.callback(scaler.stop)


def table_path(directory: Path) -> Path:
    """The file that computing writes and serving reads."""
    return directory / "recommendations.table"


@dataclass(frozen=True, slots=True)
class AnnouncedTable:
    """The table, and a message about each one that is or is not written: a missing table cannot say so itself."""

    table: TableFile
    log: telemetry.Log
    tell: Callable[[bytes], None]
    """Tells the serving process."""

    def receive(self, cycle: OfferedCycle) -> None:
        """Write the table.

        Raises:
            StoreError: it cannot be written; the serving process and the log are informed.
        """
        try:
            self.table.receive(cycle)
        except StoreError as error:
            self.log.error("table_not_written", at=cycle.at, error=str(error))  # noqa: TRY400  a sentence says it
            self.tell(NOT_WRITTEN)
            raise
        self.tell(WRITTEN)


def offer_table(
    settings: Settings,
    directory: Path,
    past: DecisionHistory,
    metrics: Metrics,
    paths: Paths,
    live: LiveFacts | None,
    last_report: Callable[[], CycleReport | None],
    health: HealthHistory | None = None,
) -> TableFile:
    """Return the table file that the serving process reads, with the texts beside the offers."""
    return TableFile(
        table_path(directory),
        interval=settings.cycle.interval,
        version=__version__,
        gauges=settings.serving.workload_metrics,
        history=past,
        paths=lambda: paths.by_workload,
        metrics=metrics.text,
        last_report=last_report,
        signals=settings.signal_table,
        live=lambda at: live.source.live_kinds(at) if live else (),
        prices=settings.prices.stated,
        health=health or HealthHistory(settings_in_force(settings.model_dump(mode="json"), {})),
    )


def pictures(settings: Settings, table: Path, history: HistoryStore, paths: Paths) -> dict[str, OfferReceiver]:
    """Return the writer of the dashboard's pictures, if any; it runs after all that readers of numbers need."""
    if not (settings.serving.enabled and settings.serving.dashboard):
        return {}
    file = PictureFile(
        pictures_path(table),
        interval=settings.cycle.interval,
        version=__version__,
        signals=settings.signal_table,
        window=history.window,
        paths=lambda: paths.by_workload,
    )
    return {"pictures": file}


def remote_writers(settings: Settings, parts: ExitStack) -> dict[str, OfferReceiver]:
    """Return the remote writer of the settings, if there is one; `parts` closes it."""
    if not settings.remote_write.url:
        return {}
    from forecaster.publish.remote_write import RemoteWriter  # noqa: PLC0415  only where an address is stated

    writer = RemoteWriter(settings.remote_write)
    parts.callback(writer.close)
    return {"remote-write": writer}


PRESSURES_SHOWN = 20
"""Nodes shown whose memory may run out, the most likely first."""


def node_pools(settings: Settings) -> NodePools | None:
    """Return the reader of nodes; None where nothing shows them, or the source is not Prometheus."""
    serving = settings.serving
    shown = serving.enabled and serving.dashboard and serving.nodes_every > timedelta(0)
    if not shown or settings.source.kind != "prometheus":
        return None
    from forecaster.cycle.node_forecast import NodePools  # noqa: PLC0415  only where a dashboard shows nodes
    from forecaster.sources.cluster_facts import cluster_of  # noqa: PLC0415

    source = factory.prometheus(settings.prometheus, settings.queries, settings.signals)

    def read(now: datetime) -> Cluster:
        return cluster_of(source, now)

    return NodePools(read, serving.nodes_every)


@dataclass(slots=True)
class NodesText:
    """The newest forecast of nodes as JSON."""

    pools: NodePools | None
    absent: str = "the service does not read nodes; `forecaster nodes` says what it needs"
    """Reason why there are no pools, where there are none."""
    _of: NodeForecast | None = None
    _text: bytes = b""

    def __call__(self) -> bytes:
        """Return the present text."""
        if self.pools is None:
            return refused(self.absent)
        latest = self.pools.latest
        if latest is None:
            return refused(self.pools.refused or "nodes are read after the first cycle")
        if latest is not self._of:
            self._of, self._text = latest, msgspec.json.encode(_shown(latest) | {"refused": self.pools.refused})
        return self._text


def _shown(latest: NodeForecast) -> dict[str, Any]:
    """Return the document without the counts of each workload in each window: they are as many as workloads."""
    from forecaster.cycle.node_document import document  # noqa: PLC0415  only where a dashboard shows nodes

    shown: dict[str, Any] = msgspec.to_builtins(document(latest))
    for pool in shown["pools"]:
        for window in pool["windows"]:
            del window["replicas"]
    shown["memory_pressure"] = shown["memory_pressure"][:PRESSURES_SHOWN]
    return shown


def refused(why: str) -> bytes:
    """Return why nodes are not known, as JSON."""
    return msgspec.json.encode({"refused": why})
