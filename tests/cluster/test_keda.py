"""A real KEDA reads our scaler and our JSON: from zero ahead of load, up, and its fallback while we know nothing."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx
import pytest
import yaml

from forecaster.app.child import ServingProcess
from forecaster.domain.workload import Target, TargetType
from forecaster.serving.options import Address, SecureOptions, ServingOptions
from tests.support.control_plane.binaries import why_not
from tests.support.control_plane.deployed import ROOT
from tests.support.control_plane.keda import PROGRAMS, running_keda
from tests.support.control_plane.workloads import deployment, replicas
from tests.support.integrate_page import of_kind
from tests.support.keda import ScalerProcess
from tests.support.recommendations import ahead, recommendation, signal_view, workload_id
from tests.support.tables import publish
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.control_plane.api import Api, Document
    from tests.support.control_plane.authority import KeyPair
    from tests.support.control_plane.plane import ControlPlane

pytestmark = pytest.mark.slow
HPA = "HorizontalPodAutoscaler"


@pytest.fixture(scope="module")
def keda(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    if why_not(*PROGRAMS):
        pytest.skip("no keda-operator and keda-adapter: run FORECASTER_KEDA=1 .ci/keda (about ten minutes)")
    with running_keda(control_plane):
        yield control_plane


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keda") / "table"


@pytest.fixture(scope="module")
def client(control_plane: ControlPlane) -> KeyPair:
    """Key pair that KEDA shows our scaler."""
    return control_plane.authority.issue("keda-client", common_name="keda-operator")


@pytest.fixture(scope="module")
def scaler(keda: ControlPlane, table: Path) -> Iterator[ScalerProcess]:
    server = keda.authority.issue("scaler", "localhost")
    options = ["--certificate", server.certificate, "--key", server.key, "--client-ca", keda.authority.certificate]
    with ScalerProcess(table, *map(str, options), "--client-name", "keda-operator") as running:
        yield running


def forecast(table: Path, namespace: str, requests: float, *, aged: timedelta = timedelta()) -> None:
    """Publish that so many requests a second are coming, and none is there yet."""
    at = datetime.now(UTC) - aged
    view = replace(signal_view("requests", at), measured=0.0, forecast=replace(ahead(at), peak=requests))
    row = replace(recommendation(workload_id(namespace=namespace), at=at, now=0, replicas=None), signals=(view,))
    publish(table, row, at=at, mode="publish")


def example(scaler: ScalerProcess, namespace: str, **trigger: str) -> list[Document]:
    """deploy/examples/keda-scaledobject.yaml, at our address."""
    text = (ROOT / "deploy" / "examples" / "keda-scaledobject.yaml").read_text()
    authentication, scaled = yaml.safe_load_all(text)
    for document in (authentication, scaled):
        document["metadata"]["namespace"] = namespace
    metadata = scaled["spec"]["triggers"][0]["metadata"]
    assert metadata["scalerAddress"] == "forecaster.forecaster.svc:9090"
    metadata.update({"scalerAddress": scaler.address} | trigger)
    scaled["spec"]["pollingInterval"] = 1
    return [authentication, scaled]


def secret(control_plane: ControlPlane, client: KeyPair) -> Document:
    """Secret that the example's TriggerAuthentication names."""
    files = {"ca.crt": control_plane.authority.certificate, "tls.crt": client.certificate, "tls.key": client.key}
    data = {name: base64.b64encode(file.read_bytes()).decode() for name, file in files.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "forecaster-client"}, "data": data}


def apply(cluster: ControlPlane, documents: list[Document]) -> None:
    cluster.kubectl("apply", "-f-", given=yaml.safe_dump_all(documents))


def scale_by(
    keda: ControlPlane, scaler: ScalerProcess, client: KeyPair, namespace: str, *, begin: int, **trigger: str
) -> None:
    """Create a Deployment of so many pods, and the example that scales it."""
    keda.api.create(secret(keda, client), namespace)
    keda.api.create(deployment("web", begin), namespace)
    apply(keda, example(scaler, namespace, **trigger))


def desired(api: Api, namespace: str) -> int:
    return replicas(api, "web", namespace).desired


def test_the_example_wakes_from_zero_before_the_load_and_scales(
    keda: ControlPlane, scaler: ScalerProcess, client: KeyPair, table: Path, namespace: str
) -> None:
    api = keda.api
    forecast(table, namespace, 0.0)
    scale_by(keda, scaler, client, namespace, begin=0)
    wait_until(lambda: is_true(api, namespace, "Ready"), goal="the ScaledObject")
    assert desired(api, namespace) == 0
    forecast(table, namespace, 350.0)
    wait_until(lambda: desired(api, namespace) >= 1, goal="the wake-up")
    wait_until(lambda: desired(api, namespace) == 4, goal="350 requests a second by 100")


