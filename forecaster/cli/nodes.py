"""`forecaster nodes`: the coming requests of node pools, the nodes for them, and the pods that would be evicted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from prometheus_client import CollectorRegistry, Metric, make_asgi_app
from prometheus_client.registry import Collector

from forecaster.app.clock import current
from forecaster.cli.options import DemoOptions, finished, grouped
from forecaster.cli.recommend import Objects, ServerVersion
from forecaster.domain.signal import CPU
from forecaster.report.formats import NodesOutput

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from forecaster.app import telemetry
    from forecaster.app.capacity_buffers import BufferWriter
    from forecaster.cli.snapshot import CycleSnapshot, Observer
    from forecaster.config.settings import CycleSettings, Settings
    from forecaster.cycle.node_forecast import NodeForecast
    from forecaster.serving.options import Address

NO_IMAGE = (
    "name what headroom pods run: `kubectl get nodes -o jsonpath='{..status.images}'` lists the pause image that your "
    "nodes have already"
)
NO_NODES = "the recorded load has no nodes; give a cluster's with --objects: `kubectl get nodes,pods -A -o json`"


@grouped
def nodes(
    given: DemoOptions,
    output: Annotated[
        NodesOutput,
        typer.Option(
            *("--output", "-o"),
            metavar="<table|wide|json|yaml|csv|name|FOR>",
            help="Output format; FOR is headroom, capacitybuffer or metrics.",
        ),
    ] = NodesOutput.TABLE,
    quantile: Annotated[
        float,
        typer.Option("--quantile", min=0.5, max=0.99, help="Quantile of each pool's total that nodes are counted for."),
    ] = 0.95,
    warm_minutes: Annotated[
        int,
        typer.Option("--warm", metavar="MINUTES", min=1, max=1440, help="Minutes ahead that headroom pods cover."),
    ] = 30,
    image: Annotated[
        str | None, typer.Option("--image", help="Image of headroom pods, e.g. your nodes' pause image.")
    ] = None,
    serve: Annotated[
        str | None,
        typer.Option("--serve", metavar="HOST:PORT", help="Compute every cycle, and answer /metrics at this address."),
    ] = None,
    buffers: Annotated[
        str | None,
        typer.Option("--buffers", metavar="NAMESPACE", help="With --serve: keep a CapacityBuffer for each pool."),
    ] = None,
    objects: Objects = None,
    server_version: ServerVersion = None,
) -> None:
    """Requests and usage of every node pool over the coming day, nodes needed and when, headroom, memory pressure."""
    if output is NodesOutput.HEADROOM and not image:
        raise typer.BadParameter(NO_IMAGE, param_hint="--image")
    if given.demo and not objects:
        raise typer.BadParameter(NO_NODES, param_hint="--demo")
    if buffers and serve is None:
        raise typer.BadParameter("goes with --serve; `-o capacitybuffer` prints them once", param_hint="--buffers")
    if serve is not None and (given.demo or given.at):
        raise typer.BadParameter("goes on from the present minute; leave --demo and --at out", param_hint="--serve")
    from forecaster.cli.snapshot import take_demo_snapshot, take_snapshot
    from forecaster.report.nodes import print_nodes
    from forecaster.report.progress import shown_progress

    settings = given.settings
    if serve is not None:
        _serve(serve, settings, quantile, warm_minutes, objects, server_version, buffers)
        return
    with shown_progress("nodes") as shown:
        snapshot = (
            take_demo_snapshot(objects, server_version, shown, settings if given.config else None)
            if given.demo
            else take_snapshot(settings, given.at, objects, server_version, shown)
        )
        shown.began("node pools", 1.0)
        ahead = snapshot.node_forecast(quantile, warm_minutes)
    snapshot.tell_faults()
    if not snapshot.outcome.lost:
        print_nodes(ahead, output, image or "")
    finished(shown)
    if not ahead.pools:
        raise typer.Exit(1)


def _serve(
    address: str,
    settings: Settings,
    quantile: float,
    warm: int,
    objects: list[Path] | None,
    server: str | None,
    buffers: str | None,
) -> None:
    from forecaster.app import telemetry
    from forecaster.cli.snapshot import Observer
    from forecaster.domain.window import last_multiple
    from forecaster.serving.options import parse_address

    try:
        where = parse_address(address)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--serve") from error
    begin = last_multiple(current() - settings.cycle.delay, settings.cycle.interval)
    observer = Observer(settings, begin, objects, server)
    watch = NodeWatch(observer, settings.cycle, quantile, warm, telemetry.logger())
    watch.buffers = _buffer_writer(settings, buffers, watch.log) if buffers else None
    serve(watch, where, settings.cycle.grace)


def _buffer_writer(settings: Settings, namespace: str, log: telemetry.Log) -> BufferWriter:
    """Raises ClientConfigError: there is no way to the API server."""
    from forecaster.app.capacity_buffers import BufferWriter
    from forecaster.kube.client import ApiClient
    from forecaster.kube.config import client_config_source

    client = ApiClient(client_config_source(settings.acting.kubeconfig), connections=1).configured()
    return BufferWriter(client, namespace, log)


# `--serve`: the node forecast, renewed every cycle, for Prometheus and for the node autoscaler.


WATCH_STALE_INTERVALS = 3
"""Cycles that may be missed before the forecast counts as stale."""


@dataclass(slots=True, eq=False)
class NodeWatch(Collector):
    """Takes a snapshot every interval, and has its gauges. Without measurements they stay until they are stale."""

    observer: Observer
    settings: CycleSettings
    quantile: float
    warm_minutes: int
    log: telemetry.Log
    clock: Callable[[], datetime] = current
    buffers: BufferWriter | None = None
    """Writes each snapshot's request to the node autoscaler; without known nodes the last one stays."""
    latest: NodeForecast | None = None

    def collect(self) -> Iterable[Metric]:
        """Gauges of the latest forecast; none while it is stale."""
        from forecaster.report.nodes import pool_metrics

        stale_after = WATCH_STALE_INTERVALS * self.settings.interval
        if self.latest is None or self.clock() - self.latest.at > stale_after:
            return ()
        return pool_metrics(self.latest).collect()

    def tick(self) -> None:
        """Take one snapshot; whatever happens, the next one comes."""
        from forecaster.domain.window import last_multiple

        now = last_multiple(self.clock() - self.settings.delay, self.settings.interval)
        try:
            snapshot = self.observer.snapshot(now)
            self._warn_of_failures(snapshot)
            if snapshot.outcome.has_recent(CPU, WATCH_STALE_INTERVALS * self.settings.interval):
                self.latest = snapshot.node_forecast(self.quantile, self.warm_minutes)
                if self.buffers:
                    self.buffers.renew(self.latest)
        except Exception:
            self.log.exception("node_forecast_failed", at=now)

    def _warn_of_failures(self, snapshot: CycleSnapshot) -> None:
        from forecaster.app import telemetry

        failures = [*snapshot.outcome.report.failures, *([snapshot.unknown] if snapshot.unknown else [])]
        if failures:
            self.log.warning(
                "node_forecast_incomplete", at=snapshot.outcome.report.at, failures=failures[: telemetry.FAILURES_SHOWN]
            )


def metrics_app(watch: NodeWatch) -> ASGIApp:
    """Application that answers with the gauges of a watch."""
    registry = CollectorRegistry()
    registry.register(watch)
    return make_asgi_app(registry)


def serve(watch: NodeWatch, address: Address, grace: timedelta) -> None:
    """Until SIGTERM or SIGINT. Answers come from this process: a poll each half minute does not mind a busy moment.

    Raises:
        StoreError: nothing can listen on that address.
    """
    import threading

    import uvicorn

    from forecaster.app import telemetry
    from forecaster.app.serve import stop_on_signals
    from forecaster.app.service import Schedule
    from forecaster.serving.options import listen

    telemetry.configure()
    listener = listen(address, "--serve HOST:PORT")
    stopping = stop_on_signals()
    server = uvicorn.Server(uvicorn.Config(metrics_app(watch), log_level="warning", access_log=False, lifespan="off"))
    answering = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="metrics")
    schedule = Schedule(watch.tick, interval=watch.settings.interval, delay=watch.settings.delay)
    answering.start()
    schedule.start()
    stopping.wait()
    server.should_exit = True
    schedule.stop(grace)
    answering.join(grace.total_seconds())
