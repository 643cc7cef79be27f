"""Alerts name what they read, say what to do, and lead to a heading; `promtool` runs them elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from deploy.generate import rules

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "rules"
RUNBOOKS = "https://forecaster.dev/docs/runbooks/#"
RULES = [
    rule
    for group in yaml.safe_load((FOLDER / f"{rules.ALERTS}.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
ALERTS = [rule for rule in RULES if "alert" in rule]
RECORDED = {rule["record"] for rule in RULES if "record" in rule}


def text_of(*path: str) -> str:
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


@pytest.mark.parametrize("alert", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_is_wrong_and_leads_to_its_runbook(alert: dict[str, dict[str, str]]) -> None:
    annotations, heading = alert["annotations"], str(alert["alert"])
    assert annotations["summary"]
    assert annotations["description"].endswith(".")
    assert annotations["runbook_url"] == RUNBOOKS + heading.lower()
    assert f"\n## {heading}\n" in text_of("docs", "runbooks.md")
    assert alert["labels"]["severity"] in {"critical", "warning"}


def test_a_log_event_that_is_named_is_one_of_the_log() -> None:
    descriptions = " ".join(alert["annotations"]["description"] for alert in ALERTS)
    named = re.findall(r"log event ([a-z_]+)", descriptions)
    assert len(named) > 4
    assert [name for name in named if f"| `{name}` |" not in text_of("docs", "operations.md")] == []


def test_every_runbook_has_its_alert() -> None:
    assert re.findall(r"^## (\w+)$", text_of("docs", "runbooks.md"), re.MULTILINE) == [
        alert["alert"] for alert in ALERTS
    ]


def test_every_alert_has_a_story_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    stories = yaml.safe_load((FOLDER / "tests" / f"{rules.ALERTS}.test.yaml").read_text(encoding="utf-8"))["tests"]
    played = {
        (alert, bool(each["exp_samples"]))
        for story in stories
        for each in story.get("promql_expr_test", ())
        for alert in re.findall(r'alertname="(\w+)"', each["expr"])
    }
    assert played == {(alert["alert"], fires) for alert in ALERTS for fires in (True, False)}


def test_only_metrics_that_are_documented_are_read() -> None:
    documented = text_of("docs", "api.md")
    read = {name for rule in RULES for name in re.findall(r"\bforecaster[\w:]+", rule["expr"])} - RECORDED
    shortened = {name: re.sub(r"_(sum|count|bucket)$", "", name).removeprefix("forecaster_forecast") for name in read}
    assert {name for name, part in shortened.items() if part not in documented} == set()
