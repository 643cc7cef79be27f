"""The service as it is composed, beside an API server that tells all, refuses all, or is not there."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from forecaster.app.facts import FactsServer
from forecaster.app.live_facts import live_checks
from forecaster.app.rights import fallback_checks
from forecaster.app.serve import known_of
from forecaster.cli.explain import explain
from forecaster.config.settings import parse
from forecaster.domain.window import MINUTE
from forecaster.horizontal.hpa_next import ASSUMED_BEHAVIOR
from forecaster.serving.workloads import RowExplanations
from tests.support.api_objects import Document, deployment, external, hpa, page, refusal
from tests.support.builders import NOON, workload
from tests.support.composed import composed, published, recorded_cluster, tick
from tests.support.http_server import HttpRequest, Reply
from tests.support.tls_server import KubeconfigServer
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from forecaster.config.settings import Settings


class LiveServer(KubeconfigServer):
    """Lists `objects` by plural; a watch ends at once, without events. `refuses` gives 403 for these plurals."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, self._respond)
        self.objects: Mapping[str, list[Document]] = {}
        self.refuses: set[str] = set()

    def _respond(self, request: HttpRequest) -> Reply:
        path, _, query = request.path.partition("?")
        plural = path.rpartition("/")[2]
        if plural in self.refuses:
            return Reply(403, refusal(403, f"{plural} is forbidden").body)
        if "watch=1" in query:
            return Reply(200, b"")
        return Reply(200, page(*self.objects.get(plural, ())).body)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    with LiveServer(tmp_path / "api") as running:
        yield running


def counted(server: LiveServer, directory: Path) -> tuple[int, tuple[str, ...]]:
    """The count of shop/web in the table of a cycle, and the kinds that were live in it."""
    with (
        recorded_cluster([workload("web", replicas=4)]) as cluster,
        composed(cluster, directory, kubernetes={"kubeconfig": str(server.kubeconfig)}) as service,
    ):
        tick(service, NOON)
        table = published(directory)
        (row,) = [entry for entry in table.entries if entry.name == "web"]
        return int(table.number("current", row.row)), table.meta.live


def test_the_count_of_the_api_server_is_that_of_the_table(server: LiveServer, tmp_path: Path) -> None:
    server.objects = {"deployments": [deployment("web", 30)]}
    assert counted(server, tmp_path / "state") == (30, ("Deployment", "StatefulSet"))


