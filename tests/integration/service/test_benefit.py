"""The answer of the running service: the four numbers beside the HPA alone, as every reader of its table gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forecaster.domain.workload import Resources
from forecaster.publish.reader import TableReader
from forecaster.publish.table import pictures_path
from forecaster.serving.app import create_app
from tests.support.asgi import Client
from tests.support.builders import after, hpa, workload
from tests.support.composed import composed, recorded_cluster, table_path, tick

if TYPE_CHECKING:
    from pathlib import Path

PRICES = {"core_hour": 1.0, "gib_hour": 0.1, "currency": "EUR"}
ALONE = workload("alone", autoscaler=None)
HELD = workload("held", autoscaler=None, resources=Resources())
"""No HPA and no request: no count is ever decided."""
WORKLOADS = [workload("web", autoscaler=hpa()), ALONE, HELD]


def client(directory: Path) -> Client:
    reader = TableReader(table_path(directory))
    reader.refresh()
    return Client(create_app(reader, pictures=TableReader(pictures_path(reader.path))))


def benefit(directory: Path, name: str = "") -> dict[str, Any]:
    page = f"/dashboard/workloads/shop/Deployment/{name}" if name else "/dashboard/fleet"
    answer: dict[str, Any] = client(directory).get(page).json()["benefit"]
    return answer


def gauges(directory: Path) -> list[str]:
    text = client(directory).get("/metrics").text
    names = ("forecaster_unserved", "forecaster_short", "forecaster_pod", "forecaster_compared")
    return [line for line in text.splitlines() if line.startswith(names)]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], list[str]]:
    """A service after two hours; what it told of the first minute."""
    directory = tmp_path_factory.mktemp("benefit")
    with recorded_cluster(WORKLOADS) as cluster, composed(cluster, directory, prices=PRICES) as service:
        for minute in range(3):
            tick(service, after(minute))
        begun, nothing = benefit(directory), gauges(directory)
        for minute in range(3, 127):
            tick(service, after(minute))
            assert service.report is not None
            assert service.report.failures == ()
        for file in service.persisted:
            file.part.save()
    return directory, begun, nothing


def test_before_an_hour_is_over_nothing_is_known_and_no_zero_is_told(
    played: tuple[Path, dict[str, Any], list[str]],
) -> None:
    _, begun, nothing = played
    assert begun["periods"] == {}
    assert begun["unknown"].startswith("not known yet: decisions are compared once an hour, for the first time after")
    assert [line for line in nothing if not line.startswith("#")] == []


def test_the_four_numbers_stand_beside_those_of_the_hpa_alone(
    played: tuple[Path, dict[str, Any], list[str]],
) -> None:
    for shown in (benefit(played[0]), benefit(played[0], "web")):
        for period in shown["periods"].values():
            plain, with_forecaster = period["hpa"], period["forecaster"]
            assert plain["unserved_share"] is not None
            assert plain["pod_hours"] > 0
            assert with_forecaster["money"] == pytest.approx(
                with_forecaster["pod_hours"] * plain["money"] / plain["pod_hours"], rel=1e-4
            )
            assert with_forecaster["short_minutes"] >= 0
            assert sum(period["workloads"].values()) == 1
            assert period["since"] == "2026-03-01T12:00:00Z"
            assert period["until"] == "2026-03-01T14:00:00Z"
            assert "the HPA alone" in period["said"]
            assert "week" not in period["said"]


def test_a_workload_that_cannot_be_compared_says_why(played: tuple[Path, dict[str, Any], list[str]]) -> None:
    shown = benefit(played[0], "alone")
    assert shown["periods"] == {}
    assert shown["unknown"] == "not known: no HPA scales it, so there is nothing to compare with"


def test_a_workload_that_was_always_held_says_so_beside_a_fleet_that_was_compared(
    played: tuple[Path, dict[str, Any], list[str]],
) -> None:
    """Its page ended where an empty reason was to be shown: without its sentences, sizes and charts of the past."""
    assert benefit(played[0])["unknown"] == ""
    assert benefit(played[0], "held") == {"periods": {}, "unknown": "not known: no count was decided for it yet"}


def test_prometheus_reads_the_totals_and_no_name_of_a_workload(
    played: tuple[Path, dict[str, Any], list[str]],
) -> None:
    lines = [line for line in gauges(played[0]) if not line.startswith("#")]
    week = benefit(played[0])["periods"]["week"]
    gauge = 'forecaster_pod_hours{period="week",strategy="forecaster"}'
    assert float(next(line for line in lines if line.startswith(gauge)).split()[-1]) == week["forecaster"]["pod_hours"]
    assert sum(line.startswith("forecaster_compared_workloads") for line in lines) == 6
    assert not any("web" in line for line in lines)


def test_a_restart_goes_on_with_the_sums(played: tuple[Path, dict[str, Any], list[str]]) -> None:
    before = benefit(played[0])["periods"]["week"]
    with recorded_cluster(WORKLOADS) as cluster, composed(cluster, played[0], prices=PRICES) as service:
        for minute in (127, 128):
            tick(service, after(minute))
    assert benefit(played[0])["periods"]["week"] == before
