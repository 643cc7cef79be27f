"""Health of workloads: pods as they are watched, and the signals of errors that policies name, asked once a cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np

from forecaster.actuators.rollback import Health
from forecaster.actuators.writes import AuditLog
from forecaster.domain.policies import Policies
from forecaster.domain.signal import Signal
from forecaster.domain.workload import WorkloadId
from forecaster.errors import SourceError
from forecaster.ports import Source
from forecaster.sources.live import LiveCluster
from forecaster.sources.live_objects import LivePod
from forecaster.sources.queries import ERROR_SIGNAL_PREFIX

BLINK_SECONDS = 60.0
"""A pod that is not ready for less has failed a probe; it still counts."""


class WorkloadHealth:
    """Health of workloads (`HealthAt`): pods of the `live` cluster, errors from the `source`, where these exist."""

    def __init__(self, live: LiveCluster | None, source: Source | None, policies: Policies, log: AuditLog) -> None:
        self._live, self._source, self._policies, self._log = live, source, policies, log
        self._asked: tuple[datetime, dict[str, Mapping[WorkloadId, float]]] | None = None
        self._failed: dict[str, str] = {}

    def __call__(self, since: Mapping[WorkloadId, datetime], now: datetime) -> dict[WorkloadId, Health]:
        """Return the health of these workloads now."""
        pods = self._live.living(since) if self._live else None
        return {id_: self._of(id_, pods, from_, now) for id_, from_ in since.items()}

    def _of(
        self, id_: WorkloadId, pods: Mapping[WorkloadId, Sequence[LivePod]] | None, since: datetime, now: datetime
    ) -> Health:
        stated = self._policies.stated(id_).rollback
        errors = self._errors(stated.errors, now).get(id_) if stated.errors else None
        limit = stated.limit if stated.errors else None
        workload = self._live.workload(id_) if self._live else None
        if pods is None or workload is None:
            return Health(errors=errors, limit=limit)
        own_pods = pods.get(id_, ())
        return Health(
            desired=workload.replicas,
            ready=sum(serves(pod, now.timestamp()) for pod in own_pods),
            restarted=sum(has_restarted(pod, since.timestamp()) for pod in own_pods),
            failing=sum(fails(pod, now.timestamp()) for pod in own_pods),
            # The revision of a StatefulSet, else the owners of its pods.
            release=workload.revision or ", ".join(sorted({pod.owner.name for pod in own_pods})),
            errors=errors,
            limit=limit,
        )

    def _errors(self, name: str, now: datetime) -> Mapping[WorkloadId, float]:
        """Return the signal of this name at the instant of a cycle; empty while it cannot be read, or is incomplete."""
        if self._asked is None or self._asked[0] != now:
            self._asked = (now, {})
        answered = self._asked[1]
        if name not in answered:
            answered[name] = self._latest(name, now)
        return answered[name]

    def _latest(self, name: str, now: datetime) -> Mapping[WorkloadId, float]:
        fault, values = "", {}
        if self._source is not None:
            try:
                block = self._source.latest(Signal(f"{ERROR_SIGNAL_PREFIX}{name}", unit=""), now)
                fault = block.partial
                values = dict(zip(block.ids, block.values[:, -1].tolist(), strict=True))
            except SourceError as error:
                fault = str(error)
        if fault and self._failed.get(name) != fault:
            self._log.warning("errors_not_known", signal=name, error=fault)
        self._failed[name] = fault
        return {} if fault else {id_: value for id_, value in values.items() if np.isfinite(value)}


def serves(pod: LivePod, now: float) -> bool:
    """Whether a pod serves, or has not been ready only for a moment."""
    return pod.ready > 0 and (pod.unready == 0 or now - pod.unready < BLINK_SECONDS)


def fails(pod: LivePod, now: float) -> bool:
    """Whether a pod that served does not any more although its node answers: not one that is evicted, or starts."""
    return pod.ready > 0 and not pod.lost and not serves(pod, now)


def has_restarted(pod: LivePod, since: float) -> bool:
    """Whether a container of the pod restarted since an instant; more than once if the pod is younger."""
    return pod.restarted >= since and pod.restarts > (1 if pod.created >= since else 0)
