from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.publish.reader import TableReader
from forecaster.publish.values import NotKnown, NotNamed, OfferedValue
from forecaster.serving.answers import MetricRequest, NotThere
from forecaster.serving.keda.trigger import Trigger, TriggerValues, active
from tests.support.recommendations import NOON, recommendation, workload_id
from tests.support.tables import publish

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.domain.decision import Recommendation

CPU = Trigger(MetricRequest("shop", "web", signal="cpu", target=0.5), activation=0.0)
SOON = NOON + timedelta(seconds=20)


def scaler(folder: Path, *rows: Recommendation, mode: str = "publish") -> TriggerValues:
    reader = TableReader(publish(folder / "table", *rows, mode=mode))
    reader.refresh()
    return TriggerValues(reader, lambda: SOON, None)


def test_the_number_is_the_demand_that_is_forecast(tmp_path: Path) -> None:
    found = scaler(tmp_path).value(CPU)
    assert isinstance(found, OfferedValue)
    assert (found.value, found.source) == (1.75, "forecast")


def test_before_the_first_table_nothing_is_known(tmp_path: Path) -> None:
    found = TriggerValues(TableReader(tmp_path / "table"), lambda: NOON, None).value(CPU)
    assert isinstance(found, NotKnown)
    assert "no table has been published" in found.message


def test_a_workload_that_is_not_there_is_named(tmp_path: Path) -> None:
    asked = CPU.asked._replace(name="wep")
    assert scaler(tmp_path).value(Trigger(asked, 0)) == NotThere("no workload shop/wep in the table")


def test_a_workload_that_is_only_observed_is_not_read(tmp_path: Path) -> None:
    found = scaler(tmp_path, mode="observe").value(CPU)
    assert isinstance(found, NotThere)
    assert "mode is observe" in found.message


def test_two_kinds_of_one_name_have_to_be_told_apart(tmp_path: Path) -> None:
    both = scaler(tmp_path, recommendation(), recommendation(workload_id(kind="StatefulSet")))
    assert isinstance(both.value(CPU), NotNamed)
    assert isinstance(both.value(Trigger(CPU.asked._replace(kind="StatefulSet"), 0)), OfferedValue)


@pytest.mark.parametrize(
    ("value", "source", "activation", "expected"),
    [
        pytest.param(1.75, "forecast", 0.0, True, id="load is coming"),
        pytest.param(0.0, "forecast", 0.0, False, id="no load is coming"),
        pytest.param(0.04, "measured", 0.05, False, id="less than the activation"),
        pytest.param(0.04, "last", 0.05, False, id="less than the activation when last known"),
        pytest.param(0.04, "neutral", 0.05, True, id="a count that is kept is no load"),
        pytest.param(0.04, "hold", 0.05, True, id="a count that is held is no load"),
    ],
)
def test_active_is_what_has_or_will_have_load(value: float, source: str, activation: float, *, expected: bool) -> None:
    found = OfferedValue("forecaster_demand", value, NOON, source, "cpu", None)
    assert active(Trigger(CPU.asked, activation), found) is expected
