"""Forecasts are kept whole or not at all, and never stop a replay."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from forecaster.store.forecast_cache import ForecastFiles

if TYPE_CHECKING:
    from pathlib import Path

ARRAYS = {"cpu": np.arange(6.0).reshape(1, 2, 3)}


def test_what_was_put_is_there(tmp_path: Path) -> None:
    cache = ForecastFiles(tmp_path / "new")
    cache.put("key", ARRAYS)
    arrays = cache.get("key")
    assert arrays is not None
    assert np.array_equal(arrays["cpu"], ARRAYS["cpu"])


def test_what_was_never_put_is_not(tmp_path: Path) -> None:
    assert ForecastFiles(tmp_path).get("key") is None


def test_a_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    cache = ForecastFiles(tmp_path)
    cache.put("key", ARRAYS)
    path = tmp_path / "key.npz"
    path.write_bytes(path.read_bytes()[:100])
    assert cache.get("key") is None


def test_objects_are_not_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "key.npz", cpu=np.array([{}], object))
    assert ForecastFiles(tmp_path).get("key") is None


def test_beyond_the_limit_the_least_recently_used_goes(tmp_path: Path) -> None:
    cache = ForecastFiles(tmp_path, limit=800)
    for at, key in enumerate(("old", "new")):
        cache.put(key, ARRAYS)
        os.utime(tmp_path / f"{key}.npz", (at, at))
    cache.put("newest", ARRAYS)
    assert cache.get("old") is None
    assert cache.get("newest") is not None


def test_where_nothing_can_be_kept_nothing_is(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    ForecastFiles(blocked).put("key", ARRAYS)
    assert ForecastFiles(blocked).get("key") is None
