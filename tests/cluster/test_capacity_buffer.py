"""Buffers of node pools on a real API server with the kind CapacityBuffer, by the fields that its project publishes."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from forecaster.app import telemetry
from forecaster.app.capacity_buffers import BufferWriter
from forecaster.cycle.node_forecast import NodeForecast
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from forecaster.vertical.admission.cluster import HEADROOM
from forecaster.vertical.cluster_rules.node import Node
from forecaster.vertical.cluster_rules.placement import Taint
from forecaster.vertical.cluster_rules.resource_list import parsed
from forecaster.vertical.nodes.forecast import PoolForecast
from forecaster.vertical.nodes.headroom import Headroom, buffers
from forecaster.vertical.nodes.pools import pools_of
from tests.support.builders import NOON
from tests.support.control_plane.deployed import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.control_plane.plane import ControlPlane

GROUP, PLURAL = "autoscaling.x-k8s.io", "capacitybuffers"


def text(least: int = 0) -> dict[str, Any]:
    return {"type": "string", "minLength": least}


def part(required: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, **({"required": list(required)} if required else {})}


def definition() -> dict[str, Any]:
    """Specification of a CapacityBuffer, v1beta1: its fields, their types, and both rules across fields."""
    count = {"type": "integer", "format": "int32", "minimum": 0}
    spec = part(
        podTemplateRef=part(("name",), name=text(1)),
        scalableRef=part(("kind", "name"), apiGroup=text(), kind=text(1), name=text(1)),
        replicas=count,
        percentage=count,
        limits={"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
        provisioningStrategy={**text(), "default": "buffer.x-k8s.io/active-capacity"},
    )
    one_shape = "!(has(self.podTemplateRef) && has(self.scalableRef))"
    bounded = "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)"
    spec["x-kubernetes-validations"] = [{"rule": one_shape}, {"rule": bounded}]
    schema = part(("spec",), apiVersion=text(), kind=text(), metadata={"type": "object"}, spec=spec)
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "CapacityBuffer", "listKind": "CapacityBufferList", "plural": PLURAL, "singular": "capacitybuffer"}
    approved = {"api-approved.kubernetes.io": "unapproved, a test"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}", "annotations": approved},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


@pytest.fixture(scope="module")
def with_buffers(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    folder: Path = tmp_path_factory.mktemp("buffers")
    (folder / "definition.yaml").write_text(yaml.safe_dump(definition()), encoding="utf-8")
    control_plane.install(folder)
    yield control_plane
    control_plane.uninstall(folder)


@pytest.mark.parametrize("replicas", [3, 0])
def test_the_template_and_the_buffer_of_a_pool_are_taken_as_they_are(
    with_buffers: ControlPlane, namespace: str, replicas: int
) -> None:
    tainted = Node("n1", parsed({"cpu": "4", "memory": "16Gi"}), {"karpenter.sh/nodepool": "Spot"}, (Taint("spot"),))
    (pool,) = pools_of([tainted])
    given = buffers(Headroom(pool.name, replicas, 0.5, 2.0**30, None, ""), pool, namespace)
    with_buffers.kubectl("apply", "--server-side", "--validate=strict", "-f-", given=yaml.safe_dump_all(given))
    name = f"{HEADROOM}-spot"
    path = f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/{PLURAL}/{name}"
    buffer = with_buffers.api.get(path)["spec"]
    assert (buffer["podTemplateRef"]["name"], buffer["replicas"]) == (name, replicas)
    template = with_buffers.api.get(f"/api/v1/namespaces/{namespace}/podtemplates/{name}")["template"]["spec"]
    assert template["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert template["nodeSelector"] == {"karpenter.sh/nodepool": "Spot"}


def test_a_buffer_without_a_count_would_be_refused(with_buffers: ControlPlane, namespace: str) -> None:
    """The rules of the definition are in force, so that the test above can fail."""
    endless = {"podTemplateRef": {"name": "x"}}
    document = {"apiVersion": f"{GROUP}/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": "x"}, "spec": endless}
    answer = with_buffers.api.ask("POST", f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/{PLURAL}", document)
    assert answer.status_code == 422


def allowed_by_the_page(cluster: ControlPlane, namespace: str) -> Path:
    """The client configuration of an account with the rights that docs/nodes.md names."""
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "nodes.md").read_text(encoding="utf-8"), re.DOTALL)
    role = yaml.safe_load(text)
    role["metadata"]["namespace"] = namespace
    account = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role["metadata"]["name"]}
    binding = {"kind": "RoleBinding", "metadata": role["metadata"], "roleRef": reference, "subjects": [account]}
    for document in (role, {"apiVersion": role["apiVersion"], **binding}):
        cluster.kubectl("apply", "-f-", given=yaml.safe_dump(document))
    cluster.until_allowed(f"{namespace}/default", "patch", f"{PLURAL}.{GROUP}", namespace=namespace)
    return cluster.account("default", namespace)


def test_they_are_renewed_and_another_client_s_count_stays(
    with_buffers: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def replicas() -> int:
        path = f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/{PLURAL}/{HEADROOM}-spot"
        count: int = with_buffers.api.get(path)["spec"]["replicas"]
        return count

    (pool,) = pools_of([Node("n1", parsed({"cpu": "4", "memory": "16Gi"}), {"karpenter.sh/nodepool": "Spot"})])

    def ahead(minute: int, count: int) -> NodeForecast:
        headroom = Headroom(pool.name, count, 0.5, 2.0**30, None, "two workloads grow")
        known = PoolForecast(pool, (), 0.0, 0.0, 0.0, 0.0, (), ())
        return NodeForecast(NOON + timedelta(minutes=minute), 0.95, (known,), (headroom,), ())

    with closing(ApiClient(client_config_source(allowed_by_the_page(with_buffers, namespace)))) as client:
        writer = BufferWriter(client, namespace, telemetry.logger())
        counts = []
        for minute, count in ((0, 2), (1, 4), (2, 1), (12, 1)):
            writer.renew(ahead(minute, count))
            counts.append(replicas())
        assert counts == [2, 4, 4, 1]
        other = {"apiVersion": f"{GROUP}/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": f"{HEADROOM}-spot"}}
        stated = yaml.safe_dump({**other, "spec": {"podTemplateRef": {"name": f"{HEADROOM}-spot"}, "replicas": 9}})
        with_buffers.kubectl(
            "apply", "--server-side", "--force-conflicts", "-n", namespace, "--field-manager=owner", "-f-", given=stated
        )
        writer.renew(ahead(13, 5))
        assert replicas() == 9
    assert "conflict" in capsys.readouterr().out
