"""Neighbours of a workload, what they leave to us, and the objects that `forecaster init` proposes."""

from __future__ import annotations

from time import process_time
from typing import Any

import msgspec
import pytest
import yaml

from forecaster.domain.workload import Resources, WorkloadId
from forecaster.kube.client import ApiError, UnreachableError
from forecaster.resources.definitions import proposals
from forecaster.resources.neighbours import HPAS, SCALED_OBJECTS, VPAS, Hpa, Neighbours, VpaNeighbour, neighbours_of
from tests.support.api_objects import metadata

WEB = WorkloadId("shop", "Deployment", "web")


def scaled(name: str = "web", maker: tuple[str, str] | None = None, **annotations: str) -> dict[str, Any]:
    meta = {
        **metadata(name, owner=maker),
        "annotations": {f"autoscaling.keda.sh/{k}": v for k, v in annotations.items()},
    }
    return {"metadata": meta, "spec": {"scaleTargetRef": {"name": "web"}}}


def vpa(mode: str | None = None, **least: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    if mode:
        spec["updatePolicy"] = {"updateMode": mode}
    if least:
        spec["resourcePolicy"] = {"containerPolicies": [{"containerName": "*", "minAllowed": least}]}
    return {"metadata": metadata("web"), "spec": spec}


class Client:
    """Lists by path; a number is the status of a refusal."""

    def __init__(self, kinds: tuple[str, ...] = (SCALED_OBJECTS, VPAS), **lists: list[dict[str, Any]] | int) -> None:
        self.groups = {kind.rpartition("/")[0] for kind in kinds}
        names = {"hpas": HPAS, "keda": SCALED_OBJECTS, "vpas": VPAS}
        self.lists = {names[name]: value for name, value in lists.items()}

    def get(self, path: str, kind: Any) -> Any:
        if path in self.groups:
            return kind()
        match self.lists.get(path.partition("?")[0], 404):
            case int() as status:
                raise (ApiError("refused", status) if status else UnreachableError("nobody answers"))
            case items:
                return msgspec.json.decode(msgspec.json.encode({"metadata": {}, "items": items}), type=kind)


def known(**lists: list[dict[str, Any]] | int) -> Neighbours:
    return neighbours_of(Client(**lists))  # type: ignore[arg-type]


class TestCounts:
    def test_belong_to_a_scaled_object_also_while_it_is_paused_and_has_no_hpa(self) -> None:
        neighbours = known(keda=[scaled(**{"paused-replicas": "0"})], hpas=[])
        assert str(neighbours.scaled_object(WEB)) == "ScaledObject web (paused by autoscaling.keda.sh/paused-replicas)"

    def test_a_pause_that_is_false_is_none(self) -> None:
        assert str(known(keda=[scaled(paused="false")], hpas=[]).scaled_object(WEB)) == "ScaledObject web"

    def test_are_free_where_nothing_scales_and_kinds_are_not_there(self) -> None:
        neighbours = known(hpas=[])
        assert (neighbours.scaled_object(WEB), neighbours.not_known(SCALED_OBJECTS), neighbours.writes_sizes(WEB)) == (
            None,
            "",
            "",
        )

    def test_are_not_free_where_that_is_not_known(self) -> None:
        assert "is not known: refused" in known(hpas=[], keda=403).not_known(SCALED_OBJECTS)

    def test_are_free_where_the_refusal_is_of_a_kind_that_the_cluster_does_not_have(self) -> None:
        """The API server judges rights before it looks for the kind."""
        neighbours = neighbours_of(Client(kinds=(), hpas=[], keda=403))  # type: ignore[arg-type]
        assert neighbours.not_known(SCALED_OBJECTS) == ""

    def test_nothing_is_said_of_a_server_that_does_not_answer(self) -> None:
        with pytest.raises(UnreachableError):
            known(hpas=0)


class TestSizes:
    @pytest.mark.parametrize("mode", ["Auto", "Recreate", "Initial", "InPlaceOrRecreate", None])
    def test_belong_to_a_vpa_that_writes_them(self, mode: str | None) -> None:
        assert f"its updateMode is {mode or 'Auto'}" in known(vpas=[vpa(mode)]).writes_sizes(WEB)

    @pytest.mark.parametrize(
        ("policies", "written"),
        [
            ([], {"cpu", "memory"}),
            ([{"containerName": "*", "controlledResources": ["memory"]}], {"memory"}),
            ([{"containerName": "app", "controlledResources": ["memory"]}], {"cpu", "memory"}),
            ([{"containerName": "*", "mode": "Off"}], set()),
        ],
        ids=["none stated", "memory alone", "memory of one container", "off by container"],
    )
    def test_of_one_resource_belong_to_a_vpa_that_controls_it(
        self, policies: list[dict[str, Any]], written: set[str]
    ) -> None:
        document = vpa("Auto")
        document["spec"]["resourcePolicy"] = {"containerPolicies": policies}
        neighbours = known(vpas=[document])
        assert {each for each in ("cpu", "memory") if neighbours.writes_sizes(WEB, each)} == written

    @pytest.mark.parametrize("order", [1, -1])
    def test_belong_to_each_of_two_vpas(self, order: int) -> None:
        """The webhook takes one of them, and which one is not known."""
        pair = [vpa("Auto"), vpa("Auto")]
        for document, resource in zip(pair, ("cpu", "memory"), strict=True):
            controlled = {"containerName": "*", "controlledResources": [resource]}
            document["spec"]["resourcePolicy"] = {"containerPolicies": [controlled]}
        neighbours = known(vpas=pair[::order])
        assert all(neighbours.writes_sizes(WEB, resource) for resource in ("cpu", "memory"))

    @pytest.mark.parametrize("amount", [f"1e{'9' * 5000}", f"{'1' * 200_000}e1.5"], ids=["power", "digits"])
    def test_that_are_no_quantity_are_not_known_and_harm_no_other_vpa(self, amount: str) -> None:
        """Both pass the pattern that the definition of a VPA has for amounts."""
        document = vpa("Off")
        recommended = {"containerName": "app", "target": {"cpu": amount, "memory": "1Gi"}}
        document["status"] = {"recommendation": {"containerRecommendations": [recommended]}}
        ((sizes, _),) = known(vpas=[document, vpa("Off")]).sizes().values()
        assert sizes.containers[0].target == Resources(None, None, 2.0**30, None)

    def test_are_free_beside_one_that_is_off(self) -> None:
        assert known(vpas=[vpa("Off")]).writes_sizes(WEB) == ""

    def test_are_not_free_where_that_is_not_known(self) -> None:
        assert "is not known" in known(vpas=403).writes_sizes(WEB)


class TestProposals:
    def test_one_for_each_workload_in_mode_observe(self) -> None:
        (proposal,) = proposals(known(hpas=[scaled()], vpas=[vpa("Off", cpu="100m", memory="64Mi")]))
        assert yaml.safe_load(proposal.text()) == {
            "apiVersion": "autoscaling.forecaster.dev/v1alpha1",
            "kind": "PredictiveAutoscaler",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                "mode": "observe",
                "vertical": {"minCpu": "100m", "minMemory": "64Mi"},
            },
        }
        assert [note.partition(":")[0] for note in proposal.notes] == ["Keep HPA web", "VPA web is Off"]

    def test_the_hpa_that_keda_makes_is_not_kept_beside_it(self) -> None:
        made = scaled("keda-hpa-web", ("ScaledObject", "web"))
        (proposal,) = proposals(known(hpas=[made], keda=[scaled(paused="true")]))
        assert [note.partition(":")[0] for note in proposal.notes] == [
            "Keep ScaledObject web",
            "It is paused (autoscaling.keda.sh/paused)",
        ]

    def test_two_that_scale_one_workload_are_named(self) -> None:
        (proposal,) = proposals(known(hpas=[scaled("a"), scaled("b")]))
        assert proposal.notes[-1].startswith("2 autoscalers scale Deployment web: keep one")

    def test_two_kinds_of_one_name_have_names_of_their_own(self) -> None:
        other = scaled()
        other["spec"]["scaleTargetRef"]["kind"] = "StatefulSet"
        names = [proposal.document["metadata"]["name"] for proposal in proposals(known(hpas=[scaled(), other]))]
        assert names == ["web-deployment", "web-statefulset"]

    def test_are_one_object_whatever_a_tenant_writes_into_its_own(self) -> None:
        """Owners' kinds and targets may have several lines; what init prints is applied by who may do everything."""
        lines = "Thing\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n---\n#"
        target = WEB._replace(kind=lines)
        for hpas in ([Hpa("web", WEB, f"{lines} x")], [Hpa("a", target, ""), Hpa("b", target, "")]):
            (proposal,) = proposals(Neighbours(hpas))
            (document,) = yaml.safe_load_all(proposal.text())
            assert document["kind"] == "PredictiveAutoscaler"

    def test_of_a_large_cluster_take_a_moment(self) -> None:
        """Each workload once had looked at every HPA, ScaledObject and VPA: 4 s for this many."""
        ids = [WEB._replace(name=f"w{i}") for i in range(5_000)]
        neighbours = Neighbours(
            [Hpa(id_.name, id_, "") for id_ in ids], (), [VpaNeighbour("v", id_, "Off", {}) for id_ in ids]
        )
        began = process_time()
        assert len(proposals(neighbours)) == 5_000
        assert process_time() - began < 2
