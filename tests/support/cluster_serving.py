"""The real serving process behind a real API server, with the rights that it has in a cluster."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

import httpx

from forecaster.app.child import ServingProcess
from forecaster.domain.decision import Reason
from forecaster.domain.workload import Target, TargetType
from forecaster.serving.options import Address, SecureOptions, ServingOptions
from tests.support.control_plane.authority import Authority
from tests.support.published import publisher
from tests.support.recommendations import ahead, recommendation, signal_view, workload_id
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from forecaster.domain.decision import Recommendation
    from tests.support.control_plane.api import Document
    from tests.support.control_plane.plane import ControlPlane

GROUP, OWN_GROUP = "external.metrics.k8s.io", "metrics.forecaster.dev"
HPA_CONTROLLER = {"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": "kube-system"}
NAMES = (*(f"aggregated-{group}.default.svc" for group in ("external", "custom", "metrics")), "localhost", "127.0.0.1")
PER_REPLICA = 0.5
"""Cores that one replica should carry."""
INTERVAL_SECONDS = 1.0
"""Between two tables while a test waits."""
LAST_FOR = timedelta(minutes=1)
"""Time for which a value may be repeated that is not known any more."""


class ClusterServing:
    """Registered as the owner of the external metrics while the block lasts."""

    def __init__(self, plane: ControlPlane, folder: Path, *, stale_after: float = 5.0, **secured: Any) -> None:
        self.plane = plane
        self.issuer = Authority(folder, "forecaster-ca")
        self.table = folder / "table"
        self._publisher = publisher(self.table, publish={"last_for": "1m"})
        self._rows: Sequence[Recommendation] = ()
        self._published = 0.0
        self._complaining_from = 0
        self._complaints: list[str] = []
        me = plane.user("forecaster")
        self._certificate = self.renew()
        secure = SecureOptions(str(self._certificate.certificate), str(self._certificate.key), str(me), **secured)
        self.process = ServingProcess(
            self.table,
            Address("127.0.0.1", 0),
            secure_address=Address("127.0.0.1", 0),
            options=ServingOptions(secure=secure, stale_after_seconds=stale_after),
        )

    def renew(self, *names: str) -> Any:
        """A new serving certificate in place of the old one."""
        return self.issuer.issue("serving", *(names or NAMES))

    def __enter__(self) -> Self:
        for document in rights():
            self.plane.api.put(document)
        self._until_bound()
        self.publish()
        self.process.start()
        wait_until(self._ready, goal="the serving process")
        self.register()
        self._complaining_from = self._log.stat().st_size
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.plane.api.delete("APIService", f"v1beta1.{GROUP}")
        self.process.stop()

    @property
    def port(self) -> int:
        """Port of the secure door."""
        address = self.process.secure_address
        assert address is not None
        return address.port

    @property
    def complaints(self) -> list[str]:
        """Errors of the API server while this was registered as it should be; what it said of others is not ours."""
        self._listen()
        return self._complaints

    @contextmanager
    def disturbed(self) -> Iterator[None]:
        """Accept complaints of the API server within this block."""
        self._listen()
        yield
        self._complaining_from = self._log.stat().st_size

    def _listen(self) -> None:
        text = self._log.read_bytes()[self._complaining_from :]
        self._complaining_from += len(text)
        lines = text.decode("utf-8", "replace").splitlines()
        self._complaints += [line for line in lines if line.startswith("E") and GROUP in line]

    @property
    def _log(self) -> Path:
        return self.plane.programs.log("kube-apiserver")

    def register(self, bundle: str = "", group: str = GROUP, version: str = "v1beta1") -> None:
        """Own the group."""
        self.plane.aggregate(self.port, bundle or self.issuer.bundle, group=group)
        if not bundle:
            self.plane.until_available(group, version)

    def metrics(self) -> str:
        """Text of /metrics."""
        return self._plain("/metrics").text

    def publish(self, *rows: Recommendation, aged: timedelta = timedelta()) -> None:
        """One cycle's table, which is served when this returns."""
        self._rows = rows
        shown = self._publish(datetime.now(UTC) - aged).isoformat().replace("+00:00", "Z")
        if self.process.pid:
            wait_until(lambda: shown in self._plain("/readyz").text, goal="the new table")

    def until(self, happened: Callable[[], bool], *, goal: str) -> None:
        """Wait while cycle after cycle publishes unchanged rows: the table grows no older, however long it takes."""

        def looked() -> bool:
            if time.monotonic() - self._published > INTERVAL_SECONDS:
                self._publish(datetime.now(UTC))
            return happened()

        wait_until(looked, goal=goal)

    def _publish(self, at: datetime) -> datetime:
        self._publisher.publish(at, self._rows)
        self._published = time.monotonic()
        return at

    def abstaining(self, word: str, *rows: Recommendation) -> None:
        """Publish rows under a policy that abstains with this word."""
        self._publisher = publisher(self.table, publish={"last_for": "1m", "abstain": word})
        self.publish(*rows)

    def _until_bound(self) -> None:
        self.plane.until_allowed("forecaster", "create", "subjectaccessreviews.authorization.k8s.io")
        self.plane.until_allowed(
            "forecaster", "get", "configmaps", namespace="kube-system", name="extension-apiserver-authentication"
        )
        self.plane.until_allowed("kube-system/horizontal-pod-autoscaler", "list", f"forecaster_demand.{GROUP}")

    def _ready(self) -> bool:
        return self._plain("/readyz").status_code == 200

    def _plain(self, path: str) -> httpx.Response:
        return httpx.get(f"http://{self.process.address}{path}", timeout=PATIENCE, verify=False)  # noqa: S501  plain http


