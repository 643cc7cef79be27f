from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.domain.decision import Reason
from forecaster.domain.workload import Target, TargetType
from forecaster.publish.reader import TableReader
from forecaster.publish.values import NotKnown, NotNamed, OfferedValue
from forecaster.serving.answers import MetricRequest, NotThere
from forecaster.serving.keda.service import Trigger, TriggerValues
from tests.support.recommendations import NOON, recommendation, signal_view, workload_id
from tests.support.tables import publish

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.domain.decision import Recommendation, SignalView

CPU = Trigger(MetricRequest("shop", "web", signal="cpu", target=0.5), activation=0.0)
SOON = NOON + timedelta(seconds=20)


def scaler(folder: Path, *rows: Recommendation, mode: str = "publish") -> TriggerValues:
    reader = TableReader(publish(folder / "table", *rows, mode=mode), lambda: SOON)
    reader.refresh()
    return TriggerValues(reader)


def test_the_number_is_the_demand_that_is_forecast(tmp_path: Path) -> None:
    offered = scaler(tmp_path).value(CPU)
    assert isinstance(offered, OfferedValue)
    assert (offered.value, offered.source) == (1.75, "forecast")


def test_before_the_first_table_nothing_is_known(tmp_path: Path) -> None:
    offered = TriggerValues(TableReader(tmp_path / "table")).value(CPU)
    assert isinstance(offered, NotKnown)
    assert "no table has been published" in offered.message


def test_a_workload_that_is_not_there_is_named(tmp_path: Path) -> None:
    request = CPU.request._replace(name="wep")
    assert scaler(tmp_path).value(Trigger(request, 0)) == NotThere("no workload shop/wep in the table")


def test_a_workload_that_is_only_observed_is_not_read(tmp_path: Path) -> None:
    offered = scaler(tmp_path, mode="observe").value(CPU)
    assert isinstance(offered, NotThere)
    assert "its mode is observe; `mode: publish` changes that" in offered.message


def test_two_kinds_of_one_name_have_to_be_told_apart(tmp_path: Path) -> None:
    both = scaler(tmp_path, recommendation(), recommendation(workload_id(kind="StatefulSet")))
    assert isinstance(both.value(CPU), NotNamed)
    assert isinstance(both.value(Trigger(CPU.request._replace(kind="StatefulSet"), 0)), OfferedValue)


REQUESTS = Trigger(MetricRequest("shop", "web", signal="requests", target=100.0), activation=0.0)


def offered(value: float, source: str) -> OfferedValue:
    return OfferedValue("forecaster_demand", value, NOON, source, "requests", None)


@pytest.mark.parametrize(
    ("value", "source", "activation", "expected"),
    [
        pytest.param(1.75, "forecast", 0.0, True, id="load is coming"),
        pytest.param(0.0, "forecast", 0.0, False, id="no load is coming"),
        pytest.param(0.04, "measured", 0.05, False, id="less than the activation"),
        pytest.param(0.04, "last", 0.05, False, id="less than the activation when last known"),
        pytest.param(0.04, "neutral", 0.05, True, id="a count that is kept is no load"),
        pytest.param(0.04, "hold", 0.05, True, id="a count that is held is no load"),
        pytest.param(0.0, "neutral", 0.0, False, id="a count of zero that is kept"),
    ],
)
def test_active_is_what_has_or_will_have_load(
    tmp_path: Path, value: float, source: str, activation: float, *, expected: bool
) -> None:
    assert scaler(tmp_path).active(Trigger(REQUESTS.request, activation), offered(value, source)) is expected


def test_a_signal_that_is_not_measured_without_pods_never_lets_go_of_the_last_one(tmp_path: Path) -> None:
    assert scaler(tmp_path).active(CPU, offered(0.0, "measured")) is True


def views(*signals: str) -> tuple[SignalView, ...]:
    return tuple(signal_view(signal) for signal in signals)


def new_object(folder: Path, now: int, *, after: timedelta = timedelta(), **changes: Any) -> TriggerValues:
    """A trigger on requests of a workload whose HPA is not read: its count is decided by CPU, by the policy."""
    row = replace(recommendation(now=now), signals=views("cpu"), **changes)
    values = scaler(folder, row)
    values.value(REQUESTS)
    values._reader.clock = lambda: SOON + after  # noqa: SLF001  time passes
    return values


