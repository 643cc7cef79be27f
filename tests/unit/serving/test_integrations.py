"""Other autoscalers' protocols, as their controllers speak them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette

from forecaster.domain.decision import Reason
from forecaster.domain.workload import Target, TargetType
from forecaster.publish.reader import TableReader
from forecaster.serving.integrations import IntegrationPages
from forecaster.serving.rest import ProblemError, answer_problem
from tests.support.asgi import Client
from tests.support.recommendations import NOON, ahead, recommendation, signal_view, workload_id
from tests.support.tables import publish

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from forecaster.domain.decision import Recommendation

NOW = NOON + timedelta(seconds=20)
WEB = "/api/v1/namespaces/shop/workloads/Deployment/web"
WATERMARK = "/api/v1/recommenders/watermark"
ASKED = {
    "state": {"desiredReplicas": 4, "currentReplicas": 4, "readyReplicas": 4},
    "targetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1", "namespace": "shop", "cluster": "c1"},
    "constraints": {"minReplicas": 2, "maxReplicas": 20},
    "targets": [{"type": "cpu", "upperBound": 0.4, "lowerBound": 0.15}],
    "settings": {"model": "auto"},
}


def client(folder: Path, *rows: Recommendation, mode: str = "publish") -> Client:
    reader = TableReader(publish(folder / "table", *rows, mode=mode), lambda: NOW)
    reader.refresh()
    seams = IntegrationPages(reader)
    return Client(Starlette(routes=seams.routes(), exception_handlers={ProblemError: answer_problem}))


def webhook(folder: Path, question: Any = ASKED, *rows: Recommendation) -> httpx.Response:
    return client(folder, *rows).post(WATERMARK, json.dumps(question).encode())


class TestWatermark:
    def test_it_is_answered_with_exactly_the_fields_that_it_knows(self, tmp_path: Path) -> None:
        answered = webhook(tmp_path)
        assert answered.status_code == 200
        assert answered.json() == {
            "targetReplicas": 5,
            "lowerBoundReplicas": 5,
            "upperBoundReplicas": 6,  # five for a peak of 1.75, so six for the 1.9 of the 95 % quantile
            "timestamp": "2026-03-01T12:00:00Z",
            "reason": "the forecast asks for 5, the measured demand for 4",
        }

    def test_without_a_forecast_the_interval_is_the_count(self, tmp_path: Path) -> None:
        blind = replace(signal_view("cpu"), forecast=None, forecast_replicas=None)
        answered = webhook(tmp_path, ASKED, replace(recommendation(), signals=(blind,))).json()
        assert answered["lowerBoundReplicas"] == answered["upperBoundReplicas"] == 5

    @pytest.mark.parametrize("peak", [0.0, 1.75])
    def test_the_bounds_hold_the_count_between_them(self, tmp_path: Path, peak: float) -> None:
        view = replace(signal_view("cpu"), forecast=replace(ahead(), peak=peak, high=0.1))
        answered = webhook(tmp_path, ASKED, replace(recommendation(), signals=(view,))).json()
        assert answered["lowerBoundReplicas"] <= answered["targetReplicas"] <= answered["upperBoundReplicas"]

    def test_ignorance_is_an_error_inside_the_answer(self, tmp_path: Path) -> None:
        other = ASKED | {"targetRef": {"kind": "Deployment", "name": "api", "namespace": "shop"}}
        answered = webhook(tmp_path, other)
        assert answered.status_code == 200
        assert answered.json() == {"error": {"code": 404, "message": "no Deployment shop/api in the table"}}

    def test_a_count_that_is_kept_is_none_by_the_target_of_an_hpa_that_reads_the_count_too(
        self, tmp_path: Path
    ) -> None:
        of_an_hpa = (Target("forecaster_replicas", TargetType.AVERAGE_VALUE, 2.0),)
        held = replace(recommendation(replicas=None, reason=Reason.NO_DATA, now=10), signals=(), targets=of_an_hpa)
        assert webhook(tmp_path, ASKED, held).json()["targetReplicas"] == 10
        forecast = client(tmp_path, held).get(f"{WEB}/kapacity/web").json()["data"]["timeSeries"]
        assert list(json.loads(forecast).values()) == [10]

    @pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"targetRef": 5}', b"\xff"])
    def test_what_is_no_request_is_refused(self, tmp_path: Path, junk: bytes) -> None:
        assert client(tmp_path).post(WATERMARK, junk).status_code == 400


class TestKapacity:
    def test_the_config_map_is_what_kubectl_applies(self, tmp_path: Path) -> None:
        config_map = client(tmp_path).get(f"{WEB}/kapacity/web-portrait").json()
        assert config_map["metadata"] == {"name": "web-portrait-result", "namespace": "shop"}
        assert (config_map["apiVersion"], config_map["kind"], config_map["data"]["type"]) == (
            "v1",
            "ConfigMap",
            "TimeSeries",
        )

    def test_the_offered_count_stands_at_now_for_five_minutes(self, tmp_path: Path) -> None:
        data = client(tmp_path).get(f"{WEB}/kapacity/web").json()["data"]
        assert json.loads(data["timeSeries"]) == {str(int(NOW.timestamp())): 5}
        assert data["expireTime"] == "2026-03-01T12:05:20Z"

    def test_ignorance_is_no_config_map(self, tmp_path: Path) -> None:
        rows = (recommendation(workload_id("other")),)
        assert client(tmp_path, *rows).get(f"{WEB}/kapacity/web").status_code == 404
        assert client(tmp_path, mode="observe").get(f"{WEB}/kapacity/web").status_code == 404
