"""A panel is one regular grid with gaps as NaN, and says what is wrong with anything else."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from models import Panel, PanelError
from tests.support.panels import HOUR, MONDAY, panel


def test_ends_where_the_newest_bin_ends() -> None:
    assert panel([1, 2, 3]).end == MONDAY + 3 * HOUR


def test_last_keeps_the_newest_bins() -> None:
    newest = panel([1, 2, 3, 4]).last(2 * HOUR)
    assert newest.values.tolist() == [[3, 4]]
    assert newest.start == MONDAY + 2 * HOUR


def test_until_holds_no_bin_that_was_not_over() -> None:
    assert panel([1, 2, 3]).until(MONDAY + 2.5 * HOUR).values.tolist() == [[1, 2]]


def test_a_naive_start_is_refused() -> None:
    with pytest.raises(PanelError, match="no time zone"):
        Panel(np.ones((1, 2)), datetime(2026, 1, 5), HOUR, ("a",))  # noqa: DTZ001  naive on purpose


@pytest.mark.parametrize("value", [-1.0, np.inf, 1e308], ids=["negative", "infinite", "beyond float32"])
def test_impossible_demand_is_refused_with_the_name_of_the_series(value: float) -> None:
    with pytest.raises(PanelError, match=r"'s1'.*01:00"):
        panel([1, 1], [1, value])


def test_cleaning_makes_gaps_of_impossible_demand() -> None:
    cleaned = Panel.cleaned(np.array([[1, -1, np.inf, 1e308, 2]], dtype=float), MONDAY, HOUR, ["a"])
    np.testing.assert_array_equal(cleaned.values, [[1, np.nan, np.nan, np.nan, 2]])


def test_a_key_that_comes_twice_is_refused() -> None:
    with pytest.raises(PanelError, match="'a' comes twice"):
        Panel(np.ones((2, 2)), MONDAY, HOUR, ("a", "a"))


def test_appending_new_bins_continues() -> None:
    joined = panel([1, 2]).append(panel([3], start=MONDAY + 2 * HOUR))
    assert joined.values.tolist() == [[1, 2, 3]]


def test_where_panels_overlap_the_newer_is_right() -> None:
    joined = panel([1, 2]).append(panel([9, 3], start=MONDAY + HOUR))
    assert joined.values.tolist() == [[1, 9, 3]]


def test_samples_that_were_late_correct_their_own_bins_only() -> None:
    joined = panel([1, 2, 3]).append(panel([9], start=MONDAY + HOUR))
    assert joined.values.tolist() == [[1, 9, 3]]


def test_older_samples_come_before_what_is_known() -> None:
    joined = panel([1, 2], start=MONDAY + HOUR).append(panel([8, 9], start=MONDAY))
    assert joined.values.tolist() == [[8, 9, 2]]
    assert joined.start == MONDAY


@pytest.mark.parametrize("hour", [5, -5], ids=["after", "before"])
def test_a_hole_between_panels_is_refused(hour: int) -> None:
    with pytest.raises(PanelError, match="pass the gap as NaN"):
        panel([1, 2]).append(panel([3], start=MONDAY + hour * HOUR))


def test_other_series_do_not_continue_a_panel() -> None:
    with pytest.raises(PanelError, match="s1"):
        panel([1, 2]).append(panel([3], [4], start=MONDAY + 2 * HOUR))


def test_selecting_an_absent_series_names_it() -> None:
    with pytest.raises(PanelError, match="'web'"):
        panel([1, 2]).select(["web"])


def test_resampled_bins_count_back_from_the_end() -> None:
    fine = panel([9, 1, 3, 4, 6])
    coarse = fine.resample(2 * HOUR)
    assert coarse.end == fine.end
    assert coarse.values.tolist() == [[2.0, 5.0]]


def test_a_gap_inside_a_resampled_bin_is_left_out_and_a_bin_without_samples_stays_a_gap() -> None:
    coarse = panel([3, np.nan, np.nan, np.nan]).resample(2 * HOUR)
    np.testing.assert_array_equal(coarse.values, [[3, np.nan]])


def test_a_frame_with_missing_rows_gets_gaps() -> None:
    index = pd.DatetimeIndex([MONDAY, MONDAY + HOUR, MONDAY + 3 * HOUR])
    made = Panel.from_frame(pd.DataFrame({"web": [1.0, 2.0, 4.0]}, index=index))
    np.testing.assert_array_equal(made.values, [[1, 2, np.nan, 4]])
    assert made.keys == ("web",)


@pytest.mark.parametrize(
    ("hours", "complaint"),
    [((0, 1, 1), "twice"), ((0, 2, 1), "does not ascend"), ((0, 1, 2.5), "off the grid"), ((0,), "no step")],
    ids=["duplicated", "unsorted", "mixed steps", "one row"],
)
def test_frames_that_are_no_grid_are_refused(hours: tuple[float, ...], complaint: str) -> None:
    index = pd.DatetimeIndex([MONDAY + h * HOUR for h in hours])
    with pytest.raises(PanelError, match=complaint):
        Panel.from_frame(pd.DataFrame({"web": np.ones(len(hours))}, index=index))


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"], ids=["23 hours", "25 hours"])
def test_local_time_across_a_change_of_clocks_is_a_regular_grid(day: str) -> None:
    index = pd.date_range(day, periods=30, freq="h", tz="Europe/Berlin")
    made = Panel.from_frame(pd.DataFrame({"web": np.arange(30.0)}, index=index))
    assert made.length == 30
    assert made.step == timedelta(hours=1)


def test_a_frame_of_a_panel_gives_the_panel_back() -> None:
    before = panel([1, np.nan, 3], [4, 5, 6])
    after = Panel.from_frame(before.to_frame())
    np.testing.assert_array_equal(after.values, before.values)
    assert (after.start, after.step, after.keys) == (before.start, before.step, before.keys)


def test_what_is_no_number_or_no_instant_in_a_frame_is_refused() -> None:
    index = pd.DatetimeIndex([MONDAY, MONDAY + HOUR])
    with pytest.raises(PanelError, match="could not convert string to float: 'much'"):
        Panel.from_frame(pd.DataFrame({"web": ["1", "much"]}, index=index))
    with pytest.raises(PanelError, match="row 1 has no instant"):
        Panel.from_frame(pd.DataFrame({"web": [1.0, 2.0]}, index=pd.DatetimeIndex([MONDAY, pd.NaT])))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"values": [[1.0]]}, "values are list; use an array"),
        ({"keys": (7,)}, "name each series by a text"),
        ({"start": "2026-01-05"}, "has no time zone"),
        ({"step": 300}, "step 300 is not positive"),
    ],
)
def test_arguments_of_another_type_are_refused_by_their_value(given: dict[str, object], complaint: str) -> None:
    usual = {"values": np.ones((1, 1)), "start": MONDAY, "step": HOUR, "keys": ("web",)}
    with pytest.raises(PanelError, match=complaint):
        Panel(**(usual | given))  # type: ignore[arg-type]


def test_samples_whose_clock_jitters_keep_their_usual_step() -> None:
    jitter = pd.to_timedelta(np.random.default_rng(0).integers(0, 1000, 600), unit="ms")
    instants = pd.date_range(MONDAY, periods=600, freq="5min") + jitter
    made = Panel.from_long(pd.DataFrame({"timestamp": instants, "value": 1.0}))
    assert (made.step, made.length) == (timedelta(minutes=5), 600)


def test_rows_without_an_instant_or_a_name_are_counted_as_left_out() -> None:
    instants = [MONDAY, None, MONDAY + HOUR, MONDAY + 2 * HOUR]
    frame = pd.DataFrame({"timestamp": instants, "value": 1.0, "workload": ["web", "web", "web", None]})
    assert Panel.from_long(frame).notes[0].startswith("2 of 4 rows hold no demand")
