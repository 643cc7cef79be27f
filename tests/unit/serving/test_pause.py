"""The pause of all writes: for users who have the right, from pages of ours, written on the Lease and told."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
from starlette.applications import Starlette

from forecaster.kube.client import ApiError
from forecaster.kube.lease import PAUSE_ANNOTATION, Lease, LeaseSpec
from forecaster.kube.objects import ObjectMeta
from forecaster.publish.reader import TableReader
from forecaster.serving.access_control import needed_right
from forecaster.serving.audit import Audit
from forecaster.serving.dashboard import Dashboard
from forecaster.serving.pause import PAUSED_BY, Writing
from forecaster.serving.rest import ProblemError, answer_problem
from tests.support.asgi import Client
from tests.support.recommendations import NOON

if TYPE_CHECKING:
    from pathlib import Path

OURS = httpx.Headers({"X-Forecaster-Request": "dashboard"})
PAUSED, RESUMED = b'{"paused":true}', b'{"paused":false}'


class FakeLeases:
    """The API server with one Lease."""

    def __init__(self) -> None:
        self.lease = Lease(ObjectMeta(resource_version="7"), LeaseSpec("pod-a", 15, renew_time="2026-03-01T12:00:00Z"))
        self.fault: ApiError | None = None

    async def get(self, _path: str, _kind: Any) -> Lease:
        return self._or_fault()

    async def patch(self, path: str, change: Any, _kind: Any) -> Lease:
        assert path == "/apis/coordination.k8s.io/v1/namespaces/autoscaling/leases/forecaster"
        assert "spec" not in msgspec.to_builtins(change)  # the holder's part is not ours
        assert change.metadata.resource_version == "7"
        annotations = {**self.lease.metadata.annotations, **change.metadata.annotations}
        self.lease = msgspec.structs.replace(self.lease, metadata=ObjectMeta("", "", "", "8", {}, annotations))
        return self._or_fault()

    def _or_fault(self) -> Lease:
        if self.fault:
            raise self.fault
        return self.lease


class Scene:
    """A dashboard that pauses, and what it has said."""

    def __init__(self, folder: Path, *, user: str = "ann", secure: bool = True, writes: bool = True) -> None:
        self.leases, self.said = FakeLeases(), io.StringIO()
        writing = Writing(self.leases, "autoscaling/forecaster", Audit(self.said), lambda: NOON) if writes else None  # type: ignore[arg-type]
        reader = TableReader(folder / "table")
        dashboard = Dashboard(lambda: None, reader, reader, writing=writing)  # type: ignore[arg-type, return-value]
        pages = Starlette(routes=dashboard.routes(), exception_handlers={ProblemError: answer_problem})

        async def let_in(scope: Any, receive: Any, send: Any) -> None:
            await pages({**scope, "state": {"secure": secure, "user": user}}, receive, send)

        self.client = Client(let_in)

    def put(self, body: bytes = PAUSED, headers: httpx.Headers = OURS) -> httpx.Response:
        return self.client.request("PUT", "/dashboard/pause", body, headers)


def test_a_user_pauses_and_resumes_and_the_lease_says_who(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    assert scene.client.get("/dashboard/writing").json()["paused"] is False
    assert scene.put().json() == {
        "lease": "autoscaling/forecaster",
        "holder": "pod-a",
        "renewed_at": "2026-03-01T12:00:00Z",
        "paused": True,
        "paused_by": "ann at 2026-03-01T12:00:00Z",
        "fault": "",
    }
    assert scene.leases.lease.metadata.annotations == {
        PAUSE_ANNOTATION: "true",
        PAUSED_BY: "ann at 2026-03-01T12:00:00Z",
    }
    assert '"event":"writing_paused"' in scene.said.getvalue()
    scene.leases.lease = msgspec.structs.replace(scene.leases.lease, metadata=ObjectMeta(resource_version="7"))
    assert scene.put(RESUMED).json()["paused"] is False
    assert '"event":"writing_resumed"' in scene.said.getvalue()


def test_the_right_is_a_verb_of_its_own() -> None:
    right = needed_right("PUT", "/dashboard/pause")
    assert (right.verb, right.path) == ("put", "/dashboard/pause")
    assert needed_right("GET", "/dashboard/pause").verb == "get"


@pytest.mark.parametrize(
    ("scene", "headers", "body", "status"),
    [
        ({"secure": False}, OURS, PAUSED, 403),
        ({"user": ""}, OURS, PAUSED, 403),
        ({}, httpx.Headers(), PAUSED, 400),
        ({}, OURS, b"{}", 400),
        ({"writes": False}, OURS, PAUSED, 409),
    ],
    ids=["plain port", "nobody", "another origin", "no answer", "nothing is written"],
)
def test_nothing_else_pauses(
    tmp_path: Path, scene: dict[str, Any], headers: httpx.Headers, body: bytes, status: int
) -> None:
    played = Scene(tmp_path, **scene)
    assert played.put(body, headers).status_code == status
    assert played.leases.lease.metadata.annotations == {}


def test_a_get_pauses_nothing(tmp_path: Path) -> None:
    assert Scene(tmp_path).client.get("/dashboard/pause", OURS).status_code == 405


@pytest.mark.parametrize(("status", "remedy"), [(403, "needs get and patch"), (409, "Try again")])
def test_an_api_server_that_refuses_is_told(tmp_path: Path, status: int, remedy: str) -> None:
    scene = Scene(tmp_path)
    scene.leases.fault = ApiError("leases forecaster: refused", status)
    answer = scene.put()
    assert answer.status_code == 502
    assert remedy in answer.json()["remedy"]
    assert scene.client.get("/dashboard/writing").json()["fault"] == "leases forecaster: refused"
