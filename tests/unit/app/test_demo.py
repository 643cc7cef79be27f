"""Two clusters through the same minutes; a pod carries one core, the HPA aims at half of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.app.compose import observed_file
from forecaster.app.demo import play, settings_for, setups_of, staged
from forecaster.config.settings import Settings
from tests.support.builders import NOON, after, minutes
from tests.support.stage import BATCH, WEB, stage

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

STEADY = [2.0] * 20
JUMP = [2.0] * 5 + [6.0] * 15


def test_the_recommended_count_is_the_floor_of_one_cluster_and_the_other_knows_nothing_of_it() -> None:
    scene = stage(STEADY, [9])
    *_, last = play(scene, setups_of(scene)[0], minutes(4))
    assert last.floored[WEB].desired == 9
    assert last.plain[WEB].desired == 4


def test_the_endpoint_shows_the_pods_of_the_cluster_with_the_floor_when_they_are_ready() -> None:
    scene = stage(STEADY, [9])
    shown = [
        (scene.fleet[WEB].replicas, scene.fleet[WEB].ready_replicas)
        for _ in play(scene, setups_of(scene)[0], minutes(3))
    ]
    assert shown == [(9, 4), (9, 4), (9, 9)]
    instants = [change.since for change in scene.fleet.changes(WEB)]
    assert instants == [NOON.timestamp(), after(1).timestamp(), after(3).timestamp()]


def test_a_hold_leaves_the_floor_where_it_is() -> None:
    scene = stage(STEADY, [9, None])
    *_, last = play(scene, setups_of(scene)[0], minutes(15))
    assert last.floored[WEB].desired == 9


def test_a_floor_below_what_the_hpa_wants_changes_nothing() -> None:
    scene = stage(JUMP, [1])
    *_, last = play(scene, setups_of(scene)[0], minutes(15))
    assert last.floored[WEB] == last.plain[WEB]


def test_a_workload_without_hpa_is_left_out_with_the_reason() -> None:
    setups, left_out = setups_of(stage(STEADY, [4]))
    assert list(setups) == [WEB]
    assert "no HPA" in left_out[BATCH]


def test_what_a_service_keeps_in_the_same_folder_is_not_the_demos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with staged() as scene:
        scene.cycle.run(scene.begin)
        state_file = observed_file(settings_for(scene.url), scene.cycle.decider.observed)
        state_file.path.parent.mkdir()
        state_file.save()
    with staged() as scene:
        assert not scene.cycle.decider.observed.state.rows


def test_on_a_busy_machine_the_demo_waits_for_its_own_endpoint() -> None:
    """Half a minute was too short once in 700 runs of `recommend --demo --joint`: without pods, no plan."""
    waits = settings_for("http://127.0.0.1:9090").prometheus.read_timeout_seconds
    assert waits >= 10 * Settings().prometheus.read_timeout_seconds
