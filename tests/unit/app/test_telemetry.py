from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog

from forecaster.app import telemetry
from forecaster.app.cluster_metrics import CertificateMetrics
from forecaster.app.telemetry import Metrics
from forecaster.certificates.issue import issue
from forecaster.cycle.run import Effects
from forecaster.domain.report import CycleReport, Effected, ForecastScore, MaskedShare
from forecaster.domain.signal import CPU
from tests.support.fakes import FakeLedger, FakePublisher
from tests.support.recommendations import workload_id

if TYPE_CHECKING:
    from collections.abc import Iterator


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def report(*failures: str, **changed: object) -> CycleReport:
    fields: dict[str, object] = {
        "at": NOON,
        "steps": {"histories": 0.25, "decisions": 0.5},
        "series": {CPU: 7},
        "newest_sample_age": {CPU: 15.0},
        "verdicts": Counter({("scale", "forecast"): 3, ("hold", "no-data"): 2}),
        "failures": failures,
    }
    return CycleReport(**(fields | changed))  # type: ignore[arg-type]


def recorded(*reports: CycleReport) -> str:
    metrics = Metrics("1.2.3")
    for report in reports:
        metrics.record(report)
    return metrics.text()


@pytest.mark.parametrize(
    "line",
    [
        'forecaster_build_info{version="1.2.3"} 1.0',
        'forecaster_cycle_step_seconds_sum{step="decisions"} 0.5',
        'forecaster_cycles_total{outcome="complete"} 1.0',
        'forecaster_series{signal="cpu"} 7.0',
        'forecaster_newest_sample_age_seconds{signal="cpu"} 15.0',
        'forecaster_decisions_total{reason="no-data",verdict="hold"} 2.0',
        'forecaster_workloads{reason="forecast",verdict="scale"} 3.0',
        "forecaster_late_starts_total 4.0",
    ],
)
def test_a_cycle_is_told_as_metrics(line: str) -> None:
    assert line in recorded(report(late_starts=4)).splitlines()


def test_a_cycle_that_lacks_something_is_another_outcome() -> None:
    text = recorded(report("cpu: connection refused"))
    assert 'forecaster_cycles_total{outcome="incomplete"} 1.0' in text
    assert "forecaster_failures_total 1.0" in text


def test_a_signal_without_samples_has_no_age_rather_than_zero() -> None:
    assert "forecaster_newest_sample_age_seconds{" not in recorded(report(), report(newest_sample_age={}))


def test_a_verdict_that_nobody_has_any_more_disappears() -> None:
    text = recorded(report(), report(verdicts=Counter({("scale", "forecast"): 5})))
    assert 'forecaster_workloads{reason="no-data"' not in text
    assert 'forecaster_decisions_total{reason="forecast",verdict="scale"} 8.0' in text


def test_states_of_forecasts_are_a_gauge_and_their_moves_a_counter() -> None:
    first = report(states=Counter({("learning", "model"): 2}))
    text = recorded(
        first, report(states=Counter({("acting", "seasonal"): 2}), gates=("a moved", "b moved"), gates_waiting=7)
    )
    assert 'forecaster_gates{forecaster="seasonal",state="acting"} 2.0' in text
    assert 'state="learning"' not in text
    assert "forecaster_gates_moved_total 2.0" in text
    assert "forecaster_gates_waiting 7.0" in text


def test_what_is_masked_is_a_share_of_all_workloads() -> None:
    masked = tuple(MaskedShare(workload_id(name), CPU, "limit", 0.875) for name in ("a", "b"))
    text = recorded(report(masked=masked), report(masked=masked))
    assert 'forecaster_masked_ratio{reason="limit",signal="cpu"} 0.25' in text
    assert "forecaster_masked_ratio{" not in recorded(report(masked=masked), report())


def test_scores_become_coverage_and_error() -> None:
    score = ForecastScore(workload_id(), CPU, NOON, NOON, "ridge", 0.9, median=2.0, upper=3.0, actual=4.0)
    lines = recorded(report(scores=(score, score))).splitlines()
    at = '{model="ridge",signal="cpu"}'
    assert f"forecaster_forecast_scored_total{at} 2.0" in lines
    assert f"forecaster_forecast_covered_total{at} 0.0" in lines
    assert f"forecaster_forecast_quantiles_total{at} 1.8" in lines
    assert f"forecaster_forecast_absolute_error_total{at} 4.0" in lines
    assert f"forecaster_forecast_pinball_loss_total{at} 1.8" in lines


def test_the_rest_of_the_back_fill_is_asked_for_when_metrics_are_read() -> None:
    metrics, missing = Metrics("1"), {CPU: 288}
    metrics.watch_history([CPU], missing.__getitem__)
    assert 'forecaster_history_missing_points{signal="cpu"} 288.0' in metrics.text()
    missing[CPU] = 0
    assert 'forecaster_history_missing_points{signal="cpu"} 0.0' in metrics.text()


