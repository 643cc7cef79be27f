"""The shipped rule files are what the queries make of them; whether Prometheus agrees is an integration test."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from forecaster.sources import rules

FOLDER = Path(__file__).parents[3] / "deploy" / "rules"


@pytest.mark.parametrize("name", rules.files())
def test_the_shipped_files_are_up_to_date(name: str) -> None:
    groups = rules.files()[name]
    assert (FOLDER / f"{name}.yaml").read_text(encoding="utf-8") == rules.plain(groups)
    assert (FOLDER / "operator" / f"{name}.yaml").read_text(encoding="utf-8") == rules.prometheus_rule(name, groups)


def test_no_other_rule_file_is_shipped() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == rules.files().keys() | {rules.ALERTS}


def test_the_operator_object_holds_the_same_groups() -> None:
    groups = rules.workload_groups()
    assert yaml.safe_load(rules.prometheus_rule("x", groups))["spec"]["groups"] == groups


def test_writing_makes_every_file(tmp_path: Path) -> None:
    rules.write(tmp_path)
    assert len(list(tmp_path.rglob("*.yaml"))) == 2 * len(rules.files())
