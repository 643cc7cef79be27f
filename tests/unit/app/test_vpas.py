"""Recommendations of a cluster's VPAs reach the pages of their workloads; a reason stands for unknown ones."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from forecaster.app.live_facts import VpaReader
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.window import MINUTE
from forecaster.kube.client import ApiClient, UnreachableError
from forecaster.kube.config import ClientConfig
from forecaster.publish.beside import TextsBeside
from forecaster.publish.reader import TableReader
from forecaster.publish.table import pictures_path
from forecaster.publish.table_file import TableFile
from forecaster.serving.app import create_app
from tests.support.api_objects import ScriptedServer, page, refusal
from tests.support.asgi import Client
from tests.support.decided_records import RecordPublisher
from tests.support.objects import vpa
from tests.support.recommendations import NOON, recommendation
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.kube.connections import RawAnswer, RawRequest

TOLD = {
    "containerName": "app",
    "target": {"cpu": "587m", "memory": "262144k"},
    "lowerBound": {"cpu": "120m"},
    "upperBound": {"cpu": "1200m", "memory": "400Mi"},
}


class Server(ApiClient):
    """Gives its answers one after the other, whatever is asked."""

    def __init__(self, *answers: RawAnswer | Exception) -> None:
        super().__init__(lambda: ClientConfig("https://nowhere"))
        self.script = ScriptedServer.of(*answers)

    def exchange(self, request: RawRequest) -> RawAnswer:
        return self.script.exchange(request)


def listed(*answers: RawAnswer | Exception) -> TextsBeside:
    """Return the texts that a reader of VPAs has after these answers."""
    server = Server(*answers)
    look = VpaReader(server, lambda: NOON)
    before = look.latest
    with closing(look):
        look.start()
        wait_until(lambda: look.latest is not before, goal="the first list")
    assert not server.script.answers
    return look.latest


def beside(path: Path, texts: TextsBeside) -> dict[str, Any]:
    """Return the part of the workload's page about its VPAs."""
    table = TableFile(path, interval=MINUTE, version="1")
    table.beside["vpas"] = lambda: texts
    RecordPublisher(Policies(Policy()), {"table": table}).publish(NOON, (recommendation(),))
    reader = TableReader(path, lambda: NOON + timedelta(seconds=5))
    reader.refresh()
    app = create_app(reader, pictures=TableReader(pictures_path(path)))
    part: dict[str, Any] = Client(app).get("/dashboard/workloads/shop/Deployment/web").json()["beside"]
    return part


def test_its_target_and_bounds_are_told_by_container(tmp_path: Path) -> None:
    shown = beside(tmp_path / "table", listed(page(vpa("shop", "web", TOLD), vpa("shop", "api", TOLD))))
    (entry,) = shown["vpas"]
    (container,) = entry["containers"]
    assert (shown["read_at"], shown["unknown"]) == ("2026-03-01T12:00:00Z", "")
    assert (entry["name"], entry["update_mode"], container["container"]) == ("web", "Off", "app")
    assert container["target"] == {"cpu_request_cores": 0.587, "memory_request_bytes": 262_144_000}
    assert container["lower_bound"] == {"cpu_request_cores": 0.12, "memory_request_bytes": None}


def test_one_that_recommends_nothing_says_why(tmp_path: Path) -> None:
    waits = {"type": "RecommendationProvided", "status": "False", "message": "No pods match"}
    (entry,) = beside(tmp_path / "table", listed(page(vpa("shop", "web", conditions=[waits]))))["vpas"]
    assert (entry["containers"], entry["message"]) == ([], "No pods match")


def test_those_that_may_not_be_listed_are_not_known(tmp_path: Path) -> None:
    shown = beside(tmp_path / "table", listed(refusal(403), group_is_there()))
    assert shown["vpas"] == []
    assert "verticalpodautoscalers is not known" in shown["unknown"]


def test_without_an_answer_they_are_not_known(tmp_path: Path) -> None:
    shown = beside(tmp_path / "table", listed(UnreachableError("it does not answer")))
    assert shown["unknown"] == "it does not answer"


def test_a_cluster_without_vpas_says_nothing(tmp_path: Path) -> None:
    shown = beside(tmp_path / "table", listed(refusal(404)))
    assert (shown["vpas"], shown["unknown"]) == ([], "")


def test_where_none_are_looked_for_nothing_is_said(tmp_path: Path) -> None:
    assert beside(tmp_path / "table", TextsBeside()) == {"read_at": None, "unknown": "", "vpas": []}


def group_is_there() -> RawAnswer:
    """Answer of the API server about a group that it has."""
    return page()
