"""`forecaster run`: builds the service and its serving process, starts both, and stops both in order.

What can fail without stopping the main job (database, snapshot) becomes a line in the log and in every report; what it
cannot do without (its directory, its port) is refused before anything starts.
"""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from forecaster import __version__
from forecaster.app import telemetry
from forecaster.app.child import ScalerOptions, ServingProcess, scaler_process
from forecaster.app.clock import current
from forecaster.app.compose import (
    build_cycle,
    floor_actuator,
    nothing_observed,
    observed_file,
    origins_file,
    service_source,
)
from forecaster.app.ledger_recall import recalled
from forecaster.app.service import Persistence, Service
from forecaster.app.tape_replay import beginning
from forecaster.app.telemetry import CountedLedger, Metrics
from forecaster.domain.window import last_multiple
from forecaster.errors import StoreError
from forecaster.forecasting.paths import Paths
from forecaster.publish.decision_history import DecisionHistory
from forecaster.publish.health import HealthBook, shown_settings
from forecaster.publish.pictures import PictureFile
from forecaster.publish.publisher import OfferPublisher, last_offers
from forecaster.publish.remote_write import RemoteWriter
from forecaster.publish.table import pictures_path
from forecaster.publish.table_file import TableFile
from forecaster.serving.options import Address, SecureOptions, ServingOptions, UpstreamOptions
from forecaster.sources.tape import Tape, TapedLedger, taped
from forecaster.store.history import HistoryStore
from forecaster.store.ledger import SqlLedger
from forecaster.store.snapshot import Snapshots

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from forecaster.app.child import ChildExit
    from forecaster.config.settings import Settings, StateSettings
    from forecaster.ports import Ledger, Source
    from forecaster.publish.publisher import OfferReceiver
    from forecaster.publish.rows import OfferedCycle
    from forecaster.serving.settings import ServingSettings, UpstreamSettings
    from forecaster.sources.request_origins import Origins
    from forecaster.store.state import ObservedFile

OBSERVED_EVERY = timedelta(minutes=5)
"""From one writing of what was earned and decided to the next; a kill loses no more. 15 ms of CPU at 10,000 rows."""


