"""`forecaster nodes --serve`: the node forecast, renewed every cycle, for schedulers and Prometheus."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import uvicorn

from forecaster.app import telemetry
from forecaster.app.clock import current
from forecaster.app.serve import stop_on_signals
from forecaster.app.service import Schedule
from forecaster.cli.look import Look, Observer
from forecaster.domain.window import last_multiple
from forecaster.report.nodes import metrics_text
from forecaster.serving.node_load import NodeLoad, Snapshot
from forecaster.serving.options import listen

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.config.settings import CycleSettings
    from forecaster.serving.options import Address

WATCH_STALE_INTERVALS = 3
"""Cycles that may be missed before nothing is said any more."""


@dataclass(slots=True)
class NodeWatch:
    """Looks every interval and hands over what it sees. A look that fails leaves the last one, until that is stale."""

    observer: Observer
    settings: CycleSettings
    quantile: float
    warm_minutes: int
    log: telemetry.Log
    clock: Callable[[], datetime] = current
    load: NodeLoad = field(init=False)

    def __post_init__(self) -> None:
        self.load = NodeLoad(self.clock, WATCH_STALE_INTERVALS * self.settings.interval)

    def tick(self) -> None:
        """One look; whatever happens, the next one comes."""
        now = last_multiple(self.clock() - self.settings.delay, self.settings.interval)
        try:
            self.load.replace(self._seen(self.observer.look(now)))
        except Exception:
            self.log.exception("node_forecast_failed", at=now)

    def _seen(self, look: Look) -> Snapshot:
        failures = [*look.outcome.report.failures, *([look.unknown] if look.unknown else [])]
        if failures:
            self.log.warning(
                "node_forecast_incomplete", at=look.outcome.report.at, failures=failures[: telemetry.FAILURES_SHOWN]
            )
        ahead = look.node_forecast(self.quantile, self.warm_minutes)
        return Snapshot(ahead.at, ahead.watcher, metrics_text(ahead))


def serve(watch: NodeWatch, address: Address, grace: timedelta) -> None:
    """Until SIGTERM or SIGINT. Answers come from this process: a poll each half minute does not mind a busy moment.

    Raises:
        StoreError: nothing can listen on that address.
    """
    telemetry.configure()
    listener = listen(address, "--serve HOST:PORT")
    told = stop_on_signals()
    server = uvicorn.Server(uvicorn.Config(watch.load.app(), log_level="warning", access_log=False))
    answering = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="watcher")
    schedule = Schedule(watch.tick, interval=watch.settings.interval, delay=watch.settings.delay)
    answering.start()
    schedule.start()
    told.wait()
    server.should_exit = True
    schedule.stop(grace)
    answering.join(grace.total_seconds())
