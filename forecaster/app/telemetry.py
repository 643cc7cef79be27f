"""Logs and metrics of the computing process. Everything else returns values; here they become telemetry."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from forecaster.app.cluster_metrics import EffectMetrics
from forecaster.errors import StoreError

if TYPE_CHECKING:
    from prometheus_client.registry import Collector
    from structlog.typing import EventDict, Processor, WrappedLogger

    from forecaster.domain.report import CycleReport, ForecastScore
    from forecaster.domain.signal import Signal

Log: TypeAlias = structlog.stdlib.BoundLogger
FAILURES_SHOWN = 5
"""Failures of one cycle that are written out in the log; a metric counts all of them."""
OUTCOMES = ("complete", "incomplete", "failed")
"""Outcomes, all exported from the start: Prometheus sees no increase in a series that begins."""
STEP_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def configure(*, level: str = "INFO", json: bool | None = None) -> None:
    """One line per event on standard error, also for what libraries say; JSON unless a person is looking."""
    as_json = not sys.stderr.isatty() if json is None else json
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _spell_instants,
        structlog.processors.format_exc_info,
    ]
    renderer = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processor=renderer))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)  # of numpy about huge samples, else two lines that are no JSON
    logging.getLogger("forecaster").setLevel(level.upper())
    for library in ("apscheduler", "urllib3"):  # late starts and retries; what comes of them is an event of ours
        logging.getLogger(library).setLevel(logging.ERROR)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def logger() -> Log:
    """The log of this process."""
    log: Log = structlog.get_logger("forecaster")
    return log


def log_report(log: Log, report: CycleReport) -> None:
    """A cycle in one line: at debug when all went well, at warning when something is missing."""
    facts = {"at": report.at, "seconds": round(sum(report.steps.values()), 3), "workloads": report.verdicts.total()}
    if report.late_starts:
        log.warning("cycle_starts_late", at=report.at, late_starts=report.late_starts)
    if report.gates:
        log.info("gates_moved", at=report.at, moved=len(report.gates), gates=report.gates[:FAILURES_SHOWN])
    if report.moved:
        log.warning(
            "request_origin_changed", at=report.at, moved=len(report.moved), workloads=report.moved[:FAILURES_SHOWN]
        )
    if report.failures:
        log.warning("cycle_incomplete", **facts, failed=len(report.failures), failures=report.failures[:FAILURES_SHOWN])
    else:
        log.debug("cycle_complete", **facts)


def _spell_instants(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in event.items()}


class Metrics:
    """Metrics of the computing process. Labels have few values; workloads are not among them."""

    def __init__(self, version: str) -> None:
        self._registry = registry = CollectorRegistry()
        gauge, counter = partial(Gauge, registry=registry), partial(Counter, registry=registry)
        ProcessCollector(registry=registry)
        gauge("forecaster_build_info", "Always 1; the version is the label.", ["version"]).labels(version).set(1)
        self._steps = Histogram(
            "forecaster_cycle_step_seconds",
            "Time of each step of the cycle.",
            ["step"],
            buckets=STEP_BUCKETS,
            registry=registry,
        )
        self._cycles = counter("forecaster_cycles", "Cycles by outcome.", ["outcome"])
        for outcome in OUTCOMES:
            self._cycles.labels(outcome)
        self._late = counter("forecaster_late_starts", "Starts skipped because a cycle was still running.")
        self._late_steps = counter(
            "forecaster_late_steps",
            "Optional steps that found no time in their cycle and waited for the next.",
            ["step"],
        )
        self._at = gauge("forecaster_evaluation_timestamp_seconds", "Evaluation time of the last cycle.")
        self._fleet = FleetMetrics(registry)
        self._failures = counter("forecaster_failures", "Lines of failure in cycle reports.")
        self._moved = counter(
            "forecaster_request_origin_changes",
            "Workloads whose requests came from another mesh or ingress from then on.",
        )
        self._store = counter("forecaster_store_failures", "Writes that failed, by part.", ["part"])
        self._refused = gauge(
            "forecaster_state_refused_timestamp_seconds", "When a part of the stored state was refused last.", ["part"]
        )
        self._missing = gauge("forecaster_history_missing_points", "Instants still to be read.", ["signal"])
        self._loaded = gauge(
            "forecaster_settings_loaded",
            "1 where the settings that lie in the files are in force, 0 where they are refused.",
        )
        self._loaded.set(1)
        self._unloaded = gauge("forecaster_settings_waiting", "Settings that have changed and need a restart.")
        self._scores = ScoreMetrics(registry)
        self._effects = EffectMetrics(registry)

    def text(self) -> str:
        """Render all metrics in the text format of Prometheus."""
        return generate_latest(self._registry).decode()

    def record(self, report: CycleReport) -> None:
        """Record a finished cycle."""
        self._cycles.labels("incomplete" if report.failures else "complete").inc()
        self._at.set(report.at.timestamp())
        self._late.inc(report.late_starts)
        self._failures.inc(len(report.failures))
        self._moved.inc(len(report.moved))
        for step in report.late_steps:
            self._late_steps.labels(step).inc()
        for step, seconds in report.steps.items():
            self._steps.labels(step).observe(seconds)
        self._fleet.record(report)
        self._scores.add(report.scores)
        self._effects.record(report.effected)

    def settings_loaded(self, *, taken_over: bool, waiting: int) -> None:
        """The files of the settings were looked at."""
        self._loaded.set(taken_over)
        self._unloaded.set(waiting)

    def cycle_failed(self) -> None:
        """A cycle ended without a report."""
        self._cycles.labels("failed").inc()

    def state_refused(self, part: str) -> None:
        """A part of the stored state was not taken over."""
        self._refused.labels(part).set_to_current_time()

    def watch_history(self, signals: Iterable[Signal], missing: Callable[[Signal], int]) -> None:
        """Ask `missing` for the instants that a signal still lacks, whenever the metrics are read."""
        for signal in signals:
            self._missing.labels(signal).set_function(partial(missing, signal))

    def register(self, collector: Collector) -> None:
        """Ask a collector whenever the metrics are read."""
        self._registry.register(collector)

    @contextmanager
    def counting_failures(self, part: str) -> Iterator[None]:
        """Count a `StoreError` of this part and pass it on."""
        try:
            yield
        except StoreError:
            self._store.labels(part).inc()
            raise


class FleetMetrics:
    """Facts and decisions of all workloads, as counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        gauge, counter = partial(Gauge, registry=registry), partial(Counter, registry=registry)
        self._series = gauge("forecaster_series", "Workloads with history.", ["signal"])
        self._age = gauge("forecaster_newest_sample_age_seconds", "Age of the latest sample.", ["signal"])
        self._incomplete = gauge(
            "forecaster_incomplete_workloads",
            "Workloads whose latest value is part of a sum only, or cannot be; it raises counts and lowers none.",
            ["signal", "cause"],
        )
        self._decisions = counter("forecaster_decisions", "Decisions.", ["verdict", "reason"])
        self._workloads = gauge("forecaster_workloads", "Workloads by the last decision.", ["verdict", "reason"])
        self._at_maximum = gauge(
            "forecaster_at_maximum_workloads",
            "Workloads that would be given more replicas if their maximum let them.",
        )
        self._gates = gauge(
            "forecaster_gates",
            "Workloads by the state of their forecast, and whose forecast it is.",
            ["state", "forecaster"],
        )
        self._waiting = gauge(
            "forecaster_gates_waiting",
            "Workloads whose gate was not judged since the service began without it.",
        )
        self._moved = counter("forecaster_gates_moved", "Forecasts promoted or demoted.")
        self._masked = gauge(
            "forecaster_masked_ratio",
            "Share of the last week of all workloads with history in which demand was not free to show.",
            ["signal", "reason"],
        )

    def record(self, report: CycleReport) -> None:
        """Record one more cycle."""
        _replace(self._series, (((signal,), count) for signal, count in report.series.items()))
        _replace(self._age, (((signal,), age) for signal, age in report.newest_sample_age.items()))
        _replace(self._incomplete, report.incomplete.items())
        _replace(self._workloads, report.verdicts.items())
        for labels, count in report.verdicts.items():
            self._decisions.labels(*labels).inc(count)
        self._at_maximum.set(report.at_maximum)
        self._moved.inc(len(report.gates))
        self._waiting.set(report.gates_waiting)
        _replace(self._gates, report.states.items())
        self._mask(report)

    def _mask(self, report: CycleReport) -> None:
        self._masked.clear()
        for masked in report.masked:
            share = masked.share / max(1, report.series.get(masked.signal, 1))
            self._masked.labels(masked.signal, masked.reason).inc(share)


