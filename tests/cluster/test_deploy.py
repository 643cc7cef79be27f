"""The manifests of deploy/, applied as they are, with real processes behind them."""

from __future__ import annotations

import base64
import os
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.support.control_plane.api import RefusedError
from tests.support.control_plane.deployed import EXTERNAL, NAMESPACE, ROOT, Deployed
from tests.support.control_plane.workloads import replicas
from tests.support.tables import publish
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.control_plane.plane import ControlPlane

VALUES = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop"
WEB = f"{VALUES}/forecaster_demand?labelSelector=workload%3Dweb%2Csignal%3Dcpu"
OF_OTHERS = ("cert-manager.io/", "monitoring.coreos.com/")
COMPONENTS = sorted(path.name for path in (ROOT / "deploy" / "components").iterdir())


@pytest.fixture(autouse=True)
def fresh(deployed: Deployed) -> None:
    """Publish a new table at the beginning of each test, as if computing went on."""
    publish(deployed.table, at=datetime.now(UTC), mode="publish")


def test_the_pods_pass_the_restricted_standard(deployed: Deployed) -> None:
    """The namespace enforces it: a pod that did not pass would not be there."""
    api = deployed.cluster.api
    wait_until(lambda: replicas(api, "forecaster", NAMESPACE).ready == 1, goal="the pod")
    job = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/forecaster-certificates"
    wait_until(lambda: api.get(job).get("status", {}).get("succeeded", 0) == 1, goal="the Job")


def test_applying_again_changes_nothing_and_keeps_the_certificate(deployed: Deployed) -> None:
    before = deployed.cluster.api.read("Secret", "forecaster-certificates", NAMESPACE)["data"]
    output = deployed.cluster.kubectl("apply", "-k", str(ROOT / "deploy" / "base"))
    changed = [line for line in output.splitlines() if not line.endswith(" unchanged")]
    assert not changed, changed
    assert deployed.cluster.api.read("Secret", "forecaster-certificates", NAMESPACE)["data"] == before
    assert deployed.cluster.api.read("APIService", EXTERNAL)["spec"]["caBundle"]


def test_its_command_is_available_even_while_prometheus_is_away(deployed: Deployed) -> None:
    """An API without endpoints would be in everybody's way: not knowing is said by it, not by its absence."""
    with deployed.run(prometheus={"url": "http://127.0.0.1:9", "retries": 0}) as process:
        deployed.cluster.until_available()
        # Until the first cycle is over, the table of before is young enough to be believed.
        unknown = {HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE}
        wait_until(lambda: deployed.cluster.api.ask("GET", WEB).status_code in unknown, goal="an honest error")
        assert deployed.cluster.api.ask("GET", WEB).json()["kind"] == "Status"
    assert process.returncode == 0


@pytest.mark.usefixtures("serving")
def test_the_api_server_reads_our_value(deployed: Deployed) -> None:
    (item,) = deployed.cluster.api.get(WEB)["items"]
    assert (item["metricName"], item["value"]) == ("forecaster_demand", "1750m")


@pytest.mark.usefixtures("serving")
def test_the_hpa_controller_may_read_it_and_others_may_not(deployed: Deployed, namespace: str) -> None:
    cluster = deployed.cluster
    for account, status in (("default", HTTPStatus.FORBIDDEN), ("horizontal-pod-autoscaler", HTTPStatus.OK)):
        place = "kube-system" if status == HTTPStatus.OK else namespace
        with closing(cluster.client(token=cluster.token(account, place))) as client:
            assert client.ask("GET", WEB).status_code == status


def test_the_account_of_the_certificates_may_do_that_and_nothing_else(deployed: Deployed) -> None:
    cluster = deployed.cluster
    with closing(cluster.client(token=cluster.token("forecaster-certificates", NAMESPACE))) as client:
        assert client.read("Secret", "forecaster-certificates", NAMESPACE)
        for forbidden in (
            lambda: client.get(f"/api/v1/namespaces/{NAMESPACE}/secrets"),
            lambda: client.read("Secret", "other", NAMESPACE),
            lambda: client.delete("Secret", "forecaster-certificates", NAMESPACE),
            lambda: client.read("APIService", "v1.apps"),
            lambda: client.get("/api/v1/pods"),
        ):
            with pytest.raises(RefusedError, match="forbidden"):
                forbidden()