class TestNewScaledObject:
    @pytest.mark.parametrize("now", [0, 7])
    def test_keeps_the_count_until_its_hpa_is_read(self, tmp_path: Path, now: int) -> None:
        values = new_object(tmp_path, now)
        offered = values.value(REQUESTS)
        assert isinstance(offered, OfferedValue)
        assert (offered.value, offered.source) == (100.0 * now, "neutral")
        assert values.active(REQUESTS, offered) is (now > 0)

    def test_that_names_a_signal_that_decides_nothing_is_told_so_in_the_end(self, tmp_path: Path) -> None:
        values = new_object(tmp_path, 7, after=timedelta(minutes=6))
        values._reader.stale_after = timedelta(hours=1)  # noqa: SLF001
        offered = values.value(REQUESTS)
        assert isinstance(offered, NotNamed)
        assert "'requests'" in offered.message

    def test_whose_hpa_is_read_is_told_so_at_once(self, tmp_path: Path) -> None:
        of_keda = Target("s0-forecaster-requests", TargetType.AVERAGE_VALUE, 100.0)
        assert isinstance(new_object(tmp_path, 7, targets=(of_keda,)).value(REQUESTS), NotNamed)


class TestNothingKnown:
    def asleep(self, folder: Path, **changes: Any) -> TriggerValues:
        unknown = replace(signal_view("requests"), measured=None, measured_at=None, forecast=None)
        row = replace(recommendation(replicas=None, reason=Reason.NO_REPLICAS), signals=(unknown,))
        return scaler(folder, replace(row, **{"replicas_now": 0, **changes}))

    def test_zero_is_kept_and_no_load_invented(self, tmp_path: Path) -> None:
        values = self.asleep(tmp_path)
        offered = values.value(REQUESTS)
        assert isinstance(offered, OfferedValue)
        assert (offered.value, values.active(REQUESTS, offered)) == (0.0, False)

    @pytest.mark.parametrize("now", [4, 0])
    def test_a_formula_of_keda_gets_no_count_as_if_it_were_load(self, tmp_path: Path, now: int) -> None:
        """With `ours + other` a kept count would grow at each sync; at zero nothing is kept that could grow."""
        formula = Target("composite-metric", TargetType.AVERAGE_VALUE, 1.0)
        offered = self.asleep(tmp_path, replicas_now=now, targets=(formula,)).value(REQUESTS)
        assert isinstance(offered, NotKnown if now else OfferedValue)

    @pytest.mark.parametrize("now", [9, 0])
    def test_a_scaled_object_that_scales_by_another_workload_does_not_get_that_ones_count(
        self, tmp_path: Path, now: int
    ) -> None:
        unknown = replace(signal_view("requests"), measured=None, measured_at=None, forecast=None)
        row = replace(recommendation(replicas=None, reason=Reason.NO_DATA), signals=(unknown,), replicas_now=now)
        row = replace(row, autoscaler="keda-hpa-web-by-requests")
        values = scaler(tmp_path, row, recommendation(workload_id("consumer")))
        assert isinstance(values.value(REQUESTS._replace(scaled_object="consumer")), NotKnown)
        assert isinstance(values.value(REQUESTS._replace(scaled_object="web-by-requests")), OfferedValue)

    @pytest.mark.parametrize("hpa", ["web", "keda-hpa-web"])
    def test_nor_does_one_with_a_name_of_its_own_where_another_hpa_scales_that_workload(
        self, tmp_path: Path, hpa: str
    ) -> None:
        values = self.asleep(tmp_path, replicas_now=9, autoscaler=hpa)
        assert isinstance(values.value(REQUESTS._replace(scaled_object="consumer-by-requests")), NotKnown)
        own = self.asleep(tmp_path, replicas_now=9, autoscaler="keda-hpa-web-by-requests")
        assert isinstance(own.value(REQUESTS._replace(scaled_object="web-by-requests")), OfferedValue)

    def test_a_table_that_is_old_knows_no_count_to_keep(self, tmp_path: Path) -> None:
        values = self.asleep(tmp_path)
        values._reader.clock = lambda: NOON + timedelta(hours=1)  # noqa: SLF001
        assert isinstance(values.value(REQUESTS), NotKnown)
