"""What a learned policy looks at: everything in ratios, so that one policy serves workloads of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.replay.advice import DAY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.replay.advice import Situation

    Floats = NDArray[np.float64]

FEATURES = ("median", "upper", "spread", "filled", "starting", "error", "sine", "cosine")
LARGEST = 3.0
"""Logarithms of ratios beyond this (a factor of twenty) are all the same."""


def features_of(one: Situation) -> Floats:
    """[lane, feature], finite. A forecast that is not known is as if nothing changed."""
    asked = np.maximum(one.asked, 1.0)
    measured = np.nan_to_num(one.measured)
    median = np.where(np.isnan(one.median), measured, one.median)
    upper = np.maximum(np.where(np.isnan(one.upper), measured, one.upper), median)
    before = np.where(np.isnan(one.before), measured, one.before)
    angle = 2 * np.pi * one.minute_of_day / DAY
    columns = (
        _log_ratio(median, asked),
        _log_ratio(upper, asked),
        _log_ratio(upper, median),
        _log_ratio(measured, one.ready),
        1.0 - one.ready / asked,
        _log_ratio(measured, before),
        np.full(len(asked), np.sin(angle)),
        np.full(len(asked), np.cos(angle)),
    )
    features: Floats = np.clip(np.stack(columns, axis=1), -LARGEST, LARGEST)
    return features


def _log_ratio(above: Floats, below: Floats) -> Floats:
    """Of amounts in pods; a tenth of a pod is as good as none."""
    return np.asarray(np.log(np.maximum(above, 0.1) / np.maximum(below, 0.1)))
