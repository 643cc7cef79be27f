"""KubeVela's trait, filled in by the real CUE as KubeVela does it."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest
import yaml

from deploy.generate.kustomized import DEPLOY
from tests.support.packaging import tool

if TYPE_CHECKING:
    from pathlib import Path

KUBEVELA = DEPLOY / "kubevela"


def filled_in(folder: Path, parameter: dict[str, Any], name: str = "web") -> subprocess.CompletedProcess[str]:
    """Render the template of the TraitDefinition with the properties of an Application."""
    definition = yaml.safe_load((KUBEVELA / "trait-definition.yaml").read_text(encoding="utf-8"))
    template = folder / "template.cue"
    given = f"context: name: {json.dumps(name)}\nparameter: {json.dumps(parameter)}\n"
    template.write_text(definition["spec"]["schematic"]["cue"]["template"] + given, encoding="utf-8")
    command = [tool("cue"), "export", str(template), "--expression=outputs.autoscaler"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def trait() -> dict[str, Any]:
    """Properties of the trait in the example."""
    application = yaml.safe_load((KUBEVELA / "application.yaml").read_text(encoding="utf-8"))
    (component,) = application["spec"]["components"]
    (stated,) = component["traits"]
    assert stated["type"] == yaml.safe_load((KUBEVELA / "trait-definition.yaml").read_text())["metadata"]["name"]
    properties: dict[str, Any] = stated["properties"]
    return properties


def test_the_example_becomes_an_hpa_that_reads_the_forecast(tmp_path: Path) -> None:
    made = filled_in(tmp_path, trait())
    assert made.returncode == 0, made.stderr
    hpa = json.loads(made.stdout)
    kubernetes_validate.validate(hpa, "1.36", strict=True)
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (2, 40)
    external = hpa["spec"]["metrics"][1]["external"]
    assert external["metric"]["selector"]["matchLabels"] == {"workload": "web", "kind": "Deployment", "signal": "cpu"}
    assert external["target"] == {"type": "AverageValue", "averageValue": "350m"}


def test_without_properties_it_is_a_plain_hpa_that_forecaster_knows_of(tmp_path: Path) -> None:
    hpa = json.loads(filled_in(tmp_path, {"mode": "floor"}).stdout)
    kubernetes_validate.validate(hpa, "1.36", strict=True)
    assert hpa["metadata"]["annotations"] == {"forecaster.dev/mode": "floor"}
    assert [metric["type"] for metric in hpa["spec"]["metrics"]] == ["Resource"]


@pytest.mark.parametrize("wrong", [{"mode": "florr"}, {"min": 0}, {"min": 5, "max": 4}])
def test_properties_that_mean_nothing_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    assert filled_in(tmp_path, wrong).returncode != 0
