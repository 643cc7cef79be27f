"""The rule files are made of the queries; whether Prometheus agrees is an integration test."""

from __future__ import annotations

import pytest
import yaml

from deploy.generate import rules


def test_no_other_rule_file_is_shipped() -> None:
    assert {path.stem for path in rules.RULES.glob("*.yaml")} == rules.groups().keys() | {rules.ALERTS}
    assert set(rules.RULES.glob("operator/*.yaml")) <= rules.files().keys()


@pytest.mark.parametrize("name", rules.groups())
def test_the_object_of_the_operator_holds_the_same_groups(name: str) -> None:
    plain, made = (yaml.safe_load(rules.files()[rules.RULES / folder / f"{name}.yaml"]) for folder in (".", "operator"))
    assert made["spec"] == plain
