"""Metrics of reads from the cluster and writes to it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from forecaster.domain.report import Effected
    from forecaster.kube.watch import Watch
    from forecaster.publish.beside import BenefitView


class StatusMetrics(Collector):
    """Statuses of PredictiveAutoscalers that were written, by what became of each."""

    def __init__(self, outcomes: Callable[[], Mapping[str, int]]) -> None:
        self._outcomes = outcomes

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of this process."""
        family = CounterMetricFamily(
            "forecaster_status_writes", "Statuses of PredictiveAutoscalers by outcome.", labels=["outcome"]
        )
        for outcome, count in list(self._outcomes().items()):
            family.add_metric([outcome], count)
        yield family


class LiveMetrics(Collector):
    """Metrics of watches at the API server, by the path of the collection."""

    def __init__(self, watches: Iterable[Watch[Any, Any]], misread: Callable[[], Sequence[object]]) -> None:
        self._watches, self._misread, self._began = watches, misread, time.time()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; a collection that was never known, for want of a right, is as old as this process."""
        age = GaugeMetricFamily("forecaster_live_age_seconds", "Age of what is known of it.", labels=["collection"])
        objects = GaugeMetricFamily("forecaster_live_objects", "Objects that are known.", labels=["collection"])
        requests = CounterMetricFamily("forecaster_live_requests", "Lists and watches sent.", labels=["collection"])
        for watch in self._watches:
            age.add_metric([watch.path], max(time.time() - (watch.confirmed() or self._began), 0.0))
            objects.add_metric([watch.path], len(watch.objects))
            requests.add_metric([watch.path], watch.health.requests)
        misread = GaugeMetricFamily(
            "forecaster_misread_hpas", "HPAs that read our demand in a way that has no answer.", len(self._misread())
        )
        yield from (age, objects, requests, misread)


class BenefitMetrics(Collector):
    """The four numbers of all workloads, beside the HPA alone; absent while they are not known."""

    def __init__(self, benefit: Callable[[], BenefitView]) -> None:
        self._benefit = benefit

    def collect(self) -> Iterator[Metric]:
        """Yield them by period and strategy, and the workloads by what forecaster was worth to them."""
        by = ["period", "strategy"]
        families = {
            "unserved_share": GaugeMetricFamily(
                "forecaster_unserved_demand_ratio", "Share of the demand above what the ready pods carried.", labels=by
            ),
            "short_minutes": GaugeMetricFamily("forecaster_short_minutes", "Minutes with any of it.", labels=by),
            "pod_hours": GaugeMetricFamily("forecaster_pod_hours", "Pod-hours of requested pods.", labels=by),
            "money": GaugeMetricFamily("forecaster_pods_money", "Money for them, by the prices stated.", labels=by),
        }
        compared = GaugeMetricFamily(
            "forecaster_compared_workloads",
            "Workloads by what forecaster was worth to them, beside the HPA alone.",
            labels=["period", "benefit"],
        )
        for period, comparison in self._benefit().periods.items():
            for strategy, numbers in (("hpa", comparison.hpa), ("forecaster", comparison.forecaster)):
                for name, family in families.items():
                    if (value := getattr(numbers, name)) is not None:
                        family.add_metric([period, strategy], value)
            for benefit in ("better", "same", "worse"):
                compared.add_metric([period, benefit], comparison.workloads.get(benefit, 0))
        yield from (*families.values(), compared)


class CertificateMetrics(Collector):
    """Ends of the certificates that our ports show: of the last pair of files that fits, absent before the first."""

    def __init__(self, files: Mapping[str, tuple[Path, Path]]) -> None:
        self._files = files
        self._ends: dict[str, float] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield the metric by the files as they are now; a port keeps its certificate while they cannot be used."""
        from forecaster.certificates.issue import end_of  # noqa: PLC0415  only beside a secure port

        name, text = "forecaster_certificate_end_timestamp_seconds", "When the certificate that a port shows ends."
        family = GaugeMetricFamily(name, text, labels=["port"])
        for port, (certificate, key) in self._files.items():
            with suppress(OSError, ValueError):
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
                self._ends[port] = end_of(certificate.read_text(encoding="utf-8")).timestamp()
        for port, end in self._ends.items():
            family.add_metric([port], end)
        yield family


class EffectMetrics:
    """Metrics of effects on the cluster."""

    def __init__(self, registry: CollectorRegistry) -> None:
        gauge, counter = partial(Gauge, registry=registry), partial(Counter, registry=registry)
        self._leading = gauge("forecaster_leader", "1 for the replica that writes, 0 for others.")
        self._states = {
            actuator: gauge(name, text, ["state"])
            for actuator, name, text in (
                ("floor", "forecaster_floors", "HPAs whose floor is raised, or refused, by why."),
                ("scale", "forecaster_scales", "Workloads whose count is ours, or refused, by why."),
                ("resize", "forecaster_resizes", "Pods that are watched after a resize, or refused one, by why."),
                (
                    "initial",
                    "forecaster_new_pod_sizes",
                    "Workloads whose new pods are offered a size, or not after a roll back.",
                ),
            )
        }
        self._writes = {
            actuator: counter(name, text, ["change", "outcome"])
            for actuator, name, text in (
                ("floor", "forecaster_floor_writes", "Writes to HPAs by change and outcome."),
                ("scale", "forecaster_scale_writes", "Writes of counts by change and outcome."),
                ("resize", "forecaster_resize_writes", "Writes to pods by change and outcome."),
            )
        }
        self._outcomes = counter(
            "forecaster_actuator_outcomes",
            "Objects of all actuators by what became of them, and why.",
            ["actuator", "outcome", "reason"],
        )
        self._braked, self._wait, self._blocked = (
            gauge(f"forecaster_actuator_{name}", text, ["actuator"])
            for name, text in (
                ("braked", "1 while an actuator lowers nothing until a person says so."),
                ("longest_wait_seconds", "Longest time in which nothing of a namespace was tried while others were."),
                ("blocked_namespaces", "Namespaces in which writes fail and none succeeds; 0 if more are written to."),
            )
        )

    def record(self, effected: Mapping[str, Effected]) -> None:
        """Count the writes of one more cycle."""
        self._leading.set(any(effect.leading for effect in effected.values()))
        for gauge in self._states.values():
            gauge.clear()
        for name, effect in effected.items():
            for state, count in effect.states.items():
                self._states[name].labels(state).set(count)
            for (change, outcome), count in effect.writes.items():
                self._writes[name].labels(change, outcome).inc(count)
            self._braked.labels(name).set(effect.braked)
            self._blocked.labels(name).set(effect.blocked)
            self._wait.labels(name).set(effect.longest_wait.total_seconds())
            for (outcome, reason), count in effect.reasons.items():
                self._outcomes.labels(name, outcome, reason).inc(count)
