from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from forecaster.app.demo import staged
from forecaster.cli import app
from forecaster.cli.catalogue import schema_of
from forecaster.cli.recommend import filtered
from forecaster.cli.snapshot import CycleSnapshot, take_demo_snapshot
from forecaster.domain.workload import Prices
from forecaster.errors import StoreError
from forecaster.report.advice import joint_line, print_advice, write_overlay
from forecaster.report.formats import AdviceOutput, NodesOutput
from forecaster.report.nodes import print_nodes
from forecaster.sources.cluster_objects import cluster_of
from forecaster.vertical.admission.context import ApplyTerms
from forecaster.vertical.cluster_rules.pod import Container, Pod
from forecaster.vertical.sizing.joint import ResourceCosts
from tests.support import objects as given
from tests.support.cluster_rules import block
from tests.support.full_disk import full_disk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forecaster.cycle.node_forecast import NodeForecast
    from forecaster.vertical.admission.advice import Advice

REPORTS = given.container("reports", {"cpu": "2", "memory": "2Gi"}, {"cpu": "4", "memory": "2Gi"})


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster around data/reports of the recorded load: five pods of two cores on three nodes of eight."""
    return given.written(
        tmp_path_factory.mktemp("objects") / "cluster.json",
        given.deployment("data", "reports", REPORTS, replicas=5),
        given.replica_set("data", "reports"),
        *(
            given.pod("data", f"reports-{i}", f"n{i % 3}", REPORTS, owner=("ReplicaSet", "reports-7d9f"))
            for i in range(5)
        ),
        *(given.node(f"n{i}", "8", "32Gi") for i in range(3)),
        given.limit_range("data", max={"cpu": "3"}),
    )


@pytest.fixture(scope="module")
def look(objects: Path) -> CycleSnapshot:
    return take_demo_snapshot([objects], None)


@pytest.fixture(scope="module")
def advices(look: CycleSnapshot) -> list[Advice]:
    return look.advices({}, compare=True)


@pytest.fixture(scope="module")
def reports(advices: list[Advice]) -> list[Advice]:
    return [advice for advice in advices if advice.id.name == "reports"]


class TestCommand:
    def test_the_table_shows_the_sizes_of_vpa_and_krr_from_the_same_history(self) -> None:
        header, row = run("recommend", "--demo", "data/reports").output.splitlines()[:2]
        assert all(name in header for name in ("WORKLOAD", "VPA", "KRR", "CLUSTER"))
        assert row.startswith("data/reports")
        assert "rules unknown" in row

    def test_the_risk_of_a_memory_size_is_how_often_it_is_killed(self) -> None:
        header, row = run("recommend", "--demo", "data/reports").output.splitlines()[:2]
        assert "OOM KILL EXPECTED" in header
        (days,) = re.findall(r"once in ([\d,]+) days", row)
        assert int(days.replace(",", "")) >= 365

    def test_an_unchanged_size_has_its_reason_in_words(self) -> None:
        printed = run("recommend", "--demo", "shop/checkout").output
        assert "cpu: unchanged, the HPA acts on its utilization" in printed
        assert "scaled-by-size" not in printed

    def test_money_has_the_currency_of_the_settings(self, tmp_path: Path) -> None:
        (tmp_path / "eur.yaml").write_text("prices: {core_hour: 0.03, gib_hour: 0.004, currency: EUR}")
        printed = run("recommend", "--demo", "data/reports", "--config", str(tmp_path / "eur.yaml")).output
        assert "COST A MONTH, EUR" in printed
        assert "Cost a month, EUR: 248.20" in printed

    def test_on_recorded_load_the_policy_of_a_file_counts_too(self, tmp_path: Path) -> None:
        (tmp_path / "large.yaml").write_text("policy: {vertical: {min_cpu: 5}}", encoding="utf-8")
        printed = run("recommend", "--demo", "data/reports", "--config", str(tmp_path / "large.yaml")).output
        assert "→ 5000m" in printed

    def test_money_without_a_currency_is_in_that_of_the_prices(self) -> None:
        printed = run("recommend", "--demo", "data/reports", "--price-core-hour", "1", "--price-gib-hour", "1").output
        assert "Cost a month, in the currency of the prices: " in printed

    def test_a_previous_run_shows_what_has_changed(self, tmp_path: Path) -> None:
        earlier = json.loads(run("recommend", "--demo", "data/reports", "-o", "json").stdout)
        earlier["recommendations"][0]["recommended"]["memory_request_bytes"] = 2**30
        path = tmp_path / "earlier.json"
        path.write_text(json.dumps(earlier))
        output = run("recommend", "--demo", "data/reports", "--previous", str(path)).output
        assert "memory request 1Gi → " in output

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (("--price-core-hour", "1"), "give both"),
            (("--server-version", "new"), "a server version is written like 1.36"),
        ],
        ids=["half a price", "no version"],
    )
    def test_options_that_make_no_sense_are_named(self, arguments: tuple[str, ...], complaint: str) -> None:
        output = run("recommend", "--demo", *arguments, code=2).output
        assert complaint in output.replace("\n", " ").replace("│ ", "")

    def test_nodes_of_the_recorded_load_are_refused_before_any_work(self) -> None:
        assert "the recorded load has no nodes" in run("nodes", "--demo", code=2).output

    def test_an_overlay_needs_its_folder_and_a_folder_an_overlay(self) -> None:
        assert "need --to" in run("recommend", "--demo", "-o", "kustomize", code=2).output
        assert "need --to" in run("recommend", "--demo", "--to", "overlay", code=2).output

    @pytest.mark.parametrize("again", [("--config", "fits.yaml"), ("--refused",)], ids=["fits", "not selected"])
    def test_a_patch_stays_in_the_overlay_while_no_other_size_is_recommended(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: tuple[str, ...]
    ) -> None:
        """An applied size fits at the next run; a patch that is left out would take that size back."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "fits.yaml").write_text("policy: {vertical: {min_memory: 2Gi}}", encoding="utf-8")
        command = ("recommend", "--demo", "data/reports", "-o", "kustomize", "--to", "over")
        assert run(*command).stderr == "1 patches in over\n"
        second = run(*command, *again)
        overlay = yaml.safe_load((tmp_path / "over" / "kustomization.yaml").read_text())
        assert overlay["patches"] == [{"path": "data.deployment.reports.yaml"}]
        assert second.stderr == "1 patches in over, 1 of them as before: no other size is recommended\n"

    def test_a_namespace_that_there_is_not_is_answered_with_the_nearest(self) -> None:
        refused = run("recommend", "--demo", "-n", "shp", code=1).exception
        assert "did you mean shop?" in str(refused)

    def test_headroom_pods_run_what_you_name(self) -> None:
        assert "pause image" in run("nodes", "--demo", "-o", "headroom", code=2).output

    def test_explain_says_what_the_cluster_would_answer(self, objects: Path) -> None:
        with staged() as stage:
            options = ("--prometheus", stage.url, "--at", stage.begin.isoformat(), "--objects", str(objects))
            output = run("explain", "data/reports", *options).output
        assert "refused  LimitRange: reports: maximum cpu per Container is 3, but the limit is" in output

    def test_what_another_policy_would_be_beside_an_override_is_checked(self, tmp_path: Path) -> None:
        file = tmp_path / "settings.yaml"
        file.write_text("overrides: [{match: {namespace: data}, policy: {horizontal: {min_replicas: 5}}}]")
        options = ("--prometheus", "http://127.0.0.1:9", "--config", str(file), "--set", "max_replicas=3")
        refused = run("explain", "data/reports", *options, code=1)
        assert "max_replicas: 3: must not be below min_replicas 5" in str(refused.exception)
        assert "not be below" not in str(run("explain", "shop/cart", *options, code=1).exception)

    def test_explain_says_what_another_policy_would_decide(self) -> None:
        with staged() as stage:
            options = ("--prometheus", stage.url, "--at", stage.begin.isoformat())
            output = run("explain", "data/reports", *options, "--set", "max_replicas=1").output
            later = run("explain", "data/reports", *options, "--set", "policy.horizontal.lead_time=10m").output
            refused = run("explain", "data/reports", *options, "--set", "quantile=2", code=1)
            no_value = run("explain", "data/reports", *options, "--set", "quantile=[", code=1)
            no_day = run("explain", "data/reports", *options, "--set", "quantile=2026-13-45", code=1)
        assert "what if max_replicas=1" in output
        assert "1 to 1 replicas" in output
        assert "lead time 10m: configured" in later.partition("what if policy.horizontal.lead_time=10m")[2]
        assert "quantile" in str(refused.exception)
        assert "quantile: '[': " in str(no_value.exception)
        assert "quantile: '2026-13-45': " in str(no_day.exception)


