from __future__ import annotations

import pytest

from forecaster.serving.access.attributes import Attributes, attributes

VALUES = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop"


@pytest.mark.parametrize(
    ("method", "path", "watch", "expected"),
    [
        ("GET", f"{VALUES}/m", False, Attributes("list", "external.metrics.k8s.io", "v1beta1", "shop", "m")),
        ("GET", f"{VALUES}/m", True, Attributes("watch", "external.metrics.k8s.io", "v1beta1", "shop", "m")),
        (
            "GET",
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/deployments.apps/web/m",
            False,
            Attributes("get", "custom.metrics.k8s.io", "v1beta2", "shop", "deployments.apps", "m", "web"),
        ),
        ("GET", "/apis/g/v1/things", False, Attributes("list", "g", "v1", "", "things")),
        ("POST", "/apis/g/v1/things", False, Attributes("create", "g", "v1", "", "things")),
        ("GET", "/apis/g/v1/namespaces/shop", False, Attributes("get", "g", "v1", "", "namespaces", "", "shop")),
        ("GET", "/apis/g/v1", False, Attributes("get", path="/apis/g/v1")),
        ("HEAD", "/metrics", False, Attributes("head", path="/metrics")),
        ("GET", "/api/v1/recommendations/shop/web", False, Attributes("get", path="/api/v1/recommendations/shop/web")),
        ("POST", "/seams/any", False, Attributes("post", path="/seams/any")),
    ],
)
def test_a_request_in_the_words_of_a_review(method: str, path: str, watch: bool, expected: Attributes) -> None:  # noqa: FBT001
    assert attributes(method, path, watch=watch) == expected


def test_a_refusal_says_what_was_tried_as_the_api_server_does() -> None:
    assert str(attributes("GET", f"{VALUES}/m")) == (
        'list resource "m" in API group "external.metrics.k8s.io" in the namespace "shop"'
    )
    assert str(attributes("GET", "/metrics")) == "get path /metrics"
