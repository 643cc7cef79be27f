from __future__ import annotations

import pytest

from forecaster.serving.access_control import RequestAttributes, request_attributes

VALUES = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop"


@pytest.mark.parametrize(
    ("method", "path", "watch", "expected"),
    [
        ("GET", f"{VALUES}/m", False, RequestAttributes("list", "external.metrics.k8s.io", "v1beta1", "shop", "m")),
        ("GET", f"{VALUES}/m", True, RequestAttributes("watch", "external.metrics.k8s.io", "v1beta1", "shop", "m")),
        (
            "GET",
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/deployments.apps/web/m",
            False,
            RequestAttributes("get", "custom.metrics.k8s.io", "v1beta2", "shop", "deployments.apps", "m", "web"),
        ),
        ("GET", "/apis/g/v1/things", False, RequestAttributes("list", "g", "v1", "", "things")),
        ("POST", "/apis/g/v1/things", False, RequestAttributes("create", "g", "v1", "", "things")),
        ("GET", "/apis/g/v1/namespaces/shop", False, RequestAttributes("get", "g", "v1", "", "namespaces", "", "shop")),
        ("GET", "/apis/g/v1", False, RequestAttributes("get", path="/apis/g/v1")),
        ("HEAD", "/metrics", False, RequestAttributes("head", path="/metrics")),
        (
            "GET",
            "/api/v1/recommendations/shop/web",
            False,
            RequestAttributes("get", path="/api/v1/recommendations/shop/web"),
        ),
        ("POST", "/seams/any", False, RequestAttributes("post", path="/seams/any")),
    ],
)
def test_a_request_in_the_words_of_a_review(method: str, path: str, watch: bool, expected: RequestAttributes) -> None:  # noqa: FBT001
    assert request_attributes(method, path, watch=watch) == expected


def test_a_refusal_says_what_was_tried_as_the_api_server_does() -> None:
    assert str(request_attributes("GET", f"{VALUES}/m")) == (
        'list resource "m" in API group "external.metrics.k8s.io" in the namespace "shop"'
    )
    assert str(request_attributes("GET", "/metrics")) == "get path /metrics"