def serve(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT; the exit code is 1 when the last cycle did not finish within its grace.

    Raises:
        StoreError: the state directory cannot be made, or nothing can listen on the address.
    """
    telemetry.configure()
    log = telemetry.logger()
    directory = state_directory(settings.state)
    told = stop_on_signals()
    with ExitStack() as parts:
        serving = serving_process(settings, directory, log)
        service = build_service(settings, directory, log, parts, written=serving.tell_written if serving else unheard)
        if serving:
            serving.start()
        start_scaler(settings, directory, log, parts)
        address = str(serving.address) if serving else "none"
        log.info("started", prometheus=settings.prometheus.url, address=address, mode=settings.policy.mode)
        service.schedule.start()
        told.wait()
        finished = service.stop()
        if serving:
            serving.stop()
        log.info("stopped", finished=finished)
    return 0 if finished else 1


class TableNews(Protocol):
    """Hears of each table whether it could be written."""

    def __call__(self, *, written: bool) -> None:
        """One more table was written, or could not be."""


def unheard(*, written: bool) -> None:
    """Where no process serves the table."""


@dataclass(frozen=True, slots=True)
class AnnouncedTable:
    """The table, with word of each one that is or is not written: one that is not there cannot tell so itself."""

    table: TableFile
    log: telemetry.Log
    written: TableNews

    def receive(self, cycle: OfferedCycle) -> None:
        """Write the table.

        Raises:
            StoreError: it cannot be written; the serving process and the log know of it.
        """
        try:
            self.table.receive(cycle)
        except StoreError as error:
            self.log.error("table_not_written", at=cycle.at, error=str(error))  # noqa: TRY400  a sentence says it
            self.written(written=False)
            raise
        self.written(written=True)


def build_service(
    settings: Settings,
    directory: Path,
    log: telemetry.Log,
    parts: ExitStack,
    *,
    clock: Callable[[], datetime] = current,
    written: TableNews = unheard,
) -> Service:
    """The service with its real parts, its history restored; `parts` closes them.

    `written` hears of each table whether it could be written.
    """
    now = last_multiple(clock(), settings.cycle.interval)
    history = HistoryStore(settings.signal_table.measured, settings.history, now=now)
    snapshots = Snapshots(directory / "history.snapshot", history)
    restore(snapshots, log)
    observed = observed_file(settings, nothing_observed(settings))
    restore(observed, log)
    metrics = Metrics(__version__)
    ledger = SqlLedger(database_address(settings.state), keep=settings.state.keep)
    paths = Paths()
    table = TableFile(
        table_path(directory),
        interval=settings.cycle.interval,
        version=__version__,
        gauges=settings.serving.workload_metrics,
        history=recall(ledger, now, log),
        paths=lambda: paths.kept,
        metrics=metrics.text,
        last_report=lambda: service.report,
        signals=settings.signal_table,
        live=lambda at: live.source.live_kinds(at) if live else (),
        health=HealthBook(shown_settings(settings.model_dump(mode="json", exclude_defaults=True))),
    )
    receivers: dict[str, OfferReceiver] = {"table": AnnouncedTable(table, log, written)}
    publisher = OfferPublisher(
        settings.policies, receivers, before=last_offers(table.path), counting=metrics.counting_failures
    )
    source, live = service_source(settings, table.path, log, parts, clock)
    if live:
        receivers["live"] = live
        metrics.watch_live(live.states, lambda: live.source.misread)
    receivers |= remote_writers(settings, parts)
    actuator = floor_actuator(settings, log, parts, live.source.live if live else None)
    if actuator:
        receivers["floor"] = actuator
    receivers |= pictures(settings, table.path, history, paths)
    persisted = [Persistence(snapshots, settings.cycle.snapshot_every), Persistence(observed, OBSERVED_EVERY)]
    if (origins := origins_file(settings, source)) is not None:
        restore(origins, log)
        persisted.append(Persistence(OnChange(origins), timedelta(0)))
    parts.callback(close_ledger, ledger, log)
    metrics.watch_history((one for one in settings.signal_table.measured if not one.of_container), history.missing)
    told = beginning(settings, history, now, observed=observed.observed) if settings.state.tape else b""
    taped = on_tape(settings, source, CountedLedger(ledger, metrics), told, parts)
    cycle = build_cycle(
        settings,
        taped.source,
        history,
        publisher=publisher,
        ledger=taped.ledger,
        observed=observed.observed,
        actuator=actuator,
    )
    if settings.serving.forecast_path:
        cycle.forecaster.paths = paths
    service = Service(cycle, settings.cycle, metrics, persisted, log, clock)
    return service


def pictures(settings: Settings, table: Path, history: HistoryStore, paths: Paths) -> dict[str, OfferReceiver]:
    """What the dashboard draws, where there is one; it comes after everything that a reader of numbers waits for."""
    if not (settings.serving.enabled and settings.serving.dashboard):
        return {}
    file = PictureFile(
        pictures_path(table),
        interval=settings.cycle.interval,
        version=__version__,
        signals=settings.signal_table,
        window=history.window,
        paths=lambda: paths.kept,
    )
    return {"pictures": file}


def remote_writers(settings: Settings, parts: ExitStack) -> dict[str, OfferReceiver]:
    """The one that writes offers to where the settings say, if they do; `parts` closes it."""
    if not settings.remote_write.url:
        return {}
    writer = RemoteWriter(settings.remote_write)
    parts.callback(writer.close)
    return {"remote-write": writer}


class Taped(NamedTuple):
    """Source and ledger, with or without a tape between."""

    source: Source
    ledger: Ledger


def on_tape(settings: Settings, source: Source, ledger: Ledger, told: bytes, parts: ExitStack) -> Taped:
    """What is read and decided goes on tape, too, where the settings name one; it begins with what is `told`.

    Raises:
        StoreError: the tape cannot be begun.
    """
    if settings.state.tape is None:
        return Taped(source, ledger)
    tape = Tape(settings.state.tape, told, source)
    parts.callback(tape.close)
    return Taped(taped(source, tape), TapedLedger(ledger, tape))


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


def table_path(directory: Path) -> Path:
    """The file that computing writes and serving reads."""
    return directory / "recommendations.table"


def database_address(settings: StateSettings) -> str:
    """Where the ledger is.

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


def recall(ledger: SqlLedger, now: datetime, log: telemetry.Log) -> DecisionHistory:
    """What became of each workload before this start; a database that is away leaves it unknown."""
    try:
        return recalled(ledger, now)
    except StoreError as error:
        log.warning("past_not_recalled", error=str(error))
        return DecisionHistory()


@dataclass(slots=True)
class OnChange:
    """A file that is written in the cycle in which there is something new to keep."""

    file: ObservedFile[Origins]
    written: bytes = b""

    def save(self) -> None:
        """Write it where it differs from what was written last. Raises `StoreError`."""
        kept = self.file.observed.kept()
        if kept != self.written:
            self.file.save()
            self.written = kept


def restore(snapshots: Snapshots | ObservedFile[Any], log: telemetry.Log) -> None:
    """Take over what the last run kept; without its history, everything is asked for again."""
    try:
        found = snapshots.load()
    except StoreError as error:
        log.warning("snapshot_not_restored", error=str(error))
    else:
        log.info("snapshot_restored" if found else "no_snapshot", path=str(snapshots.path))


def serving_process(settings: Settings, directory: Path, log: telemetry.Log) -> ServingProcess | None:
    """The process that answers, unless the settings say that none should."""
    if not settings.serving.enabled:
        return None

    def tell(death: ChildExit) -> None:
        log.error("serving_died", code=death.code, restart_in_seconds=death.restart_in_seconds)

    given = settings.serving
    return ServingProcess(
        table_path(directory),
        Address(given.host, given.port),
        secure_address=Address(given.secure.host, given.secure.port) if given.secure.enabled else None,
        options=serving_options(given),
        on_death=tell,
    )


def serving_options(given: ServingSettings) -> ServingOptions:
    """The settings of the serving process as it is told them."""
    stale_after, secure = given.stale_after, given.secure
    secured = SecureOptions(
        certificate=str(secure.certificate_file),
        key=str(secure.key_file),
        kubeconfig=str(secure.kubeconfig or ""),
        service=secure.service,
        upstream=upstream_adapter(secure.upstream) if secure.upstream.server else None,
    )
    return ServingOptions(
        stale_after_seconds=None if stale_after is None else stale_after.total_seconds(),
        secure=secured if secure.enabled else None,
        dashboard=given.dashboard,
    )


def upstream_adapter(given: UpstreamSettings) -> UpstreamOptions:
    """The adapter behind us as the serving process is told it."""
    address = urlsplit(given.server)
    return UpstreamOptions(address.hostname or "", address.port or 443, str(given.ca_file), str(given.token_file))


def start_scaler(settings: Settings, directory: Path, log: telemetry.Log, parts: ExitStack) -> None:
    """The process that answers KEDA, where the settings ask for it; `parts` stops it."""
    keda = settings.keda
    if not keda.enabled:
        return
    options = ScalerOptions(
        Address(keda.host, keda.port),
        certificate=keda.certificate_file,
        key=keda.key_file,
        client_ca=keda.client_ca_file,
        client_names=keda.client_names,
        stale_after=settings.serving.stale_after,
    )

    def tell(death: ChildExit) -> None:
        log.error("scaler_died", code=death.code, restart_in_seconds=death.restart_in_seconds)

    scaler = scaler_process(table_path(directory), options, on_death=tell)
    scaler.start()
    parts.callback(scaler.stop)


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set."""
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    return told
