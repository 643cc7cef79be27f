"""What stands beside a workload, what it leaves to us, and what `forecaster init` makes of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml

from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiError, UnreachableError
from forecaster.resources.neighbours import HPAS, SCALED_OBJECTS, VPAS, Neighbours, neighbours_of
from forecaster.resources.proposals import proposals
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

    def __init__(self, **lists: list[dict[str, Any]] | int) -> None:
        names = {"hpas": HPAS, "keda": SCALED_OBJECTS, "vpas": VPAS}
        self.lists = {names[name]: value for name, value in lists.items()}

    def get(self, path: str, kind: Any) -> Any:
        match self.lists.get(path.partition("?")[0], 404):
            case int() as status:
                raise (ApiError("refused", status) if status else UnreachableError("nobody answers"))
            case items:
                return msgspec.json.decode(msgspec.json.encode({"items": items}), type=kind)


def known(**lists: list[dict[str, Any]] | int) -> Neighbours:
    return neighbours_of(Client(**lists))  # type: ignore[arg-type]


class TestCounts:
    def test_belong_to_an_hpa(self) -> None:
        assert known(hpas=[scaled()]).writes_count(WEB) == "HPA web scales it"

    def test_belong_to_a_scaled_object_also_while_it_is_paused_and_has_no_hpa(self) -> None:
        found = known(keda=[scaled(**{"paused-replicas": "0"})], hpas=[])
        assert found.writes_count(WEB) == "ScaledObject web scales it, paused by autoscaling.keda.sh/paused-replicas"

    def test_a_pause_that_is_false_is_none(self) -> None:
        assert known(keda=[scaled(paused="false")], hpas=[]).writes_count(WEB) == "ScaledObject web scales it"

    def test_are_free_where_nothing_scales_and_kinds_are_not_there(self) -> None:
        assert known(hpas=[]).writes_count(WEB) == ""

    def test_are_not_free_where_that_is_not_known(self) -> None:
        assert "is not known: refused" in known(hpas=[], keda=403).writes_count(WEB)

    def test_nothing_is_said_of_a_server_that_does_not_answer(self) -> None:
        with pytest.raises(UnreachableError):
            known(hpas=0)


class TestSizes:
    @pytest.mark.parametrize("mode", ["Auto", "Recreate", "Initial", "InPlaceOrRecreate", None])
    def test_belong_to_a_vpa_that_writes_them(self, mode: str | None) -> None:
        assert f"its updateMode is {mode or 'Auto'}" in known(vpas=[vpa(mode)]).writes_sizes(WEB)

    def test_are_free_beside_one_that_is_off(self) -> None:
        assert known(vpas=[vpa("Off")]).writes_sizes(WEB) == ""

    def test_are_not_free_where_that_is_not_known(self) -> None:
        assert "is not known" in known(vpas=403).writes_sizes(WEB)


class TestProposals:
    def test_one_for_each_workload_in_mode_observe(self) -> None:
        (one,) = proposals(known(hpas=[scaled()], vpas=[vpa("Off", cpu="100m", memory="64Mi")]))
        assert yaml.safe_load(one.text()) == {
            "apiVersion": "autoscaling.forecaster.dev/v1alpha1",
            "kind": "PredictiveAutoscaler",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                "mode": "observe",
                "vertical": {"minCpu": "100m", "minMemory": "64Mi"},
            },
        }
        assert [note.partition(":")[0] for note in one.notes] == ["Keep HPA web", "VPA web is Off"]

    def test_the_hpa_that_keda_makes_is_not_kept_beside_it(self) -> None:
        made = scaled("keda-hpa-web", ("ScaledObject", "web"))
        (one,) = proposals(known(hpas=[made], keda=[scaled(paused="true")]))
        assert [note.partition(":")[0] for note in one.notes] == [
            "Keep ScaledObject web",
            "It is paused (autoscaling.keda.sh/paused)",
        ]

    def test_two_that_scale_one_workload_are_named(self) -> None:
        (one,) = proposals(known(hpas=[scaled("a"), scaled("b")]))
        assert one.notes[-1].startswith("2 autoscalers scale Deployment web: keep one")

    def test_two_kinds_of_one_name_have_names_of_their_own(self) -> None:
        other = scaled()
        other["spec"]["scaleTargetRef"]["kind"] = "StatefulSet"
        names = [one.document["metadata"]["name"] for one in proposals(known(hpas=[scaled(), other]))]
        assert names == ["web-deployment", "web-statefulset"]
