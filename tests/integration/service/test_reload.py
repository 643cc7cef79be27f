"""A mounted ConfigMap that is edited while the service runs: symbolic links of a kubelet, replaced as a whole."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
import yaml

from forecaster.app import telemetry
from forecaster.app.reload import SettingsFiles, SettingsReload
from forecaster.app.serve import build_service, state_directory
from forecaster.app.sharding.cycle import ShardedCycle
from forecaster.app.sharding.shard import LocalExecutor
from forecaster.config.files import fingerprint
from forecaster.config.settings import load
from forecaster.domain.layers import merged
from tests.support.builders import NOON, after, workload
from tests.support.composed import published, recorded_cluster, tick

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.app.service import Service
    from tests.support.composed import Cluster


class Mounted:
    """A volume of a ConfigMap with one file."""

    def __init__(self, folder: Path, value: dict[str, Any]) -> None:
        self.folder, self.value = folder, value
        self._numbers = count(1)
        folder.mkdir()
        self.edit()
        (folder / "settings.yaml").symlink_to("..data/settings.yaml")

    def edit(self, text: str | None = None, **sections: Any) -> None:
        """Swap the mounted folder as a kubelet does: another folder, and one rename of the link to it."""
        self.value = dict(merged(self.value, sections))
        written = self.folder / f"..{next(self._numbers)}"
        written.mkdir()
        (written / "settings.yaml").write_text(yaml.safe_dump(self.value) if text is None else text)
        (self.folder / "..new").symlink_to(written.name)
        os.replace(self.folder / "..new", self.folder / "..data")  # noqa: PTH105  as kubelets do it


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with recorded_cluster([workload("web"), workload("cart")]) as running:
        yield running


NOTICES: list[str] = []
"""Notices that would be Events beside the pod."""


@pytest.fixture
def mounted(cluster: Cluster, tmp_path: Path) -> Mounted:
    return Mounted(
        tmp_path / "mounted",
        {
            "prometheus": {"url": cluster.url, "retries": 0},
            "state": {"directory": str(tmp_path / "state")},
            "forecast": {"model": "seasonal-naive-day"},
            "policy": {"mode": "publish", "horizontal": {"gate": False}},
        },
    )


@pytest.fixture
def service(mounted: Mounted, parts: ExitStack) -> Service:
    settings = load(mounted.folder)
    files = SettingsFiles(partial(fingerprint, mounted.folder), partial(load, mounted.folder), dict)
    log = telemetry.logger()
    built = build_service(settings, state_directory(settings.state), log, parts, clock=lambda: NOON)
    built.reload = SettingsReload(files, settings, log)
    built.reload.on_refusal = NOTICES.append
    NOTICES.clear()
    tick(built, NOON)
    return built


@pytest.fixture
def parts() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def counts(service: Service) -> dict[str, float]:
    """The recommended count of each workload in the table."""
    assert service.reload
    table = published(service.reload.running.state.directory)
    return {entry.name: table.number("recommended", entry.row) for entry in table.entries}


def test_another_policy_decides_the_next_cycle_and_what_was_learned_is_kept(
    mounted: Mounted, service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    observed, before = service.cycle.decider.observed, counts(service)
    assert (models := dict(service.cycle.forecaster.signals))
    mounted.edit(overrides=[{"match": {"name": "cart"}, "policy": {"horizontal": {"min_replicas": 9}}}])
    tick(service, after(1))
    assert counts(service)["cart"] == 9 > before["cart"]
    assert counts(service)["web"] < 9
    assert observed is service.cycle.decider.observed
    assert service.cycle.forecaster.signals.items() >= models.items()
    mounted.edit(overrides=[])
    tick(service, after(2))
    assert "settings_taken_over" in capsys.readouterr().out
    assert service.cycle.policies.overrides == ()


def test_a_bad_edit_is_told_once_and_so_is_its_end(mounted: Mounted, service: Service) -> None:
    mounted.edit("policy: {")
    for minute in (1, 2):
        tick(service, after(minute))
    mounted.edit(overrides=[])
    for minute in (3, 4):
        tick(service, after(minute))
    refused, mended = NOTICES
    assert "line 1" in refused
    assert mended == ""


BAD = {
    "a value out of its range": (
        yaml.safe_dump({"policy": {"horizontal": {"quantile": 2}}}),
        "policy.horizontal.quantile",
    ),
    "no YAML": ("policy: {", "line 1"),
    "an unknown name": ("polcy: {}", "did you mean policy?"),
    "a mode that needs more": ("policy: {mode: floor}", "mode floor needs floor.enabled"),
}


@pytest.mark.parametrize(("text", "problem"), BAD.values(), ids=BAD)
def test_a_bad_edit_keeps_what_was_and_says_so(mounted: Mounted, service: Service, text: str, problem: str) -> None:
    mounted.edit(overrides=[{"match": {"name": "cart"}, "policy": {"horizontal": {"min_replicas": 9}}}])
    tick(service, after(1))
    mounted.edit(text)
    for minute in (2, 3):
        tick(service, after(minute))
        assert counts(service)["cart"] == 9
        assert service.report
        (line,) = [failure for failure in service.report.failures if failure.startswith("settings: refused")]
        assert problem in line
        assert "forecaster_settings_loaded 0.0" in service.metrics.text()
    mounted.edit()
    tick(service, after(4))
    assert service.report.failures == ()
    assert "forecaster_settings_loaded 1.0" in service.metrics.text()


def test_what_needs_a_restart_says_so_beside_what_is_taken_over(mounted: Mounted, service: Service) -> None:
    mounted.edit(serving={"port": 9999}, history={"weeks_kept": "7d"}, policy={"horizontal": {"min_replicas": 8}})
    tick(service, after(1))
    assert set(counts(service).values()) == {8}
    assert service.report
    assert "settings: history.weeks_kept, serving.port changed; restart the service for it" in service.report.failures
    assert "forecaster_settings_waiting 2.0" in service.metrics.text()


def test_a_policy_that_needs_a_setting_of_after_the_restart_is_not_taken_over(
    mounted: Mounted, service: Service
) -> None:
    mounted.edit(floor={"enabled": True}, policy={"mode": "floor"})
    tick(service, after(1))
    assert service.report
    assert any("mode floor needs floor.enabled" in failure for failure in service.report.failures)
    assert service.cycle.policies.defaults.mode == "publish"


def test_a_file_that_is_gone_for_a_moment_is_no_empty_one(mounted: Mounted, service: Service) -> None:
    (mounted.folder / "settings.yaml").unlink()
    tick(service, after(1))
    assert service.report
    assert any(failure.startswith("settings: refused") for failure in service.report.failures)
    assert service.cycle.policies.defaults.mode == "publish"
    (mounted.folder / "settings.yaml").symlink_to("..data/settings.yaml")
    tick(service, after(2))
    assert not service.reload.refused, "the very same file is back"
    assert NOTICES[-1] == ""


@pytest.fixture
def divided(mounted: Mounted) -> None:
    mounted.edit(sharding={"enabled": True, "shards": 2})


@pytest.mark.usefixtures("divided")
def test_another_number_of_shards_is_taken_over_with_the_next_cycle(mounted: Mounted, request: Any) -> None:
    service: Service = request.getfixturevalue("service")
    assert isinstance(service.cycle, ShardedCycle)
    mounted.edit(sharding={"shards": 5, "scheduler": "tcp://127.0.0.1:1"})
    tick(service, after(1))
    assert service.cycle.learned.shards == 5
    assert service.report
    assert service.report.failures == ("settings: sharding.scheduler changed; restart the service for it",)
    assert counts(service).keys() == {"web", "cart"}
    with patch.object(LocalExecutor, "run", autospec=True, side_effect=LocalExecutor.run) as run:
        tick(service, after(2))
    assert {task.sizes_since for task in run.call_args.args[1]} == {after(1)}, "unchanged sizes are sent again"