def test_ignorance_is_keda_s_fallback_and_not_zero(
    keda: ControlPlane, scaler: ScalerProcess, client: KeyPair, table: Path, namespace: str
) -> None:
    api = keda.api
    forecast(table, namespace, 200.0)
    scale_by(keda, scaler, client, namespace, begin=1)
    wait_until(lambda: desired(api, namespace) == 2, goal="200 requests a second by 100")
    forecast(table, namespace, 200.0, aged=timedelta(hours=1))
    wait_until(lambda: is_true(api, namespace, "Fallback"), goal="the fallback")
    wait_until(lambda: desired(api, namespace) == 6, goal="the replicas of the fallback")


def test_a_trigger_that_says_too_little_is_told_so(
    keda: ControlPlane, scaler: ScalerProcess, client: KeyPair, table: Path, namespace: str
) -> None:
    """Without a fallback the trigger moves nothing: it has no number."""
    forecast(table, namespace, 200.0)
    keda.api.create(secret(keda, client), namespace)
    keda.api.create(deployment("web", 1), namespace)
    authentication, scaled = example(scaler, namespace, signal="disk")
    del scaled["spec"]["fallback"]
    apply(keda, [authentication, scaled])
    wait_until(
        lambda: "use cpu, memory, requests" in keda.programs.log("keda-operator").read_text(),
        goal="the sentence in KEDA's log",
    )
    assert desired(keda.api, namespace) == 1


def test_a_trigger_with_a_fault_falls_back_and_stops_no_other(
    keda: ControlPlane, scaler: ScalerProcess, client: KeyPair, table: Path, namespace: str
) -> None:
    """KEDA asks for targets first: while one is missing it answers no trigger, and counts no failure."""
    forecast(table, namespace, 200.0)
    scale_by(keda, scaler, client, namespace, begin=1)
    wait_until(lambda: desired(keda.api, namespace) == 2, goal="200 requests a second by 100")
    authentication, scaled = example(scaler, namespace, target="half")
    scaled["spec"]["triggers"].append(EVERY_MINUTE_EIGHT)
    apply(keda, [authentication, scaled])
    wait_until(lambda: is_true(keda.api, namespace, "Fallback"), goal="the fallback")
    wait_until(lambda: desired(keda.api, namespace) == 8, goal="the replicas of the other trigger")
    assert "trigger target: say what one replica carries" in keda.programs.log("keda-operator").read_text()


def test_the_sum_of_a_formula_does_not_grow_while_our_part_is_not_known(
    keda: ControlPlane, scaler: ScalerProcess, client: KeyPair, table: Path, namespace: str
) -> None:
    """A kept count in a sum would be more than there are at every sync, up to the maximum of the ScaledObject."""
    at = datetime.now(UTC)
    formula = Target("composite-metric", TargetType.AVERAGE_VALUE, 1.0)
    row = recommendation(workload_id(namespace=namespace), at=at, now=2, replicas=None)
    publish(table, replace(row, signals=(), targets=(formula,)), at=at, mode="publish")
    keda.api.create(secret(keda, client), namespace)
    keda.api.create(deployment("web", 2), namespace)
    authentication, scaled = example(scaler, namespace)
    del scaled["spec"]["fallback"]
    scaled["spec"]["triggers"] = [scaled["spec"]["triggers"][0] | {"name": "ours"}, EVERY_MINUTE_TWO | {"name": "two"}]
    scaled["spec"]["advanced"] = {"scalingModifiers": {"formula": "ours / 100 + two", "target": "1"}}
    apply(keda, [authentication, scaled])
    name, failed = "keda-hpa-web", "FailedGetExternalMetric"
    wait_until(lambda: keda.api.has(HPA, name, namespace), goal="the HPA of KEDA")
    wait_until(
        lambda: keda.api.condition(HPA, name, "ScalingActive", namespace).get("reason") == failed,
        goal="an HPA that holds",
    )
    assert desired(keda.api, namespace) in {0, 2}  # 0 where it has not had a count yet
    assert keda.api.read("Deployment", "web", namespace)["spec"]["replicas"] == 2


def test_its_metrics_api_trigger_reads_our_json_with_a_token(keda: ControlPlane, table: Path, namespace: str) -> None:
    api = keda.api
    forecast(table, namespace, 300.0)
    token = allowed_token(keda, namespace)
    api.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "forecaster-token"}, "data": token}, namespace
    )
    api.create(deployment("web", 1), namespace)
    with contextmanager(secure_door)(keda, table) as address:
        blocks = [each for text in of_kind("kubectl") for each in yaml.safe_load_all(text)]
        mine = [each for each in blocks if each["metadata"]["name"] in {"web-by-json", "forecaster-token"}]
        apply(keda, [moved(each, namespace, address) for each in mine])
        # 300 requests a second by the 0.35 of the page would be 858: its maxReplicaCount.
        wait_until(lambda: desired(api, namespace) == 40, goal="the HPA of the JSON")


