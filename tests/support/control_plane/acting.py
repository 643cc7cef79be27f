"""A forecaster that acts on a control plane: the components of `deploy/`, and one replica composed by `app`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
import yaml

from forecaster.app.effects import actuators
from forecaster.config.settings import parse
from forecaster.domain.decision import Hold, Reason
from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from forecaster.sources.live import LiveCluster
from tests.support.control_plane.deployed import EXTERNAL, NAMESPACE, ROOT
from tests.support.decided_records import RecordPublisher
from tests.support.recommendations import recommendation, signal_view
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import ExitStack
    from pathlib import Path

    from forecaster.domain.decision import Resize
    from forecaster.domain.report import Effected
    from forecaster.ports import Source
    from tests.support.control_plane.api import Api
    from tests.support.control_plane.plane import ControlPlane


@contextmanager
def watched(kubeconfig: Path) -> Iterator[LiveCluster]:
    """Cluster as an account watches it; everything is listed, or refused."""
    client = ApiClient(client_config_source(kubeconfig), connections=8)
    cluster = LiveCluster()
    cluster.start(client)
    try:
        assert cluster.wait(60)
        yield cluster
    finally:
        cluster.stop(client)


def apply_components(plane: ControlPlane, folder: Path, *components: str) -> None:
    """`deploy/base` with these components, without the API group of metrics, which nothing serves here."""
    parts = {"resources": ["base"], "components": [f"components/{name}" for name in components]}
    relative = {
        key: [os.path.relpath(ROOT / "deploy" / part, folder) for part in value] for key, value in parts.items()
    }
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(head | relative))
    plane.kubectl("apply", "-k", str(folder))
    plane.api.delete("APIService", EXTERNAL)
    plane.until_allowed(
        f"{NAMESPACE}/forecaster", "patch", "leases.coordination.k8s.io", namespace=NAMESPACE, name="forecaster"
    )


class ActingReplica:
    """One forecaster with the account of `deploy/`, whose decisions a test names."""

    def __init__(
        self,
        plane: ControlPlane,
        parts: ExitStack,
        settings: Mapping[str, object],
        live: LiveCluster | None = None,
        table: Path | None = None,
        source: Source | None = None,
    ) -> None:
        account = str(plane.account("forecaster", NAMESPACE))
        given = {"acting": {"kubeconfig": account}, "kubernetes": {"kubeconfig": account}}
        self.settings = parse({**given, **settings}, "test")
        composed = actuators(self.settings, structlog.get_logger(), parts, live, table=table, source=source)
        assert composed is not None
        self.actuators = composed
        self.publisher = RecordPublisher(self.settings.policies, {"effects": composed})

    def until_leading(self) -> None:
        wait_until(self.actuators.election.leading, goal="the Lease")

    def publish_counts(self, counts: Mapping[WorkloadId, int], now: datetime) -> None:
        """Publish forecasts that need these counts for workloads with one pod each."""
        rows = []
        for id_, count in counts.items():
            decided = recommendation(id_, at=now, now=1, replicas=count)
            view = replace(signal_view("cpu", now), forecast_replicas=count)
            rows.append(replace(decided, signals=(view,), clamps=()))
        self.publisher.publish(now, rows)

    def cycle(
        self,
        namespace: str,
        replicas: int | None,
        *,
        at: datetime | None = None,
        name: str = "web",
        kind: str = "Deployment",
        sizes: Resize | None = None,
    ) -> Mapping[str, Effected]:
        """One cycle for a workload; None: nothing is known of its count."""
        now = at or datetime.now(UTC)
        reason = Reason.FORECAST if replicas else Reason.NO_DATA
        decided = recommendation(WorkloadId(namespace, kind, name), at=now, now=1, replicas=replicas, reason=reason)
        view = replace(signal_view("cpu", now), forecast_replicas=replicas)
        resources = sizes or Hold(Reason.SHORT_HISTORY, "nothing is known")
        self.publisher.publish(now, [replace(decided, signals=(view,), clamps=(), resources=resources)])
        return self.actuators.act(now)


def events(api: Api, namespace: str) -> list[tuple[str, str]]:
    """Our Events of a namespace."""
    documents = api.get(f"/api/v1/namespaces/{namespace}/events")["items"]
    own = (each for each in documents if each["source"].get("component") == "forecaster")
    return sorted((each["reason"], each["message"]) for each in own)
