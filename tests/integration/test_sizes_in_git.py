"""docs/sizes-in-git.md: its script against a Git server, its values read by Helm, its jobs as their platforms want."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import load_recording
from tests.support import objects as given
from tests.support.control_plane.binaries import find
from tests.support.packaging import helm
from tests.support.snippets import snippets

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCKS = [snippet.text for snippet in snippets() if snippet.page.name == "sizes-in-git.md" and snippet.language]
(MAP, SCRIPT, GITHUB, GITLAB) = BLOCKS
NAMES = (("data", "reports"), ("shop", "storefront"), ("shop", "recommendations"))
BRANCH, OVERLAY = "forecaster-sizes", "values-forecaster.yaml"
VALUES = """\
reports:
  # an owner's comment
  resources:
    requests: {{cpu: 1, memory: 2Gi}}
storefront:
  resources:
    requests: {{cpu: 1, memory: 1Gi}}
    limits: {{cpu: 2}}   # not in the cluster any more
recommendations:
  resources:
    requests: {{cpu: 1, memory: {near}}}
    limits: {{memory: {near}}}
"""
TEMPLATE = (
    "{{ range $name, $of := .Values }}{{ if $of.resources }}{{ $name }}: {{ toJson $of.resources }}\n{{ end }}{{ end }}"
)


class Team(NamedTuple):
    """A clone of the team's repository, its bare origin, and the options with which the script is run."""

    clone: Path
    origin: Path
    options: tuple[str, ...]

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.clone, check=True, capture_output=True, text=True).stdout

    def week(self) -> None:
        """Run the script of the page in a fresh and shallow clone, as a job does."""
        subprocess.run(
            ["git", "clone", "-q", "--depth=1", f"file://{self.origin}", "job"], cwd=self.clone.parent, check=True
        )
        job = self.clone.parent / "job"
        try:
            done = subprocess.run(
                ["sh", "sizes.sh", *self.options], cwd=job, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
        finally:
            subprocess.run(["rm", "-rf", job], check=True)
        self.git("fetch", "-q", "--prune", "origin")

    @property
    def branches(self) -> set[str]:
        return {line.rpartition("/")[2] for line in self.git("ls-remote", "--heads", "origin").splitlines()}

    @property
    def ahead(self) -> int:
        return int(self.git("rev-list", "--count", f"origin/main..origin/{BRANCH}"))

    def overlay(self, branch: str) -> dict[str, Any]:
        return yaml.safe_load(self.git("show", f"origin/{branch}:{OVERLAY}"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The options of a Prometheus with the recorded load, and of the objects around it; sizes wait for no gate."""
    settings = tmp_path_factory.mktemp("settings") / "settings.yaml"
    settings.write_text("policy: {horizontal: {gate: false}}\n")
    app = given.container("app", {"cpu": "1", "memory": "1Gi"})
    objects = given.written(
        tmp_path_factory.mktemp("objects") / "cluster.json",
        *(given.deployment(*name, app, replicas=5) for name in NAMES),
    )
    recording = load_recording()
    with EmbeddedPrometheus(recording, Queries(), recording.fleet(recording.end)) as server:
        at = ("--at", recording.end.isoformat(), "--objects", str(objects), "--no-compare", "--prometheus", server.url)
        yield (*at, "--config", str(settings), "--price-core-hour", "0.03", "--price-gib-hour", "0.004")


@pytest.fixture(scope="module")
def recommended(measured: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Requests and limits of each container, as `-o json` has them."""
    command = [Path(sys.executable).with_name("forecaster"), "recommend", *measured, "-o", "json"]
    document = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {
        recommendation["name"]: recommendation["containers"]["app"]
        for recommendation in document["recommendations"]
        if recommendation["containers"]
    }


@pytest.fixture
def team(
    tmp_path: Path, measured: tuple[str, ...], recommended: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Team:
    """A repository with the chart, in which the size of `recommendations` is five percent too large."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    near = round(int(recommended["recommendations"]["requests"]["memory"].removesuffix("Mi")) * 1.05)
    origin, clone = tmp_path / "origin.git", tmp_path / "team"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", origin], check=True)
    subprocess.run(["git", "clone", "-q", f"file://{origin}", clone], check=True, capture_output=True)
    for name, text in {
        "Chart.yaml": "{apiVersion: v2, name: shop, version: 1.0.0}\n",
        "templates/sizes.yaml": TEMPLATE,
        "values.yaml": VALUES.format(near=f"{near}Mi"),
        "sizes.yaml": MAP,
        "sizes.sh": SCRIPT,
    }.items():
        (clone / name).parent.mkdir(exist_ok=True)
        (clone / name).write_text(text)
    built = Team(clone, origin, measured)
    built.git("config", "user.email", "owner@example.com")
    built.git("config", "user.name", "owner")
    built.git("checkout", "-q", "-B", "main")
    built.git("add", ".")
    built.git("commit", "-q", "-m", "A chart")
    built.git("push", "-q", "origin", "main")
    return built


@pytest.mark.slow
def test_there_is_never_a_second_pull_request(team: Team, recommended: dict[str, Any]) -> None:
    for _ in range(2):
        team.week()
        assert (team.branches, team.ahead) == ({"main", BRANCH}, 1)
        assert team.git("diff", "--name-only", "origin/main", f"origin/{BRANCH}").split() == [OVERLAY]
    overlay, message = team.overlay(BRANCH), team.git("log", "-1", "--format=%B", f"origin/{BRANCH}")
    assert overlay.keys() == {"reports", "storefront"}, "5 % is less than 10 %"
    assert overlay["reports"]["resources"]["requests"] == recommended["reports"]["requests"]
    assert overlay["storefront"]["resources"]["limits"]["cpu"] is None
    assert message.startswith("Requests and limits by forecaster\n\n2 of 3 containers moved by more than 10 %")
    assert all(phrase in message for phrase in ("| data/reports/app |", "OOM KILL EXPECTED", "Cost a month", "once in"))

    team.git("push", "-q", "origin", f"origin/{BRANCH}:main")
    team.week()
    assert team.branches == {"main"}, "nothing moved, so nothing is proposed"

    changed = re.sub(r"(?<=memory: )\w+", "64Mi", team.git("show", f"origin/main:{OVERLAY}"), count=1)
    team.git("reset", "-q", "--hard", "origin/main")
    (team.clone / OVERLAY).write_text(changed)
    team.git("commit", "-q", "-a", "-m", "Somebody's own size")
    team.git("push", "-q", "origin", "main")
    team.week()
    assert (team.branches, team.ahead, team.overlay(BRANCH)) == ({"main", BRANCH}, 1, overlay)


@pytest.mark.slow
def test_helm_reads_the_sizes(team: Team, recommended: dict[str, Any]) -> None:
    """The cluster gets the recommendations: a limit that they leave out goes away, and a size that is near stays."""
    helm("version")
    team.week()
    team.git("checkout", "-q", BRANCH)
    done = helm("template", "shop", str(team.clone), "-f", str(team.clone / OVERLAY))
    assert done.returncode == 0, done.stderr
    rendered = yaml.safe_load(done.stdout)
    assert {name: rendered[name] for name in ("reports", "storefront")} == {
        name: {kind: sizes for kind, sizes in recommended[name].items() if sizes} for name in ("reports", "storefront")
    }
    assert (
        rendered["recommendations"]
        == yaml.safe_load((team.clone / "values.yaml").read_text())["recommendations"]["resources"]
    )


def test_the_job_of_github_runs_the_script_and_opens_one_pull_request(tmp_path: Path) -> None:
    job = yaml.safe_load(GITHUB)
    assert job[True] == {"schedule": [{"cron": "17 6 * * 1"}], "workflow_dispatch": None}, "on, as YAML 1.1 reads it"
    assert job["permissions"] == {"contents": "write", "pull-requests": "write"}
    runs = [step["run"] for step in job["jobs"]["sizes"]["steps"] if "run" in step]
    assert any(run.startswith("sh sizes.sh") for run in runs)
    assert all(parses(run) for run in runs)
    if (actionlint := find("actionlint")) is not None:
        (tmp_path / "sizes.yaml").write_text(GITHUB)
        done = subprocess.run(
            [actionlint, "-no-color", tmp_path / "sizes.yaml"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def test_the_job_of_gitlab_runs_the_script_and_opens_one_merge_request() -> None:
    (job,) = yaml.safe_load(GITLAB).values()
    assert job["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "schedule"'}]
    assert all(isinstance(line, str) and parses(line) for line in job["script"])
    assert any(line.startswith("sh sizes.sh") for line in job["script"])


def parses(script: str) -> bool:
    """Whether a shell understands it."""
    return subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