def known(namespace: str, name: str, cores: float, now: int, *, aged: timedelta = timedelta()) -> Recommendation:
    """A workload whose forecast is that many cores; `aged` is how old its newest sample is."""
    at = datetime.now(UTC) - aged
    view = replace(signal_view("cpu", at), measured=0.1, forecast=replace(ahead(at), peak=cores))
    return replace(_row(namespace, name, now, at, replicas=5), signals=(view,))


def unknown(namespace: str, name: str, now: int) -> Recommendation:
    """A workload of which nothing is known any more."""
    return replace(_row(namespace, name, now, datetime.now(UTC), replicas=None), signals=())


def _row(namespace: str, name: str, now: int, at: datetime, replicas: int | None) -> Recommendation:
    reason = Reason.NO_DATA if replicas is None else Reason.FORECAST
    row = recommendation(workload_id(name, namespace), at=at, now=now, replicas=replicas, reason=reason)
    return replace(row, targets=(Target("forecaster_demand", TargetType.AVERAGE_VALUE, PER_REPLICA),))


def autoscaler(name: str, *more: Document, highest: int = 30) -> Document:
    """An HPA on the forecast demand, scaling without delay."""
    metric = {
        "type": "External",
        "external": {
            "metric": {
                "name": "forecaster_demand",
                "selector": {"matchLabels": {"workload": name, "signal": "cpu"}},
            },
            "target": {"type": "AverageValue", "averageValue": f"{PER_REPLICA * 1000:.0f}m"},
        },
    }
    fast = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}]}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": highest,
            "metrics": [metric, *more],
            "behavior": {"scaleUp": fast, "scaleDown": fast},
        },
    }


def rights() -> list[Document]:
    """Rights of the serving process and of the HPA controller."""
    me = {"kind": "User", "name": "forecaster", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    reading = {"apiGroups": [GROUP, "custom.metrics.k8s.io", OWN_GROUP], "resources": ["*"], "verbs": ["get", "list"]}
    looking = {"apiGroups": ["apiregistration.k8s.io"], "resources": ["apiservices"], "verbs": ["get"]}
    kinds = "rbac.authorization.k8s.io/v1"
    return [
        {
            "apiVersion": kinds,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "forecaster-delegates"},
            "roleRef": {**role, "name": "system:auth-delegator"},
            "subjects": [me],
        },
        {
            "apiVersion": kinds,
            "kind": "RoleBinding",
            "metadata": {"name": "forecaster-reads-front-proxy", "namespace": "kube-system"},
            "roleRef": {**role, "kind": "Role", "name": "extension-apiserver-authentication-reader"},
            "subjects": [me],
        },
        {"apiVersion": kinds, "kind": "ClusterRole", "metadata": {"name": "metric-reader"}, "rules": [reading]},
        {"apiVersion": kinds, "kind": "ClusterRole", "metadata": {"name": "owner-watch"}, "rules": [looking]},
        {
            "apiVersion": kinds,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "forecaster-watches-owners"},
            "roleRef": {**role, "name": "owner-watch"},
            "subjects": [me],
        },
        {
            "apiVersion": kinds,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "hpa-reads-metrics"},
            "roleRef": {**role, "name": "metric-reader"},
            "subjects": [HPA_CONTROLLER],
        },
    ]
