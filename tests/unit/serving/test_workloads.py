from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.decision import Reason
from forecaster.domain.signal import CPU, StepForecast
from forecaster.horizontal.sentences import explanation
from forecaster.publish.reader import TableReader
from forecaster.serving.app import create_app
from tests.support.asgi import Client
from tests.support.published import publisher, served
from tests.support.recommendations import NOON, recommendation, signal_view, workload_id

if TYPE_CHECKING:
    from pathlib import Path

WEB = "/api/v1/namespaces/shop/workloads/Deployment/web"


@pytest.fixture
def client(tmp_path: Path) -> Client:
    reader = served(
        tmp_path / "table",
        recommendation(),
        replace(recommendation(workload_id("blind"), replicas=None, reason=Reason.NO_DATA), signals=()),
        replace(recommendation(workload_id("half")), signals=(replace(signal_view("cpu"), forecast=None),)),
    )
    return Client(create_app(reader))


def test_forecasts_are_quantiles_in_order(client: Client) -> None:
    answer = client.get(f"{WEB}/forecasts").json()
    assert (answer["age_seconds"], answer["stale"]) == (10.0, False)
    cpu = answer["forecasts"][0]
    assert (cpu["signal"], cpu["unit"], cpu["model"], cpu["measured"]) == ("cpu", "cores", "ridge", 1.234567)
    assert cpu["quantiles"] == [
        {"quantile": 0.1, "value": 1.1},
        {"quantile": 0.5, "value": 1.4},
        {"quantile": 0.9, "value": 1.75},
        {"quantile": 0.95, "value": 1.9},
    ]


def test_a_forecast_step_by_step_has_an_age_of_its_own(tmp_path: Path) -> None:
    made, step = NOON - timedelta(minutes=6), timedelta(minutes=5)
    path = StepForecast(made, made, step, (0.5, 0.9), ((1.0, 1.5), (2.0, 2.5)), "adaptive")
    served_by = publisher(tmp_path / "table", paths=lambda: {workload_id(): {CPU: path}})
    served_by.publish(NOON, [recommendation(), recommendation(workload_id("other"))])
    reader = TableReader(tmp_path / "table", lambda: NOON + timedelta(seconds=10))
    reader.refresh()
    client = Client(create_app(reader))
    cpu, memory, _ = client.get(f"{WEB}/forecasts").json()["forecasts"]
    assert (cpu["path"]["made_at"], cpu["path"]["age_seconds"]) == ("2026-03-01T11:54:00Z", 370.0)
    assert cpu["path"]["steps"][1] == {
        "begin": "2026-03-01T11:59:00Z",
        "until": "2026-03-01T12:04:00Z",
        "quantiles": [{"quantile": 0.5, "value": 2.0}, {"quantile": 0.9, "value": 2.5}],
    }
    assert memory["path"] is None
    other = client.get(WEB.replace("web", "other") + "/forecasts").json()["forecasts"]
    assert [forecast["path"] for forecast in other] == [None, None, None]


def test_a_signal_without_a_forecast_has_no_quantiles(client: Client) -> None:
    (cpu,) = client.get("/api/v1/namespaces/shop/workloads/Deployment/half/forecasts").json()["forecasts"]
    assert (cpu["quantiles"], cpu["model"], cpu["until"]) == ([], None, None)


def test_decisions_are_the_changes_of_the_recommended_count(client: Client) -> None:
    (only,) = client.get(f"{WEB}/decisions").json()["decisions"]
    assert only == {
        "at": "2026-03-01T12:00:00Z",
        "replicas": 5,
        "verdict": "scale",
        "reason": "forecast",
        "message": "the forecast asks for 5, the measured demand for 4",
    }


def test_an_explanation_is_the_same_as_that_of_the_command(client: Client) -> None:
    assert client.get(f"{WEB}/explanation").json()["lines"] == explanation(recommendation())


def test_accuracy_is_empty_until_a_forecast_has_matured(client: Client) -> None:
    assert client.get(f"{WEB}/accuracy").json()["accuracy"] == []


def test_one_number_for_readers_of_json(client: Client) -> None:
    answer = client.get(f"{WEB}/metrics/forecaster_demand/forecast?signal=cpu").json()
    assert answer == {
        "value": 1.75,
        "forecaster": {"cpu": 1.75},
        "unit": "cores",
        "quantile": 0.9,
        "sampled_at": "2026-03-01T12:00:00Z",
        "generated_at": "2026-03-01T12:00:00Z",
        "age_seconds": 10.0,
        "status": "forecast",
        "replicas": {"recommended": 5, "current": 3},
    }


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{WEB}/metrics/forecaster_demand/forecast", 400),
        (f"{WEB}/metrics/other/forecast", 400),
        (f"{WEB}/metrics/forecaster_demand/forecast?signal=disk", 400),
        ("/api/v1/namespaces/shop/workloads/Deployment/none/forecasts", 404),
        ("/api/v1/namespaces/shop/workloads/StatefulSet/web/forecasts", 404),
        ("/api/v1/namespaces/shop/workloads/Deployment/blind/metrics/forecaster_demand/forecast?signal=cpu", 503),
        (f"{WEB}/other", 404),
    ],
)
def test_refusals_are_problems_with_a_remedy(client: Client, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["remedy"]