class ScoreMetrics:
    """Outcome of forecasts, as sums in the unit of the signal.

    Coverage is covered / scored, to be compared with quantiles / scored; relative error is absolute error / actual.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str) -> Counter:
            return Counter(f"forecaster_forecast_{name}", text, ["signal", "model"], registry=registry)

        self._scored = counter("scored", "Matured forecasts.")
        self._covered = counter("covered", "Matured forecasts whose peak stayed at or below the quantile.")
        self._quantiles = counter("quantiles", "Sum of the quantiles aimed at: what covered should be.")
        self._error = counter("absolute_error", "Sum of |actual - median|.")
        self._actual = counter("actual", "Sum of the measured peaks.")
        self._loss = counter("pinball_loss", "Sum of the pinball loss of the quantile.")

    def add(self, scores: Sequence[ForecastScore]) -> None:
        """Some more have matured."""
        for score in scores:
            at = (score.signal, score.model)
            self._scored.labels(*at).inc()
            self._covered.labels(*at).inc(score.covered)
            self._quantiles.labels(*at).inc(score.quantile)
            self._error.labels(*at).inc(score.absolute_error)
            self._actual.labels(*at).inc(score.actual)
            self._loss.labels(*at).inc(score.pinball_loss)


def _replace(gauge: Gauge, values: Iterable[tuple[tuple[str, ...], float]]) -> None:
    """Set the values by their labels; labels without a value have no series: absent, not zero."""
    gauge.clear()
    for labels, value in values:
        gauge.labels(*labels).set(value)
