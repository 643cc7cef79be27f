"""`forecaster demo` over loopback: the recorded load, the real client, the real cycle."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml
from typer.testing import CliRunner

from forecaster.app.demo import NOTE, REQUESTS_METRIC, on_dashboard, play, setups_of, staged
from forecaster.cli import app
from forecaster.domain.decision import Scale
from forecaster.report.demo import show_dashboard, show_one_cycle, show_play
from forecaster.report.formats import Output
from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.domain.decision import Recommendation

COMMAND = Path(sys.executable).with_name("forecaster")
PICTURE = Path(__file__).parents[3] / "docs" / "demo.svg"
HALF_AN_HOUR = timedelta(minutes=30)
SLOW_TO_IMPORT = {"statsmodels", "sklearn", "pandas", "sqlalchemy", "kubernetes"}


def test_one_cycle_for_machines_is_a_list_of_recommendations_and_loads_no_library_that_it_does_not_need(
    tmp_path: Path,
) -> None:
    loaded = tmp_path / "loaded"
    probe = (
        "import atexit, sys; from pathlib import Path; from forecaster.__main__ import main; "
        f"atexit.register(lambda: Path({str(loaded)!r}).write_text(' '.join(sys.modules))); main()"
    )
    command = [sys.executable, "-c", probe, "demo", "--once", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert list(answer) == ["recommendations"]
    assert len(answer["recommendations"]) == 11
    assert {recommendation["at"] for recommendation in answer["recommendations"]} == {"2021-10-19T00:00:00Z"}
    assert done.stderr == ""
    assert "forecaster.report.demo" in loaded.read_text().split()
    assert SLOW_TO_IMPORT & {*loaded.read_text().split()} == set()


def test_one_cycle_is_what_once_prints_against_the_same_endpoint(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    show_one_cycle(Output.JSON)
    shown = json.loads(capsys.readouterr().out)
    config = tmp_path / "settings.yaml"
    config.write_text(yaml.safe_dump({"policy": {"horizontal": {"requests_metric": REQUESTS_METRIC}}}))
    with staged() as stage:
        at = stage.begin.isoformat()
        once = CliRunner().invoke(
            app, ["once", "--prometheus", stage.url, "--config", str(config), "--at", at, "-o", "json"]
        )
    assert json.loads(once.stdout) == shown


def test_the_service_forecasts_for_every_workload_and_sees_the_pods_that_its_floor_asked_for() -> None:
    with staged() as stage:
        setups, _ = setups_of(stage)
        moments = list(play(stage, setups, HALF_AN_HOUR))
    for before, after in pairwise(moments):
        counts = {recommendation.id: recommendation.replicas_now for recommendation in after.outcome.recommendations}
        assert {id_: world.desired for id_, world in before.floored.items()} == {id_: counts[id_] for id_ in setups}
        assert after.outcome.report.failures == ()
    assert all(has_forecast(recommendation) for recommendation in moments[-1].outcome.recommendations)


def has_forecast(recommendation: Recommendation) -> bool:
    return isinstance(recommendation.replicas, Scale) and any(
        view.forecast is not None for view in recommendation.signals
    )


def test_the_play_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    show_play(Output.JSON, length=HALF_AN_HOUR)
    shown = capsys.readouterr()
    answer = json.loads(shown.out)
    assert len(answer["recommendations"]) == 11
    outcome = answer["outcome"]
    assert len(outcome["workloads"]) + len(outcome["left_out"]) == 11
    for way in ("hpa", "decided"):
        spent = sum(workload["strategies"][way]["own"]["pod_hours"] for workload in outcome["workloads"])
        assert outcome["total"][way]["own"]["pod_hours"] == pytest.approx(spent)
        assert 0 <= outcome["total"][way]["own"]["short_share"] <= 1


def test_the_play_for_people_ends_with_the_table_the_outcome_and_what_to_do_next(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_play(Output.TABLE, length=HALF_AN_HOUR)
    text = capsys.readouterr().out
    for part in (
        "0.5 h of recorded load",
        "shop/search",
        "UNSERVED DEMAND",
        "MINUTES SHORT",
        "With the HPA alone",
        "data/reports",
    ):
        assert part in text
    assert "forecaster once --prometheus" in "".join(text.splitlines()[-2:])
    heads = {head for line in text.splitlines() if line.startswith("WORKLOAD") for head in line.split()}
    drawn = re.split(r"[<>\s]", PICTURE.read_text(encoding="utf-8").replace("&#160;", " "))
    assert heads - set(drawn) == set(), "draw it anew as benchmarks/picture.py says"


def test_the_play_in_a_browser_prints_the_outcome_too(capsys: pytest.CaptureFixture[str]) -> None:
    show_dashboard(0, length=HALF_AN_HOUR, stay=lambda: None)
    text = capsys.readouterr().out
    assert [part in text for part in ("UNSERVED DEMAND", "With the HPA alone", "It stays at http://127.0.0.1:")] == [
        True
    ] * 3


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_serve_opens_the_dashboard_at_its_port_until_it_is_ended_and_leaves_no_file(
    number: signal.Signals, code: int
) -> None:
    (port,) = free_ports(1)
    command = [COMMAND, "demo", "--serve", "--port", str(port)]
    with TemporaryDirectory() as folder:  # a socket lies there, of which the path must be short
        demo = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder})
        try:
            assert answered(f"http://127.0.0.1:{port}/", "dashboard/now")
        finally:
            demo.send_signal(number)
            status = demo.wait(PATIENCE)
        assert (status, list(Path(folder).iterdir())) == (code, [])


def test_the_dashboard_shows_the_cycle_that_was_played_last() -> None:
    with staged() as stage, on_dashboard(stage, 0) as address:
        setups, _ = setups_of(stage)
        *_, last = play(stage, setups, timedelta(minutes=6))
        whole = dict.fromkeys(("published_at", "drawn_at"), "2021-10-19T00:05:00Z")
        now = answered(address, "dashboard/now", lambda payload: payload.items() >= whole.items())
        fleet = answered(address, "dashboard/fleet")
        page = answered(address, "dashboard/workloads/shop/Deployment/checkout")
        health = answered(address, "dashboard/health")
    counts = {
        recommendation.id.name: recommendation.replicas.replicas
        for recommendation in last.outcome.recommendations
        if isinstance(recommendation.replicas, Scale)
    }
    assert dict(zip(fleet["name"], fleet["recommended"], strict=True)) == counts
    assert (now["stale"], now["note"]) == (False, NOTE)
    assert page["series"]["until"] == "2021-10-19T00:05:00Z"
    assert page["outlooks"][0]["path"]["steps"]
    assert health["cycles"][0]["at"] == "2021-10-19T00:04:00Z"


def answered(address: str, path: str, known: Callable[[Any], bool] = lambda _payload: True) -> Any:
    """Return the answer of a serving process that starts, or takes up another table, meanwhile."""

    answers: list[Any] = []

    def is_there() -> bool:
        with suppress(httpx.TransportError):
            answer = httpx.get(address + path)
            answers[:] = [answer.json()] if answer.status_code == 200 else []
        return bool(answers) and known(answers[0])

    wait_until(is_there, goal=path)
    return answers[0]
