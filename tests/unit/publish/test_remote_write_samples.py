from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from forecaster.publish.remote_write import ForecastInstants, SeriesSample, samples_of
from forecaster.publish.settings import RemoteWriteSettings
from tests.support.published import offered_cycle
from tests.support.recommendations import NOON, ahead, recommendation, signal_view

if TYPE_CHECKING:
    from forecaster.domain.decision import Recommendation

BEGIN = NOON + timedelta(minutes=3)
ONE = replace(recommendation(), signals=(signal_view("cpu"),))
KIND, NAMESPACE, WEB = ("kind", "Deployment"), ("namespace", "shop"), ("workload", "web")
CPU = ("signal", "cpu")


def written(row: Recommendation = ONE, **settings: object) -> dict[str, SeriesSample]:
    """Samples by the name of the metric and the quantile, if it has one."""
    samples = samples_of(offered_cycle(row), RemoteWriteSettings.model_validate(settings), ForecastInstants())
    return {dict(sample.labels)["__name__"] + dict(sample.labels).get("quantile", ""): sample for sample in samples}


def test_a_forecast_stands_at_the_time_it_speaks_of() -> None:
    labels = (("__name__", "forecaster_forecast_peak"), KIND, NAMESPACE, ("quantile", "0.9"), CPU, WEB)
    assert written()["forecaster_forecast_peak0.9"] == SeriesSample(labels, 1.75, BEGIN)


def test_or_at_the_time_it_was_made() -> None:
    assert written(timestamps="evaluation")["forecaster_forecast_peak0.9"].at == NOON


def test_what_was_measured_stands_at_its_own_time() -> None:
    sample = written()["forecaster_workload_measured"]
    assert (sample.value, sample.at) == (1.234567, NOON)
    assert sample.labels == (("__name__", "forecaster_workload_measured"), KIND, NAMESPACE, CPU, WEB)


def test_all_quantiles_are_written_when_asked_for() -> None:
    samples = written(quantiles="all")
    values = {key: sample.value for key, sample in samples.items() if "forecast_peak0" in key}
    assert values == {f"forecaster_forecast_peak{q}": v for q, v in ((0.1, 1.1), (0.5, 1.4), (0.95, 1.9), (0.9, 1.75))}


def test_what_is_not_known_is_not_written() -> None:
    nothing = replace(signal_view("cpu"), measured=None, measured_at=None, forecast=None)
    assert written(replace(recommendation(replicas=None), signals=(nothing,))) == {}


def test_what_lies_further_ahead_than_receivers_take_is_left_out() -> None:
    far = replace(ahead(), begin=NOON + timedelta(minutes=11))
    row = replace(ONE, signals=(replace(signal_view("cpu"), forecast=far),))
    assert "forecaster_forecast_peak0.9" not in written(row)
    assert "forecaster_forecast_peak0.9" in written(row, timestamps="evaluation")


def test_the_offer_stands_at_the_time_of_the_cycle_under_the_names_of_the_external_metrics() -> None:
    samples = written()
    names = ("forecaster_demand", "forecaster_replicas", "forecaster_floor")
    assert [(samples[name].value, samples[name].at) for name in names] == [(1.75, NOON), (5.0, NOON), (5.0, NOON)]
    assert samples["forecaster_demand"].labels == (("__name__", "forecaster_demand"), KIND, NAMESPACE, CPU, WEB)
