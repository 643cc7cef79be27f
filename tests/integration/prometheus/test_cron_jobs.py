"""`forecaster recommend` sizes CronJobs by their runs, which it reads from the real Prometheus."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from forecaster.cli import app
from forecaster.cli.catalogue import schema_of
from forecaster.domain.workload import ContainerId, WorkloadId
from forecaster.sources.cron_jobs import MAX_RUNS, run_queries, runs_of
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support import objects as given
from tests.support.cron_jobs import FIRST, HOUR, MIB, Run, created
from tests.support.exposition import World
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.vertical.sizing.runs import Runs
    from tests.support.prometheus import Binaries, Span

pytestmark = pytest.mark.prometheus

HOURS = 8
AT = FIRST + HOURS * HOUR - timedelta(minutes=5)
BACKUP = [600, 620, 700, 610, 640, 630, 605]
LONG_NAME = "a-name-of-as-many-letters-as-a-cron-job-may-have-now"


def hourly(name: str, *mebibytes: float, **more: Any) -> list[Run]:
    """A run each hour, the last one in the last hour."""
    first = HOURS - len(mebibytes)
    return [Run(name, FIRST + (first + i) * HOUR, peak, **more) for i, peak in enumerate(mebibytes)]


def world() -> Iterator[Span]:
    """A backup, one that was killed, one that is new, one with a long name; a namespace that makes a Job a minute."""
    killed = hourly("import", 300, 310, 300, 305, 300, 300)
    runs = [
        *hourly("backup", *BACKUP),
        *killed[:-1],
        killed[-1]._replace(mebibytes=1000, completes=False, killed=True),
        *hourly("report", 100, 100, 100),
        *hourly(LONG_NAME, *[50] * 5),
        *(Run("spam", FIRST + i * timedelta(minutes=3), i + 1, namespace="crowd") for i in range(MAX_RUNS + 20)),
    ]
    for name in ("backup", "import", "report", LONG_NAME):
        yield from created("shop", name, HOURS)
    yield from created("crowd", "spam", HOURS)
    for run in runs:
        yield from run.spans()
    web = World("one", AT.timestamp() - 3600, interval=60.0, scrapes=60)
    web.deployed("shop", "web", pods=2)
    yield from web


@pytest.fixture(scope="module")
def prometheus(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("cron-jobs") / "data"
    fill(data, world(), prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        yield running.url


def recommend(url: str, *arguments: str) -> str:
    at = ("--prometheus", url, "--at", AT.isoformat(), "--no-compare")
    result = CliRunner().invoke(app, ["recommend", *arguments, *at])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def advices(prometheus: str) -> dict[str, dict[str, Any]]:
    printed = json.loads(recommend(prometheus, "-o", "json"))
    assert list(Draft202012Validator(schema_of("recommend")).iter_errors(printed)) == []
    return {advice["name"]: advice for advice in printed["recommendations"]}


@pytest.fixture(scope="module")
def runs(prometheus: str) -> Iterator[dict[ContainerId, Runs]]:
    source = PrometheusSource(PrometheusSettings(url=prometheus), run_queries(Queries()))
    yield runs_of(source, AT)
    source.close()


def test_a_job_is_a_run_and_has_its_own_peak(runs: dict[ContainerId, Runs]) -> None:
    cpu, memory = runs[ContainerId(WorkloadId("shop", "CronJob", "backup"), "app")]
    assert memory == {run.job: run.mebibytes * MIB for run in hourly("backup", *BACKUP)}
    assert cpu == pytest.approx(dict.fromkeys(memory, 0.5))


def test_a_run_that_failed_is_none_of_them(runs: dict[ContainerId, Runs]) -> None:
    memory = runs[ContainerId(WorkloadId("shop", "CronJob", "import"), "app")].memory
    assert (len(memory), max(memory.values())) == (5, 310 * MIB)


def test_of_a_namespace_full_of_jobs_the_last_ones_are_read(
    runs: dict[ContainerId, Runs],
) -> None:
    memory = runs[ContainerId(WorkloadId("crowd", "CronJob", "spam"), "app")].memory
    assert (len(memory), min(memory.values())) == (MAX_RUNS, 21 * MIB)


def test_memory_is_the_largest_peak_and_a_tenth_with_the_chance_said(advices: dict[str, dict[str, Any]]) -> None:
    backup = advices["backup"]
    assert backup["kind"] == "CronJob"
    assert backup["containers"]["app"]["limits"]["memory"] == backup["containers"]["app"]["requests"]["memory"]
    assert backup["recommended"]["memory_limit_bytes"] == 770 * MIB
    job = hourly("backup", *BACKUP)[2].job
    assert f"the largest peak is 700Mi, of run {job}; by 7 completed runs the next passes it with" in backup["message"]
    assert "a chance of at most 1 in 8" in backup["message"]


def test_cpu_is_what_a_run_of_four_minutes_uses_while_it_runs(advices: dict[str, dict[str, Any]]) -> None:
    recommended = advices["backup"]["recommended"]
    assert (recommended["cpu_request_cores"], recommended["cpu_limit_cores"]) == (0.5, 1.0)


def test_after_a_kill_the_next_limit_is_half_as_much_again(advices: dict[str, dict[str, Any]]) -> None:
    assert advices["import"]["recommended"]["memory_limit_bytes"] == 1536 * MIB
    assert "raised after an OOM kill" in advices["import"]["message"]


def test_three_runs_are_too_few_for_a_number(advices: dict[str, dict[str, Any]]) -> None:
    report = advices["report"]
    assert (report["recommended"], report["reason"]) == (None, "short-history")
    assert report["message"] == "3 completed runs are known, it takes 5; unchanged"


def test_the_longest_name_is_found_too(advices: dict[str, dict[str, Any]]) -> None:
    assert advices[LONG_NAME]["recommended"]["memory_limit_bytes"] == 55 * MIB


def test_workloads_beside_them_are_as_before(advices: dict[str, dict[str, Any]]) -> None:
    assert advices["web"]["kind"] == "Deployment"


def test_a_sidecar_of_the_runs_keeps_what_it_has(advices: dict[str, dict[str, Any]]) -> None:
    assert [risk["container"] for risk in advices["backup"]["risks"]] == ["app"]
    assert advices["backup"]["containers"].keys() == {"app"}


def test_one_cron_job_can_be_asked_for_and_its_patch_is_of_the_job_template(prometheus: str, tmp_path: Path) -> None:
    app_container = given.container("app", {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"})
    objects = given.written(tmp_path / "cluster.json", given.cron_job("shop", "backup", app_container))
    (patch,) = yaml.safe_load_all(recommend(prometheus, "shop/backup", "--objects", str(objects), "-o", "patches"))
    assert (patch["apiVersion"], patch["kind"]) == ("batch/v1", "CronJob")
    (sized,) = patch["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert sized["resources"]["limits"] == {"cpu": "1", "memory": "770Mi"}


def test_count_and_size_together_say_that_no_hpa_scales_it(prometheus: str) -> None:
    (backup,) = json.loads(recommend(prometheus, "shop/backup", "-o", "json", "--joint"))["recommendations"]
    assert backup["joint"]["plan"] is None
    assert "it has no HPA" in backup["joint"]["reason"]


def test_cron_jobs_alone_can_be_listed(prometheus: str) -> None:
    printed = recommend(prometheus, "--kind", "CronJob", "--namespace", "shop", "-o", "name").split()
    assert sorted(printed) == sorted(f"shop/{name}" for name in (LONG_NAME, "backup", "import", "report"))


def test_a_run_costs_nothing_between_runs_so_no_cost_is_said(prometheus: str) -> None:
    prices = ("--price-core-hour", "0.03", "--price-gib-hour", "0.004")
    (backup,) = json.loads(recommend(prometheus, "shop/backup", "-o", "json", *prices))["recommendations"]
    assert backup["cost_a_month"] == {"now": None, "recommended": None}
