from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.serving.access.attributes import Attributes
from forecaster.serving.access.reviews import (
    ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    AccessAnswer,
    TokenAnswer,
    access_review,
    token_review,
    user_of,
)
from forecaster.serving.access.user import User
from forecaster.serving.apiserver.client import ApiServer, ApiServerError
from forecaster.serving.apiserver.config import from_kubeconfig
from tests.support.review_server import ReviewServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def reviews(tmp_path: Path) -> Iterator[ReviewServer]:
    with ReviewServer(tmp_path / "cluster") as running:
        yield running


@pytest.fixture
def api_server(reviews: ReviewServer) -> Iterator[ApiServer]:
    found = ApiServer(from_kubeconfig(reviews.kubeconfig), timeout=5)
    yield found
    found.close()


def test_a_token_has_a_user(api_server: ApiServer) -> None:
    answer = asyncio.run(api_server.create(TOKEN_REVIEWS, token_review("good"), TokenAnswer))
    assert user_of(answer) == User(
        "system:serviceaccount:shop:reader", "", ("system:serviceaccounts", "system:authenticated")
    )


def test_a_token_of_nobody_has_none(api_server: ApiServer) -> None:
    assert user_of(asyncio.run(api_server.create(TOKEN_REVIEWS, token_review("bad"), TokenAnswer))) is None


def test_a_user_may_or_may_not(api_server: ApiServer) -> None:
    what = Attributes("list", "external.metrics.k8s.io", "v1beta1", "shop", "m")
    for name, expected in (("system:serviceaccount:shop:reader", True), ("eve", False)):
        review = access_review(User(name, groups=("a",)), what)
        assert asyncio.run(api_server.create(ACCESS_REVIEWS, review, AccessAnswer)).status.allowed is expected


def test_a_refusal_carries_its_status(api_server: ApiServer) -> None:
    with pytest.raises(ApiServerError, match="GET /nowhere: 404") as caught:
        asyncio.run(api_server.get("/nowhere", msgspec.Raw))
    assert caught.value.status == 404


def test_a_server_that_is_down_is_an_error_and_no_permission(reviews: ReviewServer, api_server: ApiServer) -> None:
    reviews.down = True
    with pytest.raises(ApiServerError, match="500"):
        asyncio.run(api_server.create(TOKEN_REVIEWS, token_review("good"), TokenAnswer))


def test_an_answer_that_is_no_review_is_an_error(api_server: ApiServer) -> None:
    with pytest.raises(ApiServerError, match="not understood"):
        asyncio.run(api_server.create(TOKEN_REVIEWS, token_review("good"), list[int]))


def test_an_authority_we_do_not_know_is_an_error(reviews: ReviewServer, tmp_path: Path) -> None:
    with ReviewServer(tmp_path / "other") as other:
        text = reviews.kubeconfig.read_text()
        wrong = tmp_path / "wrong"
        port = other.kubeconfig.read_text().split("localhost:")[1].split('"')[0]
        wrong.write_text(text.replace(text.split("localhost:")[1].split('"')[0], port))
        api_server = ApiServer(from_kubeconfig(wrong), timeout=5)
        with pytest.raises(ApiServerError, match="CERTIFICATE_VERIFY_FAILED"):
            asyncio.run(api_server.get("/x", msgspec.Raw))
        api_server.close()