class TestItsVpa:
    """A VPA of the cluster is shown with its own numbers beside our recommendation."""

    RECOMMENDED: ClassVar = {
        "containerName": "reports",
        "target": {"cpu": "587m", "memory": "262144k"},
        "lowerBound": {"cpu": "120m"},
        "upperBound": {"cpu": "1200m", "memory": "400Mi"},
    }

    @staticmethod
    def advised(look: CycleSnapshot, *recommendations: dict[str, Any], **status: Any) -> list[Advice]:
        vpa = given.vpa("data", "reports", *recommendations, **status)
        cluster = replace(look.cluster, vpas=cluster_of({vpa["kind"]: [vpa]}).vpas)
        return replace(look, cluster=cluster).advices({}, compare=True)

    def test_recommend_has_its_target_and_bounds(self, look: CycleSnapshot, capsys: pytest.CaptureFixture[str]) -> None:
        advices = self.advised(look, self.RECOMMENDED)
        print_advice(advices, AdviceOutput.JSON, None)
        document = json.loads(capsys.readouterr().out)
        assert list(Draft202012Validator(schema_of("recommend")).iter_errors(document)) == []
        reports = next(row for row in document["recommendations"] if row["name"] == "reports")
        (vpa,) = reports["vpas"]
        (container,) = vpa["containers"]
        assert (vpa["name"], vpa["update_mode"]) == ("reports", "Off")
        assert container["target"] == {"cpu_request_cores": 0.587, "memory_request_bytes": 262_144_000}
        assert container["lower_bound"] == {"cpu_request_cores": 0.12, "memory_request_bytes": None}
        assert reports["others"]["live_vpa"]["cpu_request_cores"] == 0.587

        print_advice(advices, AdviceOutput.WIDE, None)
        wide = capsys.readouterr().out
        assert "LIVE VPA CPU" in wide
        assert "587m" in wide
        print_advice(advices, AdviceOutput.CSV, None)
        rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
        assert {row["live_vpa_cpu_request_cores"] for row in rows} == {"0.587", ""}

    def test_a_vpa_without_a_recommendation_is_unknown_and_not_zero(
        self, look: CycleSnapshot, capsys: pytest.CaptureFixture[str]
    ) -> None:
        waits = {"type": "RecommendationProvided", "status": "False", "message": "No pods match"}
        (reports,) = (advice for advice in self.advised(look, conditions=[waits]) if advice.id.name == "reports")
        assert reports.baselines["live_vpa"] is None
        print_advice([reports], AdviceOutput.TABLE, None, findings=True)
        assert "VPA reports (updateMode Off) recommends nothing yet: No pods match" in capsys.readouterr().out

    def test_explain_shows_it_beside_our_recommendation(self, tmp_path: Path) -> None:
        vpas = str(given.written(tmp_path / "vpas.json", given.vpa("data", "reports", self.RECOMMENDED)))
        with staged() as stage:
            options = ("--prometheus", stage.url, "--at", stage.begin.isoformat(), "--objects", vpas)
            output = run("explain", "data/reports", *options).output
        bounds = "cpu 587m (120m to 1200m), memory 250Mi (– to 400Mi)"
        assert f"VPA reports (updateMode Off) recommends reports {bounds}." in output


