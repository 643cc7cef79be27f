from __future__ import annotations

import pytest

from forecaster.kube.rights import NonResourceAttributes, ResourceAttributes
from forecaster.serving.access_control import Right, needed_right, right_text
from forecaster.serving.external_metrics import watches

VALUES = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop"


@pytest.mark.parametrize(
    ("method", "path", "watch", "expected"),
    [
        ("GET", f"{VALUES}/m", False, ResourceAttributes("list", "external.metrics.k8s.io", "v1beta1", "m", "shop")),
        ("GET", f"{VALUES}/m", True, ResourceAttributes("watch", "external.metrics.k8s.io", "v1beta1", "m", "shop")),
        (
            "GET",
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/deployments.apps/web/m",
            False,
            ResourceAttributes("get", "custom.metrics.k8s.io", "v1beta2", "deployments.apps", "shop", "m", "web"),
        ),
        ("GET", "/apis/g/v1/things", False, ResourceAttributes("list", "g", "v1", "things", "")),
        ("POST", "/apis/g/v1/things", False, ResourceAttributes("create", "g", "v1", "things", "")),
        (
            "GET",
            "/apis/g/v1/namespaces/shop",
            False,
            ResourceAttributes("get", "g", "v1", "namespaces", "", "", "shop"),
        ),
        ("GET", "/apis/g/v1", False, NonResourceAttributes("get", "/apis/g/v1")),
        ("HEAD", "/metrics", False, NonResourceAttributes("head", "/metrics")),
        (
            "GET",
            "/api/v1/recommendations/shop/web",
            False,
            NonResourceAttributes("get", "/forecaster/api/v1/recommendations/shop/web"),
        ),
        ("POST", "/seams/any", False, NonResourceAttributes("post", "/seams/any")),
    ],
)
def test_a_request_in_the_words_of_a_review(method: str, path: str, watch: bool, expected: Right) -> None:  # noqa: FBT001
    assert needed_right(method, path, watch=watch) == expected


def test_a_refusal_says_what_was_tried_as_the_api_server_does() -> None:
    assert right_text(needed_right("GET", f"{VALUES}/m")) == (
        'list resource "m" in API group "external.metrics.k8s.io" in the namespace "shop"'
    )
    assert right_text(needed_right("GET", "/metrics")) == "get path /metrics"


@pytest.mark.parametrize(
    "query", ["", "watch=0", "watch=false", "watch=False&watch=1", "labelSelector=watch%3D1", "x=%77"]
)
def test_a_query_that_lists(query: str) -> None:
    assert not watches(query.encode())


@pytest.mark.parametrize(
    "query", ["watch=1", "watch=true", "watch", "watch=", "watch=yes", "w%61tch=1", "a=b&watch=1&watch=0"]
)
def test_a_query_that_watches_by_the_rules_of_the_api_server(query: str) -> None:
    """apimachinery, Convert_Slice_string_To_bool: the first value, unless it is 0 or false; the empty one is true."""
    assert watches(query.encode())
