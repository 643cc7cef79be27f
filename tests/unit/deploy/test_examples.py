"""The examples name what is there: settings that are accepted, fields that are written, objects that exist."""

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


def test_argo_cd_ignores_what_floors_write_and_what_is_written_of_ours() -> None:
    shop, ours = (one["spec"] for one in example("argo-cd.yaml"))
    (hpas, deployments) = shop["ignoreDifferences"]
    assert (hpas["managedFieldsManagers"], hpas["jsonPointers"]) == ([MANAGER], ["/spec/minReplicas"])
    assert deployments["managedFieldsManagers"] == [MANAGER]
    assert "RespectIgnoreDifferences=true" in shop["syncPolicy"]["syncOptions"]
    ignored = {(one["kind"], pointer) for one in ours["ignoreDifferences"] for pointer in one["jsonPointers"]}
    assert ignored >= WRITTEN_AT_RUN_TIME


def test_flux_has_values_of_the_chart_and_ignores_the_same() -> None:
    _, release = (one["spec"] for one in example("flux.yaml"))
    known = yaml.safe_load((DEPLOY / "chart" / "values.yaml").read_text(encoding="utf-8"))
    assert release["values"].keys() <= known.keys()
    assert release["values"]["components"].keys() <= known["components"].keys()
    ignored = {(one["target"]["kind"], path) for one in release["driftDetection"]["ignore"] for path in one["paths"]}
    assert ignored >= WRITTEN_AT_RUN_TIME
