from __future__ import annotations

from typing import Any

import msgspec
import pytest

from forecaster.serving.discovery import AGGREGATED, Discovery

DISCOVERY = Discovery()


def document(path: str, accept: str = "application/json") -> Any:
    reply = DISCOVERY.answer(path, accept)
    assert reply is not None
    assert reply.status == 200
    return msgspec.json.decode(reply.body)


def test_the_availability_probe_reads_a_resource_list() -> None:
    listed = document("/apis/external.metrics.k8s.io/v1beta1")
    assert (listed["kind"], listed["groupVersion"]) == ("APIResourceList", "external.metrics.k8s.io/v1beta1")
    assert listed["resources"][-1] == {
        "name": "forecaster_demand",
        "singularName": "",
        "namespaced": True,
        "kind": "ExternalMetricValueList",
        "verbs": ["get"],
    }


def test_a_group_names_its_one_version() -> None:
    version = {"groupVersion": "external.metrics.k8s.io/v1beta1", "version": "v1beta1"}
    assert document("/apis/external.metrics.k8s.io") == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "external.metrics.k8s.io",
        "versions": [version],
        "preferredVersion": version,
    }


def test_the_plain_list_of_groups() -> None:
    groups = document("/apis")["groups"]
    assert [group["name"] for group in groups] == [
        "external.metrics.k8s.io",
        "custom.metrics.k8s.io",
        "metrics.forecaster.dev",
    ]


@pytest.mark.parametrize("accept", [AGGREGATED, f"{AGGREGATED},application/json;q=0.8"])
def test_the_aggregated_form_where_it_is_asked_for(accept: str) -> None:
    reply = DISCOVERY.answer("/apis", accept)
    assert reply is not None
    assert reply.content_type.decode() == AGGREGATED
    listed = msgspec.json.decode(reply.body)
    assert listed["kind"] == "APIGroupDiscoveryList"
    assert listed["items"][0]["versions"][0]["resources"][0]["responseKind"]["kind"] == "ExternalMetricValueList"


@pytest.mark.parametrize(
    "accept", ["", "*/*", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"]
)
def test_other_forms_are_the_plain_one(accept: str) -> None:
    assert document("/apis", accept)["kind"] == "APIGroupList"


def test_a_client_that_has_the_document_is_told_so() -> None:
    first = DISCOVERY.answer("/apis", AGGREGATED)
    assert first is not None
    etag = dict(first.headers)[b"etag"]
    again = DISCOVERY.answer("/apis", AGGREGATED, etag)
    assert again is not None
    assert (again.status, again.body) == (304, b"")


def test_it_names_metrics_and_no_workloads_so_that_it_stays_small() -> None:
    assert len(document("/apis/external.metrics.k8s.io/v1beta1")["resources"]) == 3


def test_another_path_is_no_document() -> None:
    assert DISCOVERY.answer("/apis/external.metrics.k8s.io/v1beta1/") is None


def test_openapi_is_valid_and_empty_so_that_nothing_of_the_cluster_is_disturbed() -> None:
    assert document("/openapi/v2") == {"swagger": "2.0", "info": {"title": "forecaster", "version": "v1"}, "paths": {}}
    for group, entry in document("/openapi/v3")["paths"].items():
        described = document(entry["serverRelativeURL"])
        assert entry["serverRelativeURL"] == f"/openapi/v3/{group}"
        assert (described["openapi"], described["paths"]) == ("3.0.0", {})
