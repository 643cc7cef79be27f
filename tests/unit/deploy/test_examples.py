"""The examples hold: their settings are accepted, their fields are written, their objects exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from forecaster.actuators.writes import MANAGER
from forecaster.config.settings import parse

DEPLOY = Path(__file__).parents[3] / "deploy"
WRITTEN_AT_RUN_TIME = {("Secret", "/data"), ("APIService", "/spec/caBundle"), ("Lease", "/spec")}


def example(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "examples" / name).read_text(encoding="utf-8")))


def test_requests_and_limits_alone_are_settings_that_change_no_count() -> None:
    (given,) = example("vertical-only.yaml")
    settings = parse(given, "vertical-only.yaml")
    assert settings.policy.mode == "observe"


def test_argo_cd_ignores_fields_that_floors_write_and_our_own_that_are_written_at_run_time() -> None:
    shop, forecaster = (application["spec"] for application in example("argo-cd.yaml"))
    (hpas, deployments) = shop["ignoreDifferences"]
    assert (hpas["managedFieldsManagers"], hpas["jsonPointers"]) == ([MANAGER], ["/spec/minReplicas"])
    assert deployments.keys() == {"group", "kind", "jsonPointers"}, "mode scale refuses what Argo CD applies"
    assert "RespectIgnoreDifferences=true" in shop["syncPolicy"]["syncOptions"]
    ignored = {(rule["kind"], pointer) for rule in forecaster["ignoreDifferences"] for pointer in rule["jsonPointers"]}
    assert ignored >= WRITTEN_AT_RUN_TIME


def test_flux_has_values_of_the_chart_and_ignores_fields_that_are_written_at_run_time() -> None:
    _, release = (resource["spec"] for resource in example("flux.yaml"))
    known = yaml.safe_load((DEPLOY / "chart" / "values.yaml").read_text(encoding="utf-8"))
    assert release["values"].keys() <= known.keys()
    assert release["values"]["components"].keys() <= known["components"].keys()
    ignored = {(rule["target"]["kind"], path) for rule in release["driftDetection"]["ignore"] for path in rule["paths"]}
    assert ignored >= WRITTEN_AT_RUN_TIME
