"""A real Prometheus takes our forecasts and lays them over what came true."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx
import pytest

from forecaster.domain.window import MINUTE
from forecaster.publish.remote_write import RemoteWriter
from forecaster.publish.settings import RemoteWriteSettings
from tests.support.prometheus import RealPrometheus
from tests.support.published import offered_cycle
from tests.support.recommendations import ahead, recommendation, signal_view
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

LEAD = 3 * MINUTE


@pytest.fixture
def receiver(prometheus_binaries: Binaries, tmp_path: Path) -> Iterator[RealPrometheus]:
    options = ["--web.enable-remote-write-receiver"]
    with RealPrometheus(prometheus_binaries, tmp_path / "data", options=options) as running:
        yield running


def cycle(at: datetime, *, measured: float, peak: float) -> Recommendation:
    """Recommendation of a workload measured at `at`; its forecast says `peak` for three minutes later."""
    forecast = replace(ahead(at), peak=peak, quantile=0.85, begin=at + LEAD)
    view = replace(signal_view("cpu", at), measured=measured, forecast=forecast)
    return replace(recommendation(at=at), signals=(view,))


def write(receiver: RealPrometheus, rows: list[Recommendation], **settings: object) -> None:
    writer = RemoteWriter(
        RemoteWriteSettings.model_validate({"url": f"{receiver.url}/api/v1/write", "timeout_seconds": 60, **settings})
    )
    for row in rows:
        writer.receive(offered_cycle(row, at=row.at))
        writer.settle(PATIENCE)
    writer.receive(offered_cycle(at=rows[-1].at))  # raises for samples that were not taken
    writer.close()


def ask(receiver: RealPrometheus, query: str, at: datetime) -> list[float]:
    answer = httpx.get(
        f"{receiver.url}/api/v1/query", params={"query": query, "time": at.timestamp()}, timeout=PATIENCE
    )
    return [float(row["value"][1]) for row in answer.raise_for_status().json()["data"]["result"]]


def test_forecast_and_actual_meet_in_one_query(receiver: RealPrometheus) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    start = now - 6 * MINUTE
    # Demand doubles at the third minute; the forecast knew.
    rows = [
        cycle(start + k * MINUTE, measured=2.0 if k >= 3 else 1.0, peak=2.0 if k + 3 >= 3 else 1.0) for k in range(7)
    ]
    write(receiver, rows)
    labels = '{namespace="shop",workload="web",signal="cpu"}'
    error = f"forecaster_forecast_peak{labels} / ignoring(quantile) forecaster_workload_measured{labels} - 1"
    assert ask(receiver, error, now) == [0.0]
    assert ask(receiver, f"forecaster_workload_measured{labels}", start + 2 * MINUTE) == [1.0]
    assert ask(receiver, f"forecaster_forecast_peak{labels}", start + 3 * MINUTE) == [2.0]


def test_forecasts_of_the_future_are_there_already(receiver: RealPrometheus) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    write(receiver, [cycle(now, measured=1.0, peak=5.0)])
    assert ask(receiver, "forecaster_forecast_peak", now) == []
    assert ask(receiver, "forecaster_forecast_peak", now + LEAD) == [5.0]


def test_or_at_the_time_of_their_evaluation(receiver: RealPrometheus) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    write(receiver, [cycle(now, measured=1.0, peak=5.0)], timestamps="evaluation")
    assert ask(receiver, "forecaster_forecast_peak", now) == [5.0]
    # The forecast of three minutes ago beside what is measured now:
    assert ask(receiver, "forecaster_forecast_peak offset 3m", now + timedelta(minutes=3)) == [5.0]


def test_coverage_is_a_query(receiver: RealPrometheus) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    start = now - 13 * MINUTE
    write(receiver, [cycle(start + k * MINUTE, measured=1.0, peak=2.0 if k % 2 else 0.5) for k in range(13)])
    covered = "avg_over_time((forecaster_workload_measured <= bool ignoring(quantile) forecaster_forecast_peak)[9m:1m])"
    (share,) = ask(receiver, covered, now - MINUTE)
    assert 0.4 <= share <= 0.6