def test_a_write_that_fails_is_counted_and_still_an_error() -> None:
    metrics = Metrics("1")
    effects = Effects(FakePublisher(), FakeLedger(full=True), counting=metrics.counting_failures)
    assert effects.score(()) == ("ledger: the disk is full",)
    assert 'forecaster_store_failures_total{part="ledger"} 1.0' in metrics.text()


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_where_nobody_looks_the_log_is_json_with_instants_spelled_out(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.configure()
    telemetry.logger().info("history_restored", at=NOON)
    (event,) = events(capsys)
    assert (event["event"], event["level"], event["at"]) == ("history_restored", "info", "2026-03-01T12:00:00+00:00")


def test_a_cycle_that_went_well_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.configure()
    telemetry.log_report(telemetry.logger(), report())
    assert events(capsys) == []


def test_a_cycle_that_lacks_something_is_one_warning_however_much_it_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.configure()
    telemetry.log_report(telemetry.logger(), report(*(f"w{i}: failed" for i in range(1000))))
    (event,) = events(capsys)
    assert (event["level"], event["failed"]) == ("warning", 1000)
    assert event["failures"] == [f"w{i}: failed" for i in range(5)]


def test_a_warning_of_python_is_a_line_of_the_log() -> None:
    """A series of a tenant with enormous values makes numpy warn."""
    program = (
        "from forecaster.app import telemetry; telemetry.configure(json=True); import warnings; warnings.warn('a')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["level"] == "warning"


def test_what_libraries_warn_of_has_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.configure()
    logging.getLogger("asyncio").warning("run time was missed")
    logging.getLogger("urllib3").info("starting a connection")
    assert [event["event"] for event in events(capsys)] == ["run time was missed"]


def test_a_late_start_is_an_event_of_ours_alone(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.configure()
    logging.getLogger("apscheduler.scheduler").warning("skipped: maximum number of running instances reached")
    assert events(capsys) == []


def test_a_defect_is_logged_with_its_trace(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.configure()
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        telemetry.logger().exception("cycle_failed", at=NOON)
    (event,) = events(capsys)
    assert "ZeroDivisionError: " in str(event["exception"])


def test_for_a_person_the_log_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.configure(json=False, level="debug")
    telemetry.log_report(telemetry.logger(), report())
    assert "cycle_complete" in capsys.readouterr().err


def test_requests_that_come_from_elsewhere_are_a_warning_and_a_counter(capsys: pytest.CaptureFixture[str]) -> None:
    moved = report(moved=("Deployment shop/web: requests come from istio now",))
    assert "forecaster_request_origin_changes_total 1.0" in recorded(moved)
    telemetry.configure(json=True)
    telemetry.log_report(telemetry.logger(), moved)
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["level"], line["moved"]) == ("request_origin_changed", "warning", 1)
    assert line["workloads"] == ["Deployment shop/web: requests come from istio now"]


def test_floors_are_counted_by_what_became_of_them() -> None:
    before = Effected(leading=True, writes=Counter({("raise", "written"): 2}), states=Counter(raised=3, owned=1))
    after = Effected(leading=False, writes=Counter({("raise", "written"): 1}), states=Counter(raised=2))
    text = recorded(report(effected={"floor": before}), report(effected={"floor": after, "scale": before}))
    assert 'forecaster_floor_writes_total{change="raise",outcome="written"} 3.0' in text
    assert 'forecaster_floors{state="raised"} 2.0' in text
    assert 'forecaster_floors{state="owned"}' not in text
    assert 'forecaster_scale_writes_total{change="raise",outcome="written"} 2.0' in text
    assert "forecaster_leader 0.0" in recorded(report(effected={"floor": after}))
    assert "forecaster_leader 1.0" in text


def test_outcomes_are_counted_by_actuator_with_their_reason_and_a_brake_is_shown() -> None:
    reasons = Counter({("failed", "403"): 2, ("refused", "braked"): 12})
    effect = Effected(leading=True, writes=Counter(), states=Counter(), reasons=reasons, braked=True)
    text = recorded(report(effected={"scale": effect}), report(effected={"scale": effect._replace(braked=False)}))
    assert 'forecaster_actuator_outcomes_total{actuator="scale",outcome="failed",reason="403"} 4.0' in text
    assert 'forecaster_actuator_braked{actuator="scale"} 0.0' in text
    assert 'forecaster_actuator_braked{actuator="scale"} 1.0' in recorded(report(effected={"scale": effect}))


def test_the_end_of_a_certificate_is_that_of_the_last_pair_that_a_port_could_use(tmp_path: Path) -> None:
    certificate, key, metrics = tmp_path / "tls.crt", tmp_path / "tls.key", Metrics("1")
    metrics.register(CertificateMetrics({"keda": (certificate, key)}))
    name = 'forecaster_certificate_end_timestamp_seconds{port="keda"}'
    assert value_of(metrics, name) is None
    used, later = (issue(["web.shop.svc"], NOON, timedelta(days=days)) for days in (90, 180))
    certificate.write_text(used.certificate)
    key.write_text(used.key)
    assert value_of(metrics, name) == (NOON + timedelta(days=90)).timestamp()
    certificate.write_text(later.certificate)
    assert value_of(metrics, name) == (NOON + timedelta(days=90)).timestamp(), "its key is another one's"
    key.write_text(later.key)
    assert value_of(metrics, name) == (NOON + timedelta(days=180)).timestamp()
    certificate.unlink()
    assert value_of(metrics, name) == (NOON + timedelta(days=180)).timestamp()


def value_of(metrics: Metrics, name: str) -> float | None:
    return next((float(line.split()[1]) for line in metrics.text().splitlines() if line.startswith(f"{name} ")), None)


def test_outcomes_that_have_not_come_are_there_from_the_start() -> None:
    assert 'forecaster_cycles_total{outcome="failed"} 0.0' in Metrics("1").text()


def test_workloads_at_their_maximum_are_counted() -> None:
    assert "forecaster_at_maximum_workloads 2.0" in recorded(report(at_maximum=2))


def test_every_metric_is_documented() -> None:
    listed = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")
    names = re.findall(r"# TYPE forecaster_(\w+)", Metrics("1").text())
    parts = {name.removeprefix("forecast") for name in names if not name.endswith("_created")}
    assert [part for part in sorted(parts) if part not in listed] == []
