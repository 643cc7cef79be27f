from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from forecaster.kube.client import ApiError
from forecaster.kube.objects import ApiService, TrustedService
from forecaster.serving.secured import GroupOwner, GroupOwnerWatch, advice, owner_of

if TYPE_CHECKING:
    from forecaster.kube.objects import ServiceReference

GROUP = "v1beta1.external.metrics.k8s.io"
OURS = "autoscaling/forecaster"


def registered(namespace: str, name: str) -> ApiService:
    document = {"spec": {"service": {"namespace": namespace, "name": name, "port": 443}}, "kind": "APIService"}
    return msgspec.convert(document, ApiService)


@pytest.mark.parametrize(
    ("service", "owner"),
    [
        (None, GroupOwner.NONE),
        (ApiService(), GroupOwner.NONE),
        (registered("autoscaling", "forecaster"), GroupOwner.US),
        (registered("keda", "keda-operator-metrics-apiserver"), GroupOwner.OTHER),
        (registered("other", "forecaster"), GroupOwner.OTHER),
    ],
    ids=["absent", "local", "ours", "keda", "same name elsewhere"],
)
def test_a_group_belongs_to_the_service_of_its_registration(service: ApiService | None, owner: GroupOwner) -> None:
    assert owner_of(service, OURS) is owner


def test_who_is_served_by_another_one_is_told_what_to_do() -> None:
    text = advice(GROUP, registered("keda", "adapter"), OURS)
    assert "keda/adapter" in text
    assert "serving.secure.upstream" in text
    assert advice(GROUP, registered("autoscaling", "forecaster"), OURS) == ""
    assert advice(GROUP, None, OURS) == ""


class Cluster:
    """An API server with some registrations."""

    def __init__(self) -> None:
        self.found: dict[str, ServiceReference | None] = {}
        self.status = 404
        self.asked: list[str] = []

    async def get(self, path: str, kind: Any) -> Any:
        self.asked.append(path)
        name = path.rsplit("/", 1)[1]
        if name not in self.found:
            raise ApiError(path, self.status)
        return ApiService(spec=TrustedService(self.found[name]))


def test_the_watch_tells_once_it_looks_and_only_reads() -> None:
    cluster, notices = Cluster(), []
    watch = GroupOwnerWatch(cluster, OURS, [GROUP], notices.append)
    assert watch.owners == {GROUP: GroupOwner.UNKNOWN}
    asyncio.run(watch.refresh())
    assert watch.owners == {GROUP: GroupOwner.NONE}
    cluster.found[GROUP] = registered("keda", "adapter").spec.service
    asyncio.run(watch.refresh())
    assert watch.owners == {GROUP: GroupOwner.OTHER}
    assert len(notices) == 1


def test_an_answer_that_we_may_not_read_is_not_nobody() -> None:
    cluster = Cluster()
    cluster.status = 403
    watch = GroupOwnerWatch(cluster, OURS, [GROUP], lambda _why: None)
    asyncio.run(watch.refresh())
    assert watch.owners == {GROUP: GroupOwner.UNKNOWN}
