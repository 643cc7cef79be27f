"""The last hours as blocks."""

from __future__ import annotations

import numpy as np

from forecaster.report.plot import BLOCKS, sparkline


def test_blocks_rise_with_the_load_and_a_gap_is_a_space() -> None:
    values = np.array([0.0, 1.0, np.nan, np.nan, 4.0, 8.0])
    assert sparkline(values, 3) == f"{BLOCKS[1]} {BLOCKS[-1]}"


def test_no_load_is_the_lowest_line_and_no_history_none() -> None:
    assert sparkline(np.zeros(6), 3) == 3 * BLOCKS[0]
    assert sparkline(np.full(6, np.nan), 3) == ""
    assert sparkline(np.zeros(0), 3) == ""