EVERY_MINUTE_TWO = {
    "type": "cron",
    "metadata": {"timezone": "UTC", "start": "0 0 * * *", "end": "59 23 * * *", "desiredReplicas": "2"},
}
"""A second trigger, which does not depend on us: it asks for two replicas."""
EVERY_MINUTE_EIGHT = {**EVERY_MINUTE_TWO, "metadata": {**EVERY_MINUTE_TWO["metadata"], "desiredReplicas": "8"}}


class TestWhileOurScalerIsAway:
    """The fallbacks that docs/integrate.md promises for each way to read us, beside a second trigger."""

    @pytest.mark.parametrize(("threshold", "falls_back"), [(0, True), (3, False)])
    def test_a_pushed_scaler_falls_back_at_the_first_failure_or_never(
        self, keda: ControlPlane, client: KeyPair, table: Path, namespace: str, threshold: int, *, falls_back: bool
    ) -> None:
        """KEDA drops what it knows of a scaler at an uncounted failure, and then has nothing to count."""
        api = keda.api
        forecast(table, namespace, 300.0)
        with own_scaler(keda, table) as scaler:
            authentication, scaled = example(scaler, namespace)
            scaled["spec"]["triggers"].append(EVERY_MINUTE_TWO)
            scaled["spec"]["fallback"]["failureThreshold"] = threshold
            api.create(secret(keda, client), namespace)
            api.create(deployment("web", 1), namespace)
            apply(keda, [authentication, scaled])
            wait_until(lambda: desired(api, namespace) == 3, goal="300 requests a second by 100")
        if falls_back:
            wait_until(lambda: is_true(api, namespace, "Fallback"), goal="the fallback")
            wait_until(lambda: desired(api, namespace) == 6, goal="the replicas of the fallback")
            return
        before = forgotten(keda)
        wait_until(lambda: forgotten(keda) > before + 5, goal="tries of KEDA without a target")
        assert not is_true(api, namespace, "Fallback")
        assert desired(api, namespace) == 3


def own_scaler(keda: ControlPlane, table: Path) -> ScalerProcess:
    """A scaler that a test may end."""
    server = keda.authority.issue("own-scaler", "localhost")
    options = ["--certificate", server.certificate, "--key", server.key, "--client-ca", keda.authority.certificate]
    return ScalerProcess(table, *map(str, options), "--client-name", "keda-operator")


def forgotten(keda: ControlPlane) -> int:
    """Count the times that KEDA has found no target to count by."""
    return keda.programs.log("keda-operator").read_text().count("got empty metric spec")


def moved(document: Document, namespace: str, address: str) -> Document:
    """A manifest of the page in another namespace, at another address, about the signal that this table has."""
    text = yaml.safe_dump(document, width=1000).replace("namespace: shop", f"namespace: {namespace}")
    text = text.replace("forecaster.cpu", "forecaster.requests")
    text = text.replace("https://forecaster.forecaster.svc/", f"https://{address}/")
    manifest: Document = yaml.safe_load(
        text.replace("namespaces/shop", f"namespaces/{namespace}").replace("=cpu", "=requests")
    )
    return manifest


def allowed_token(cluster: ControlPlane, namespace: str) -> dict[str, str]:
    """A token of an account that may read /api/v1, as a Secret holds it."""
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    name = f"reader-{namespace}"
    rule = {"nonResourceURLs": ["/forecaster/api/v1/*"], "verbs": ["get"]}
    version = "rbac.authorization.k8s.io/v1"
    cluster.api.create({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    cluster.api.create({"apiVersion": version, "kind": "ClusterRoleBinding", **binding})
    return {"token": base64.b64encode(cluster.token("default", namespace).encode()).decode()}


def secure_door(cluster: ControlPlane, table: Path) -> Iterator[str]:
    """The serving process with TLS and rights, registered for nothing."""
    pair = cluster.authority.issue("json", "localhost")
    secure = SecureOptions(certificate=str(pair.certificate), key=str(pair.key), kubeconfig=str(cluster.kubeconfig))
    anywhere = Address("127.0.0.1", 0)
    process = ServingProcess(table, anywhere, secure_address=anywhere, options=ServingOptions(secure=secure))
    process.start()
    try:
        assert process.secure_address
        ready = f"http://{process.address}/readyz"
        wait_until(lambda: httpx.get(ready, timeout=PATIENCE).is_success, goal="the serving process")
        yield f"localhost:{process.secure_address.port}"
    finally:
        process.stop()


def is_true(api: Api, namespace: str, condition: str) -> bool:
    return api.condition("ScaledObject", "web", condition, namespace).get("status") == "True"