def test_without_rights_everything_is_as_without_it_and_a_line_for_each_says_so(
    server: LiveServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.refuses = {"deployments", "statefulsets", "replicasets", "pods", "horizontalpodautoscalers"}
    printed: list[str] = []

    def all_logged() -> bool:
        printed.append(capsys.readouterr().out)
        return all(f"{plural} is forbidden" in "".join(printed) for plural in server.refuses)

    with (
        recorded_cluster([workload("web", replicas=4)]) as cluster,
        composed(cluster, tmp_path / "state", kubernetes={"kubeconfig": str(server.kubeconfig)}) as service,
    ):
        tick(service, NOON)
        table = published(tmp_path / "state")
        assert (table.number("current", 0), table.meta.live) == (4, ())
        wait_until(all_logged, goal="the lines")
        tick(service, NOON + MINUTE)
        ages = [line for line in service.metrics.text().splitlines() if line.startswith("forecaster_live_age_seconds{")]
    assert "".join(printed).count("live_facts_missing") == len(server.refuses)
    old = [line for line in ages if float(line.rpartition(" ")[2]) > 0]
    assert all(any(f"/{name}" in line for line in old) for name in server.refuses), (
        "by which ForecasterLiveFactsMissing fires"
    )


def test_a_kind_that_may_not_be_listed_is_told_by_prometheus(server: LiveServer, tmp_path: Path) -> None:
    server.refuses = {"deployments"}
    assert counted(server, tmp_path / "state") == (4, ("StatefulSet",))


def test_live_facts_that_are_off_ask_nothing(server: LiveServer, tmp_path: Path) -> None:
    with (
        recorded_cluster([workload("web")]) as cluster,
        composed(
            cluster, tmp_path / "state", kubernetes={"kubeconfig": str(server.kubeconfig), "live": "off"}
        ) as service,
    ):
        assert "forecaster_live" not in service.metrics.text()


def test_an_hpa_without_an_answer_is_a_failure_with_a_sentence_and_a_metric(server: LiveServer, tmp_path: Path) -> None:
    of_web = {"workload": "web", "kind": "Deployment", "signal": "cpus"}
    server.objects = {
        "deployments": [deployment("web", 4)],
        "horizontalpodautoscalers": [hpa(external("forecaster_demand", "500m", **of_web))],
    }
    given = {"kubeconfig": str(server.kubeconfig)}
    with recorded_cluster([workload("web")]) as cluster, composed(cluster, tmp_path / "s", kubernetes=given) as service:
        tick(service, NOON)
        assert service.report is not None
        assert any("HPA shop/web: its selector names signal cpus" in failure for failure in service.report.failures)
        assert "forecaster_misread_hpas 1.0" in service.metrics.text()


def test_the_doctor_names_what_may_not_be_listed(server: LiveServer) -> None:
    server.refuses = {"pods"}
    server.objects = {"deployments": [deployment("web", 4)]}
    checks = live_checks(parse({"kubernetes": {"kubeconfig": str(server.kubeconfig)}}, "test"))
    by_kind = {check.name.rpartition("/")[2]: (check.ok, check.detail) for check in checks}
    assert by_kind["deployments"] == (True, "1 objects")
    assert by_kind["pods"] == (False, "GET /api/v1/pods?limit=500: 403 pods is forbidden")
    (off,) = live_checks(parse({"kubernetes": {"live": "off"}}, "test"))
    assert off.ok


def triggered(name: str, *triggers: tuple[str, str, str], fallback: bool = True, after: int = 0) -> Document:
    """A ScaledObject as KEDA's definition has it."""
    given = [{"type": kind, "metadata": {key: value}} for kind, key, value in triggers]
    guard = {"fallback": {"failureThreshold": after, "replicas": 6}} if fallback else {}
    return {"metadata": {"namespace": "shop", "name": name}, "spec": {"triggers": given, **guard}}


PUSHED = ("external-push", "scalerAddress", "forecaster.forecaster.svc:9090")
PULLED = ("external", "scalerAddress", "forecaster.forecaster.svc:9090")
BY_JSON = ("metrics-api", "url", "https://forecaster.forecaster.svc/api/v1/x/metrics/forecaster_demand/forecast")
BY_QUERY = ("prometheus", "query", 'max(forecaster_demand{workload="web"})')


class TestFallbacksOfKeda:
    @pytest.fixture
    def settings(self, server: LiveServer) -> Settings:
        return parse({"kubernetes": {"kubeconfig": str(server.kubeconfig)}}, "test")

    @pytest.mark.parametrize("trigger", [PUSHED, BY_JSON, BY_QUERY], ids=["gRPC", "JSON", "query"])
    def test_the_doctor_names_a_scaled_object_of_ours_without_one(
        self, server: LiveServer, settings: Settings, trigger: tuple[str, str, str]
    ) -> None:
        server.objects = {"scaledobjects": [triggered("web", trigger, fallback=False), triggered("other", trigger)]}
        (check,) = fallback_checks(settings)
        assert (check.ok, check.detail) == (False, "ScaledObject shop/web states no fallback")
        assert "external-push" in check.remedy

    def test_a_pulled_scaler_fails_without_being_counted(self, server: LiveServer, settings: Settings) -> None:
        server.objects = {"scaledobjects": [triggered("web", PULLED)]}
        (check,) = fallback_checks(settings)
        assert check.detail.endswith("its fallback does not count failures of a trigger of type external")

    def test_a_pushed_scaler_is_forgotten_before_a_threshold_is_reached(
        self, server: LiveServer, settings: Settings
    ) -> None:
        server.objects = {"scaledobjects": [triggered("web", PUSHED, after=3)]}
        (check,) = fallback_checks(settings)
        assert check.detail.endswith("failureThreshold 3 is never reached by a trigger of type external-push, state 0")

    def test_a_fallback_of_nothing_lets_go_of_the_last_pod(self, server: LiveServer, settings: Settings) -> None:
        """While failures are below the threshold KEDA goes by minReplicaCount, where the fallback has no replicas."""
        without, bounded = triggered("web", BY_JSON, after=3), triggered("other", BY_JSON, after=3)
        for scaled_object in (without, bounded):
            scaled_object["spec"]["fallback"]["replicas"] = 0
        bounded["spec"]["minReplicaCount"] = 1
        server.objects = {"scaledobjects": [without, bounded]}
        (check,) = fallback_checks(settings)
        scaled_to_zero = "by a fallback of 0 replicas KEDA scales to 0 while triggers fail, state 1 or more"
        assert check.detail == f"ScaledObject shop/web: {scaled_to_zero}"

    def test_those_of_others_are_none_of_ours(self, server: LiveServer, settings: Settings) -> None:
        server.objects = {"scaledobjects": [triggered("queue", ("kafka", "topic", "orders"), fallback=False)]}
        assert fallback_checks(settings) == []

    def test_all_guarded_is_said(self, server: LiveServer, settings: Settings) -> None:
        server.objects = {"scaledobjects": [triggered("web", PUSHED), triggered("api", BY_QUERY)]}
        assert [check.detail for check in fallback_checks(settings)] == ["each of 2 ScaledObjects has one"]

    def test_a_list_that_is_refused_says_nothing(self, server: LiveServer, settings: Settings) -> None:
        server.refuses = {"scaledobjects"}
        assert fallback_checks(settings) == []


def test_explain_says_which_source_told_what(
    server: LiveServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.objects = {"deployments": [deployment("web", 30, version=77)]}
    file = tmp_path / "settings.yaml"
    with recorded_cluster([workload("web")]) as cluster:
        file.write_text(json.dumps({"kubernetes": {"kubeconfig": str(server.kubeconfig)}}))
        explain(workload="shop/web", prometheus=cluster.url, config=file, at=NOON.isoformat())
    assert "Count, HPA and requests are those of kube-state-metrics" in capsys.readouterr().out


def test_explain_of_the_past_knows_no_behavior_where_today_one_is_stated(
    server: LiveServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    today = hpa(behavior={"scaleUp": {"selectPolicy": "Disabled"}})
    server.objects = {"deployments": [deployment("web", 4)], "horizontalpodautoscalers": [today]}
    (file := tmp_path / "settings.yaml").write_text(json.dumps({"kubernetes": {"kubeconfig": str(server.kubeconfig)}}))
    with recorded_cluster([workload("web")]) as cluster:
        explain(workload="shop/web", prometheus=cluster.url, config=file, at=NOON.isoformat())
    assert ASSUMED_BEHAVIOR in capsys.readouterr().out


def test_of_two_hpas_on_one_workload_explain_and_the_api_say_the_same(
    server: LiveServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.objects = {"deployments": [deployment("web", 4)], "horizontalpodautoscalers": [hpa(), hpa(name="copy")]}
    given = {"kubeconfig": str(server.kubeconfig)}
    (file := tmp_path / "settings.yaml").write_text(json.dumps({"kubernetes": given}))
    state = tmp_path / "state"
    with recorded_cluster([workload("web")]) as cluster, composed(cluster, state, kubernetes=given) as service:
        tick(service, NOON)
        facts = FactsServer(known_of(service.cycle), state)
        facts.start()
        table = published(state)
        lines = asyncio.run(RowExplanations(str(facts.path)).lines(table, table.entries[0]))
        facts.close()
        capsys.readouterr()
        explain(workload="shop/web", prometheus=cluster.url, config=file)
    sentence = "  HPAs copy, web all scale it: Kubernetes follows none of them until only one does."
    assert sentence in lines
    assert sentence in capsys.readouterr().out.splitlines()
