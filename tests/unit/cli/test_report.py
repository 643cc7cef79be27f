"""`forecaster report` from the options to the files."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from forecaster.cli import app
from forecaster.errors import ConfigError, StoreError
from tests.support.full_disk import full_disk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from forecaster.replay.compare import ReplayScope
    from forecaster.replay.strategies import Strategy

QUICK = ("--from", "2021-10-20T18:00:00Z", "--every", "30", "--no-cache")


def test_a_span_of_the_bundled_load_as_json_and_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = CliRunner().invoke(
        app, ["report", "shop/search", *QUICK, "--to", "2021-10-21T00:00:00Z", "--html", str(page), "-o", "json"]
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["begin"], document["until"]) == ("2021-10-20T18:00:00Z", "2021-10-21T00:00:00Z")
    assert [workload["name"] for workload in document["workloads"]] == ["search"]
    assert document["summary"][0].startswith(
        ("Forecaster was worse than the HPA alone", "No benefit: forecaster was worse")
    )
    assert document["decided"] is None
    assert "What forecaster was worth" in page.read_text()


def test_a_span_has_a_beginning_and_a_length_and_a_namespace() -> None:
    quick = ("--from", "2021-10-20T18:00:00Z", "--length", "1h", "--every", "30", "--no-cache")
    done = CliRunner().invoke(app, ["report", *quick, "-n", "shop,no*", "search", "-o", "json"])
    document = json.loads(done.stdout)
    assert (document["begin"], document["until"]) == ("2021-10-20T18:00:00Z", "2021-10-20T19:00:00Z")
    assert [workload["name"] for workload in document["workloads"]] == ["search"]
    refused = CliRunner().invoke(app, ["report", *quick, "-n", "shp"], catch_exceptions=True).exception
    assert "no namespace matches 'shp'; did you mean shop?" in str(refused)


@pytest.mark.parametrize("whole", [1, 2])
def test_after_ctrl_c_the_strategies_that_were_finished_are_reported(
    monkeypatch: pytest.MonkeyPatch, whole: int
) -> None:
    module, begun = import_module("forecaster.replay.compare"), list[str]()
    runs_of = module.runs_of

    def interrupted(scope: ReplayScope, strategies: Sequence[Strategy], *others: Any) -> Iterator[Any]:
        begun.extend(strategy.name for strategy in strategies)
        if len(begun) > whole:
            raise KeyboardInterrupt
        runs: Iterator[Any] = runs_of(scope, strategies, *others)
        return runs

    monkeypatch.setattr(module, "runs_of", interrupted)
    done = CliRunner().invoke(app, ["report", "shop/search", *QUICK, "--to", "2021-10-20T19:00:00Z"])
    assert done.exit_code == 130, done.exception
    assert "With the HPA alone" in done.stdout
    assert ("seasonal naive: " in done.stdout) == (whole == 2)
    assert done.stderr.startswith("Finishing with what there is; Ctrl-C once more ends at once.\n")
    assert "Interrupted in " in done.stderr


def test_a_span_that_ends_before_it_begins_is_refused() -> None:
    done = CliRunner().invoke(app, ["report", *QUICK, "--to", "2021-10-19T00:00:00Z"], catch_exceptions=True)
    assert isinstance(done.exception, ConfigError)
    assert "is not before 2021-10-19 00:00 UTC" in str(done.exception)


def test_a_week_has_no_other_beginning() -> None:
    done = CliRunner().invoke(app, ["report", "--week", *QUICK], catch_exceptions=True)
    assert isinstance(done.exception, ConfigError)
    assert "is seven days" in str(done.exception)


def test_figures_are_not_written_over_the_page(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", "shop/search", *QUICK, "--html", str(tmp_path / "report.json")])
    assert isinstance(done.exception, StoreError)
    assert "would be written twice" in str(done.exception)


def test_a_disk_that_is_full_leaves_the_page_of_last_week_as_it_was(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("last week")
    with full_disk(after=4096):
        done = CliRunner().invoke(
            app, ["report", "shop/search", *QUICK, "--to", "2021-10-20T19:00:00Z", "--html", str(page)]
        )
    assert "cannot be written (File too large)" in str(done.exception)
    assert (page.read_text(), list(tmp_path.iterdir())) == ("last week", [page])