class TestAdvice:
    def test_json_has_base_units_and_totals(self, advices: list[Advice], capsys: pytest.CaptureFixture[str]) -> None:
        print_advice(advices, AdviceOutput.JSON, Prices(0.03, 0.004))
        document = json.loads(capsys.readouterr().out)
        reports = next(row for row in document["recommendations"] if row["name"] == "reports")
        assert reports["now"]["memory_request_bytes"] == 2**31
        assert document["totals"]["workloads"] == len(advices)
        assert document["totals"]["cost_a_month"]["recommended"] > 0

    def test_csv_has_one_row_for_each_workload(self, advices: list[Advice], capsys: pytest.CaptureFixture[str]) -> None:
        print_advice(advices, AdviceOutput.CSV, None)
        rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert [row["name"] for row in rows] == [advice.id.name for advice in advices]
        assert all(row["vpa_memory_request_bytes"] is not None for row in rows)

    def test_filters_by_severity_and_refusal(self, advices: list[Advice]) -> None:
        everybody = {advice.id for advice in advices}
        assert {advice.severity for advice in filtered(advices, everybody, None, "critical", refused=False)} == {
            "CRITICAL"
        }
        assert [advice.id.name for advice in filtered(advices, everybody, None, None, refused=True)] == ["reports"]

    def test_objects_of_the_cluster_refuse_and_give_the_nearest(
        self, reports: list[Advice], capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A limit of twice the request would be more than four cores; the namespace allows three."""
        print_advice(reports, AdviceOutput.TABLE, None, findings=True)
        output = capsys.readouterr().out
        assert "refuses: LimitRange: reports: maximum cpu per Container is 3" in output
        assert "nearest 2" in output

    def test_patches_write_what_the_cluster_takes(
        self, reports: list[Advice], capsys: pytest.CaptureFixture[str]
    ) -> None:
        print_advice(reports, AdviceOutput.PATCHES, None)
        (patch,) = yaml.safe_load_all(capsys.readouterr().out)
        (container,) = patch["spec"]["template"]["spec"]["containers"]
        assert (container["name"], container["resources"]["limits"]["cpu"]) == ("reports", "3")

    def test_resources_that_a_template_states_for_the_whole_pod_are_patched_there(
        self, look: CycleSnapshot, capsys: pytest.CaptureFixture[str]
    ) -> None:
        made = given.deployment("data", "reports", {"name": "reports"}, replicas=5)
        block = {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
        made["spec"]["template"]["spec"]["resources"] = block
        cluster = replace(look.cluster, templates=cluster_of({"Deployment": [made]}).templates, limit_ranges={})
        advices = replace(look, cluster=cluster).advices({}, compare=False)
        print_advice([advice for advice in advices if advice.id.name == "reports"], AdviceOutput.PATCHES, None)
        (patch,) = yaml.safe_load_all(capsys.readouterr().out)
        assert list(patch["spec"]["template"]["spec"]) == ["resources"]
        sized = patch["spec"]["template"]["spec"]["resources"]
        assert sized["limits"]["cpu"] is None
        assert sized["limits"]["memory"] == sized["requests"]["memory"] != "2Gi"

    def test_what_is_made_from_another_object_gets_no_patch(
        self, reports: list[Advice], capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The controller of the other object would take the size back."""
        print_advice([replace(advice, made_by="Elasticsearch logs") for advice in reports], AdviceOutput.PATCHES, None)
        captured = capsys.readouterr()
        assert list(yaml.safe_load_all(captured.out)) == []
        assert "data/reports: no patch: it is made from Elasticsearch logs" in captured.err

    def test_a_reason_of_many_is_one_line(self, reports: list[Advice], capsys: pytest.CaptureFixture[str]) -> None:
        """A thousand workloads without `--objects` would otherwise print a thousand lines."""
        ids = [reports[0].id._replace(name=f"reports-{number}") for number in range(7)]
        print_advice([replace(reports[0], id=id_, made_by="Prometheus db") for id_ in ids], AdviceOutput.PATCHES, None)
        (line,) = (line for line in capsys.readouterr().err.splitlines() if "no patch" in line)
        assert line.startswith("! data/reports-0, data/reports-1, ")
        assert "data/reports-4 and 2 more: no patch: it is made from Prometheus db" in line

    def test_an_overlay_builds_on_its_base(self, reports: list[Advice], tmp_path: Path) -> None:
        folder = tmp_path / "overlay"
        assert write_overlay(reports, reports, folder, "../app") == (1, 0)
        overlay = yaml.safe_load((folder / "kustomization.yaml").read_text())
        assert overlay["resources"] == ["../app"]
        assert [(folder / patch["path"]).exists() for patch in overlay["patches"]] == [True]

    def test_a_full_disk_names_the_overlay(self, reports: list[Advice], tmp_path: Path) -> None:
        with full_disk(after=100), pytest.raises(StoreError, match=rf"{tmp_path}: File too large; .* a part"):
            write_overlay(reports, reports, tmp_path, "../app")

    def test_in_place_the_running_pods_are_checked(self, look: CycleSnapshot) -> None:
        advices = look.advices({}, compare=False, terms=ApplyTerms(in_place=True))
        (proof,) = [advice.proof for advice in advices if advice.id.name == "reports"]
        assert proof is not None
        assert "in-place resize" in {finding.rule for finding in proof.findings}

    def test_in_place_pods_with_an_injected_sidecar_are_checked_too(self, tmp_path: Path) -> None:
        """A mesh adds containers to pods that their template does not have."""
        proxy = given.container("istio-proxy", {"cpu": "100m", "memory": "128Mi"}, {"cpu": "2", "memory": "1Gi"})
        path = given.written(
            tmp_path / "cluster.json",
            given.deployment("data", "reports", REPORTS, replicas=1),
            given.replica_set("data", "reports"),
            given.pod("data", "reports-0", "n0", REPORTS, proxy, owner=("ReplicaSet", "reports-7d9f")),
            given.node("n0", "8", "32Gi"),
        )
        (advice,) = (
            each
            for each in take_demo_snapshot([path], None).advices({}, compare=False, terms=ApplyTerms(in_place=True))
            if each.id.name == "reports"
        )
        assert advice.proof is not None
        assert "in-place resize" in {finding.rule for finding in advice.proof.findings}


@pytest.fixture(scope="module")
def ahead(look: CycleSnapshot) -> NodeForecast:
    return look.node_forecast(0.95, 30)


def test_pods_that_only_state_limits_take_as_much_of_a_pool(look: CycleSnapshot, ahead: NodeForecast) -> None:
    """A template is stored as it was written; the API server makes requests from limits when it creates a pod."""
    template = Pod((Container("reports", block(limits=("2", "2Gi"))),))
    cluster = replace(look.cluster, templates=dict.fromkeys(look.cluster.templates, template))
    forecast = replace(look, cluster=cluster).node_forecast(0.95, 30)
    assert [window.requested_cpu.value for window in forecast.pools[0].windows] == [
        window.requested_cpu.value for window in ahead.pools[0].windows
    ]


@pytest.fixture
def printed(ahead: NodeForecast, capsys: pytest.CaptureFixture[str]) -> Callable[[NodesOutput], str]:
    def print_output(output: NodesOutput) -> str:
        print_nodes(ahead, output, "pause:3")
        return capsys.readouterr().out

    return print_output


def test_pools_ahead_in_json(printed: Callable[[NodesOutput], str]) -> None:
    document = json.loads(printed(NodesOutput.JSON))
    assert list(Draft202012Validator(schema_of("nodes")).iter_errors(document)) == []
    (pool,) = document["pools"]
    assert (pool["nodes"], pool["allocatable"]["cpu_cores"]) == (3, 24.0)
    assert len(pool["windows"]) == 8
    first = pool["windows"][0]["used_cpu_cores"]
    assert 0 < first["if_independent"] <= first["value"] <= first["if_all_at_once"] * 1.001


def test_the_table_shows_when_nodes_are_needed(printed: Callable[[NodesOutput], str]) -> None:
    assert "pool nodes: 3 nodes" in printed(NodesOutput.TABLE)


def test_the_first_missing_node_is_named_beside_the_most(
    ahead: NodeForecast, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operator has to act before the first node is missing."""
    (pool,) = ahead.pools
    grown = [
        replace(window, packing=replace(window.packing, new_nodes=new))
        for window, new in zip(pool.windows, (0, 1, 1, 3, 2, 3, 0, 0), strict=True)
    ]
    print_nodes(replace(ahead, pools=(replace(pool, windows=tuple(grown)),)), NodesOutput.TABLE, "")
    line = f"4 needed from {grown[1].begin:%a %H:%M}, 6 needed from {grown[3].begin:%a %H:%M}"
    assert line in " ".join(capsys.readouterr().out.split())


def test_the_manifest_of_headroom_pods(printed: Callable[[NodesOutput], str]) -> None:
    kinds = [document["kind"] for document in yaml.safe_load_all(printed(NodesOutput.HEADROOM))]
    assert kinds == ["PriorityClass", "Deployment"]


def test_the_buffers_of_an_autoscaler_that_keeps_capacity_by_itself(printed: Callable[[NodesOutput], str]) -> None:
    text = printed(NodesOutput.CAPACITY_BUFFER)
    template, buffer = yaml.safe_load_all(text)
    assert "*id" not in text
    assert (template["kind"], buffer["kind"]) == ("PodTemplate", "CapacityBuffer")
    assert buffer["spec"]["podTemplateRef"] == {"name": template["metadata"]["name"]}
    assert buffer["spec"]["replicas"] >= 0


def test_metrics_have_the_pool_as_label(printed: Callable[[NodesOutput], str]) -> None:
    text = printed(NodesOutput.METRICS)
    assert 'forecaster_node_pool_nodes{pool="nodes"} 3.0' in text
    assert 'forecaster_node_pool_requested_cpu_cores{ahead_minutes="0",pool="nodes"}' in text


def test_count_and_size_together_from_the_command_to_json() -> None:
    words = ("recommend", "--demo", "--joint", "--no-compare", "-o", "json", "--price-pod-start", "0.01")
    text = run(*words, "--at", "2026-11-24T12:00:00Z").output
    by_name = {row["name"]: row["joint"] for row in json.loads(text)["recommendations"]}
    search = by_name["search"]
    assert search["plan"] is not None, by_name
    assert search["plan"]["cost"] < search["now"]["cost"]
    assert search["scale_point_cores"] == pytest.approx(
        search["plan"]["cpu_request_cores"] * search["hpa_utilization_ratio"]
    )
    assert "it is not scaled" in by_name["reports"]["reason"]
    assert by_name["reports"]["plan"] is None


def test_where_starts_are_dear_a_plan_has_no_more_of_them(look: CycleSnapshot) -> None:
    planned = [joint for joint in look.joint(ResourceCosts(pod_start=1e6)).values() if joint.plan and joint.now]
    assert planned
    assert all(joint.plan.replicas - joint.plan.least <= joint.now.replicas - joint.now.least for joint in planned)


def test_where_nothing_costs_anything_nothing_is_cheaper(look: CycleSnapshot) -> None:
    planned = [joint for joint in look.joint(ResourceCosts(core_hour=0.0, gib_hour=0.0)).values() if joint.plan]
    assert planned
    assert all("0 % cheaper" in joint_line(joint) for joint in planned)


def test_a_plan_that_the_cluster_refuses_is_not_taken(look: CycleSnapshot) -> None:
    """A container in `data` may have three cores at most, so ingest stays below."""
    (ingest,) = (joint for id_, joint in look.joint(ResourceCosts()).items() if id_.name == "ingest")
    assert ingest.plan is None or ingest.plan.cpu <= 3
    line = joint_line(ingest)
    assert "acts at" in line or "not changed together" in line
