"""GIFT-Eval's protocol on made-up machines."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gift.__main__ import BINS, LEVELS, START, STEPS, WINDOWS, read, read_machine, score, score_with, table

HEAD = "Timestamp [ms];\tCPU cores;\tCPU usage [MHZ];\tCPU usage [%]\n"


def machine(path: Path, *samples: tuple[int, float, float]) -> Path:
    lines = (f"{int(START.timestamp()) + second};\t2;\t{mhz};\t{share}" for second, mhz, share in samples)
    path.write_text(HEAD + "\n".join(lines) + "\n")
    return path


def test_samples_of_five_minutes_are_averaged_and_others_are_unknown(tmp_path: Path) -> None:
    mhz, share = read_machine(machine(tmp_path / "1.csv", (0, 10.0, 1.0), (299, 30.0, 3.0), (600, 5.0, 0.5)))
    assert len(mhz) == len(share) == BINS
    np.testing.assert_array_equal(mhz[:3], [20.0, np.nan, 5.0])
    np.testing.assert_array_equal(share[:3], [2.0, np.nan, 0.5])


def test_machines_without_a_sample_in_the_month_are_left_out(tmp_path: Path) -> None:
    machine(tmp_path / "1.csv", (0, 10.0, 1.0))
    machine(tmp_path / "2.csv", (-600, 10.0, 1.0))
    assert read(tmp_path).shape == (2, BINS)


def test_what_stays_the_same_is_forecast_without_loss() -> None:
    own = score(np.full((2, 4 * 288 + WINDOWS * STEPS), 7.0), "last-value")
    assert own.crps == pytest.approx(0.0, abs=1e-9)
    assert own.nd == pytest.approx(0.0, abs=1e-9)


def test_the_same_time_yesterday_after_a_step_up_misses_the_rise() -> None:
    before, after = np.full(4 * 288, 1.0), np.full(WINDOWS * STEPS, 2.0)
    own = score(np.concatenate([before, after])[None], "seasonal-naive-day")
    assert own.nd == pytest.approx(288 / (2 * WINDOWS * STEPS), rel=0.35), "a day of misses, half of the value each"


def test_published_rows_stand_beside_ours_in_order() -> None:
    rows = table({"x": score(np.full((1, 4 * 288 + WINDOWS * STEPS), 7.0), "last-value")}).rows
    assert rows[0][0] == "x (ours)"
    assert [float(row[1]) for row in rows] == sorted(float(row[1]) for row in rows)
    assert len(LEVELS) == 9


def test_weights_that_have_seen_these_machines_are_refused(tmp_path: Path) -> None:
    (tmp_path / "prior.json").write_text(json.dumps({"sources": [{"family": "bitbrains_cpu"}]}))
    with pytest.raises(SystemExit, match="trained on bitbrains_cpu; train it --without bitbrains_cpu"):
        score_with([tmp_path / "prior.npz"], tmp_path, ["adaptive"])