def test_the_service_may_change_nothing(deployed: Deployed) -> None:
    may = deployed.cluster.kubectl(
        "auth", "can-i", "--list", f"--as=system:serviceaccount:{NAMESPACE}:forecaster", f"--namespace={NAMESPACE}"
    )
    lines = [line.rsplit("[", 1) for line in may.splitlines()[1:]]
    may_do = {
        verb for resource, verbs in lines if "[forecaster-state]" not in resource for verb in verbs.rstrip("]").split()
    }
    assert may_do <= {"get", "list", "watch", "create"}
    assert [verbs.rstrip("]").split() for resource, verbs in lines if "[forecaster-state]" in resource] == [
        ["get", "patch"]
    ]
    created = [resource for resource, verbs in lines if "create" in verbs]
    assert all("reviews" in resource for resource in created), created


@pytest.mark.usefixtures("serving")
def test_a_renewal_under_load_loses_no_request(deployed: Deployed) -> None:
    shown = certificate_in(deployed)
    with asking(deployed) as answers:
        wait_until(lambda: len(answers) > 50, goal="load")
        output = deployed.run_certificates("--renew-before=89", "--days=90")
        assert "new certificate until" in deployed.run_certificates("--renew-before=360", "--days=365"), output
        # A kubelet takes a minute to bring the Secret to the pod, the API server a moment to trust it.
        before = len(answers)
        wait_until(lambda: len(answers) > before + 50, goal="load between the two")
        deployed.mounted_certificates()
        before = len(answers)
        wait_until(lambda: len(answers) > before + 300, goal="load after the renewal")
    assert certificate_in(deployed) != shown
    assert set(answers) == {HTTPStatus.OK}


def certificate_in(deployed: Deployed) -> bytes:
    data = deployed.cluster.api.read("Secret", "forecaster-certificates", NAMESPACE)["data"]
    return base64.b64decode(data["tls.crt"])


@contextmanager
def asking(deployed: Deployed) -> Iterator[list[int]]:
    """Status codes of somebody who asks the API server for our value, again and again."""
    answers: list[int] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            answers.append(deployed.cluster.api.ask("GET", WEB).status_code)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        done.set()
        thread.join()


class TestComponents:
    @pytest.mark.parametrize("component", COMPONENTS)
    def test_each_builds_on_the_base_and_is_what_an_api_server_takes(
        self, deployed: Deployed, component: str, tmp_path: Path
    ) -> None:
        built = self.build(deployed.cluster, tmp_path, component)
        known = [each for each in built if not each["apiVersion"].startswith(OF_OTHERS)]
        text = yaml.safe_dump_all(known)
        deployed.cluster.kubectl("apply", "--dry-run=server", "-f-", given=text)

    def test_settings_of_all_of_them_together_are_good(
        self, deployed: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from forecaster.config.settings import load  # noqa: PLC0415  slow, and only this test needs it

        built = self.build(deployed.cluster, tmp_path, *COMPONENTS)
        maps = {each["metadata"]["name"].rpartition("-")[0]: each for each in built if each["kind"] == "ConfigMap"}
        settings = maps["forecaster-settings"]["data"]
        for name, text in settings.items():
            (tmp_path / name).write_text(text)
        (tmp_path / "kustomization.yaml").unlink()
        monkeypatch.setenv("FORECASTER__REPLICAS__HOST", "10.0.0.1")  # as the Deployment sets it
        loaded = load(tmp_path)
        assert loaded.policy.mode == "publish"
        assert loaded.keda.enabled
        assert loaded.state.database_file

    def test_cert_manager_takes_the_place_of_our_own_job(self, deployed: Deployed, tmp_path: Path) -> None:
        built = self.build(deployed.cluster, tmp_path, "cert-manager")
        names = {(each["kind"], each["metadata"]["name"]) for each in built}
        assert not {kind for kind, name in names if name == "forecaster-certificates"}
        (registered,) = [each for each in built if each["kind"] == "APIService"]
        assert registered["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "forecaster/forecaster"}

    @staticmethod
    def build(cluster: ControlPlane, folder: Path, *components: str) -> list[dict[str, object]]:
        overlay = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [within("base", folder)],
            "components": [within(f"components/{name}", folder) for name in components],
        }
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        return list(yaml.safe_load_all(cluster.kubectl("kustomize", str(folder))))


def within(part: str, folder: Path) -> str:
    """kustomize takes relative paths only."""
    return os.path.relpath(ROOT / "deploy" / part, folder)
