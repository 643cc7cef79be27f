"""Panels, forecasts and backtests show themselves; long frames become panels and say what was done to them."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from models import Panel, PanelError, create
from tests.support.panels import FIVE_MINUTES, MONDAY, daily_waves, panel


def long(*series: tuple[str, float, int], minutes: int = 5) -> pd.DataFrame:
    """Rows of series given as name, hour at which it begins, number of samples."""
    rows = [
        {"timestamp": MONDAY + timedelta(hours=begin, minutes=minutes * i), "workload": name, "value": 1.0 + i}
        for name, begin, count in series
        for i in range(count)
    ]
    return pd.DataFrame(rows)


def test_a_series_is_found_by_the_parts_of_its_key_that_matter() -> None:
    panel = Panel(np.ones((2, 3)), MONDAY, FIVE_MINUTES, ("shop/Deployment/checkout", "shop/Deployment/search"))
    assert panel["shop/checkout"].keys == ("shop/Deployment/checkout",)
    assert panel["search"].keys == ("shop/Deployment/search",)


def test_an_unknown_series_is_answered_with_near_ones() -> None:
    panel = Panel(np.ones((1, 3)), MONDAY, FIVE_MINUTES, ("shop/checkout",))
    with pytest.raises(PanelError, match="did you mean shop/checkout"):
        panel["shop/chekout"]
    with pytest.raises(PanelError, match="2 of 2 series are 'shop'"):
        Panel(np.ones((2, 3)), MONDAY, FIVE_MINUTES, ("shop/a", "shop/b"))["shop"]


def test_ragged_ends_are_gaps_and_are_told() -> None:
    panel = Panel.from_long(long(("shop/a", 0, 36), ("shop/b", 2, 6)))
    assert panel.keys == ("shop/a", "shop/b")
    assert np.isnan(panel.values[1]).sum() == 30
    assert panel.notes == (
        "gaps before series that begin up to 2 h late: shop/b",
        "gaps after series that end up to 30 min early: shop/b",
    )


def test_gaps_and_double_samples_are_told() -> None:
    frame = long(("a", 0, 20)).drop(index=[5, 6])
    panel = Panel.from_long(pd.concat([frame, frame.iloc[[0]].assign(value=3.0)]))
    assert panel.values[0, 0] == 2.0
    assert any("2 bins (10.0%) have no sample" in note for note in panel.notes)
    assert any("1 samples came twice" in note for note in panel.notes)


def test_series_of_two_resolutions_meet_at_the_coarser_one() -> None:
    panel = Panel.from_long(pd.concat([long(("coarse", 0, 12)), long(("fine", 0, 60), minutes=1)]))
    assert panel.step == FIVE_MINUTES
    assert panel["fine"].values[0, 0] == pytest.approx(3.0)
    assert "means over 5 min of series that are sampled more often: fine" in panel.notes


def test_what_is_no_demand_is_left_out_and_counted() -> None:
    frame = long(("a", 0, 10))
    frame.loc[3, "value"] = -1
    panel = Panel.from_long(frame)
    assert np.isnan(panel.values[0, 3])
    assert panel.notes[0].startswith("1 of 10 rows hold no demand")


@pytest.mark.parametrize("unit", [1, 1000], ids=["seconds", "milliseconds"])
def test_numbers_are_instants_since_1970(unit: int) -> None:
    frame = long(("a", 0, 3))
    numbers = frame.assign(timestamp=[instant.timestamp() * unit for instant in frame["timestamp"]])
    assert Panel.from_long(numbers).start == Panel.from_long(frame).start


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (pd.DataFrame({"timestamp": [MONDAY]}), "no column 'value'"),
        (long(("a", 0, 1)), "give `step`"),
        (long(("a", 0, 3), minutes=120), "2 h says too little"),
        (pd.DataFrame({"timestamp": ["soon"], "value": [1]}), "no instant"),
    ],
)
def test_a_frame_that_is_no_panel_is_refused_with_the_remedy(frame: pd.DataFrame, fault: str) -> None:
    with pytest.raises(PanelError, match=fault):
        Panel.from_long(frame)


def test_a_panel_shows_its_series_its_gaps_and_its_notes() -> None:
    shown = Panel.from_long(long(("shop/<a>", 0, 36), ("shop/b", 2, 6)))._repr_html_()
    assert "Panel of 2 series, 3 h by 5 min" in shown
    assert "shop/&lt;a&gt;" in shown
    assert "83.3%" in shown
    assert shown.count("<svg") == 2


def test_a_forecast_shows_bands_and_why_some_have_none() -> None:
    history = daily_waves(2)
    silent = Panel(
        np.vstack([history.values, np.full((1, history.length), np.nan)]), MONDAY, history.step, (*"ab", "c")
    )
    forecast = create("last-value").fit(silent).forecast(6, (0.5, 0.9))
    shown = forecast._repr_html_()
    assert "Forecast of 2 series" in shown
    assert "largest p90" in shown
    assert "c: " in shown
    assert forecast.to_frame()[("a", 0.9)].tolist() == pytest.approx(forecast.values[0, 1])


def test_plots_have_a_row_a_series_and_the_band_lies_after_the_origin() -> None:
    history = daily_waves(3)
    forecast = create("last-value").fit(history.until(history.end - timedelta(hours=6))).forecast(6, (0.1, 0.5, 0.9))
    assert len(history.plot(["s2"]).axes) == 1
    figure = forecast.plot(history)
    assert len(figure.axes) == 3
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["p10 to p90", "p50", "measured"]


def test_a_panel_without_samples_shows_that() -> None:
    assert "100 %" in panel([np.nan, np.nan])._repr_html_()
    assert "without samples" in Panel(np.zeros((0, 0)), MONDAY, FIVE_MINUTES, ())._repr_html_()
