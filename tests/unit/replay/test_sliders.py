"""Sliders of a what-if: their positions, and the changes that one movement leads to."""

from __future__ import annotations

from forecaster.replay.sliders import LEADS, MAX_VALUES, NO_CHANGE, PolicyChange, Slider, beside, sliders_of

NOW = {
    "quantile": 0.9,
    "tolerance": 0.1,
    "scale_down_stabilization": 300.0,
    "min_replicas": 2,
    "max_replicas": None,
    "lead_time": 180.0,
    "target_share": 1.0,
    "gate": True,
}


def test_positions_are_numbers_as_a_browser_writes_them() -> None:
    assert Slider(0.5, 0.99, 0.01).values(near=0.9)[-3:] == [0.97, 0.98, 0.99]


def test_of_a_long_slider_the_nearest_positions_are_replayed() -> None:
    values = Slider(1, 2000, 1).values(near=900)
    assert len(values) == MAX_VALUES
    assert values[0] < 900 < values[-1]
    assert Slider(1, 2000, 1).values(near=2000)[-1] == 2000


def test_a_slider_reaches_the_value_in_force_and_is_not_offered_for_what_is_not_stated() -> None:
    sliders = sliders_of({**NOW, "scale_down_stabilization": 7200.0})
    assert sliders["scale_down_stabilization"].most == 7200.0
    assert sliders["min_replicas"] == Slider(1, 10, 1, "replicas")
    assert "max_replicas" not in sliders


def test_one_movement_changes_one_setting_and_back_again() -> None:
    change = PolicyChange.to(quantile=0.95)
    changes = list(beside(change, ["quantile", "scale_down_stabilization", "gate", "max_replicas"], NOW))
    assert NO_CHANGE in changes
    assert PolicyChange.to(quantile=0.5) in changes
    assert change.put("scale_down_stabilization", 360.0) in changes
    assert change.put("scale_down_stabilization", 300.0) not in changes
    assert PolicyChange.to(quantile=0.95, gate=False) in changes


def test_lead_times_are_those_that_have_forecasts() -> None:
    assert [change.get("lead_time") for change in beside(NO_CHANGE, ["lead_time"], NOW)] == [
        None,
        *(lead.total_seconds() for lead in LEADS),
    ]
