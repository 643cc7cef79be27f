from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.signal import CPU, MEMORY, PODS, Signal
from forecaster.domain.window import Block, Gap
from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.store.history import FIVE_MINUTES, MINUTE, HistorySettings, HistoryStore
from forecaster.store.snapshot import SNAPSHOT_MAGIC, Snapshots
from tests.support.full_disk import full_disk

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
IDS = tuple(WorkloadId("shop", "Deployment", name) for name in ("web", "café ☕", 'a"b\\c'))
SIGNALS = (CPU, MEMORY)


def empty(now: datetime = NOON, *, length: timedelta = DAY, signals: tuple[Signal, ...] = SIGNALS) -> HistoryStore:
    return HistoryStore(signals, HistorySettings(minutes_kept=timedelta(minutes=30), weeks_kept=length), now=now)


def filled(now: datetime = NOON) -> HistoryStore:
    history, random = empty(now), np.random.default_rng(7)
    for gap in history.gaps(now):
        values = random.random((len(IDS), gap.columns))
        values[0] += 0.1
        history.write(Block(gap.signal, IDS, gap.start, gap.step, np.where(values < 0.1, np.nan, values)))
    return history


def restored(path: Path, into: HistoryStore) -> HistoryStore:
    assert Snapshots(path, into).load()
    return into


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Snapshots(tmp_path / "history", filled()).save()
    return tmp_path / "history"


@pytest.mark.parametrize("step", [MINUTE, FIVE_MINUTES])
def test_a_restart_knows_what_was_known(path: Path, step: timedelta) -> None:
    before, after = filled().window(CPU, step), restored(path, empty()).window(CPU, step)
    assert after.keys == before.keys
    np.testing.assert_array_equal(after.values, before.values)


def test_a_restart_asks_only_for_what_it_missed(path: Path) -> None:
    later = NOON + timedelta(minutes=40)
    assert restored(path, empty(later)).gaps(later)[::2] == [
        Gap(CPU, NOON + timedelta(minutes=11), later, MINUTE),
        Gap(CPU, NOON + FIVE_MINUTES, NOON + 2 * FIVE_MINUTES, FIVE_MINUTES),
    ]


def test_a_restart_asks_again_for_a_gap_that_may_have_been_filled_since(tmp_path: Path) -> None:
    """A remote write that catches up does so while nobody asks: the gap of an outage once stayed for two weeks."""
    history, begins, ends = empty(), NOON - timedelta(hours=2), NOON - timedelta(hours=1)
    for gap in history.gaps(NOON):
        outage = [begins <= gap.start + i * gap.step <= ends for i in range(gap.columns)]
        history.write(Block(gap.signal, IDS, gap.start, gap.step, np.where([outage] * len(IDS), np.nan, 1.0)))
    Snapshots(tmp_path / "history", history).save()
    gaps = restored(tmp_path / "history", empty()).gaps(NOON)
    assert gaps == [Gap(signal, begins, ends, FIVE_MINUTES) for signal in SIGNALS]


def test_silence_is_remembered_so_that_workloads_are_forgotten_in_time(path: Path) -> None:
    history = restored(path, empty())
    history.gaps(NOON + timedelta(hours=20))
    assert history.forget({}) == len(SIGNALS) * len(IDS)  # of the minutes; the weeks still know them


@pytest.mark.parametrize("length", [DAY, 2 * DAY, 30 * DAY])
def test_a_longer_window_asks_for_the_older_part(path: Path, length: timedelta) -> None:
    older = [gap for gap in restored(path, empty(length=length)).gaps(NOON) if gap.signal == CPU]
    missing = length - DAY
    assert older == ([Gap(CPU, NOON - length + FIVE_MINUTES, NOON - DAY, FIVE_MINUTES)] if missing else [])


def test_a_shorter_window_takes_the_newer_part(tmp_path: Path) -> None:
    two_days = empty(length=2 * DAY)
    two_days.write(Block(CPU, IDS[:1], NOON - FIVE_MINUTES, FIVE_MINUTES, np.array([[1.0, 2.0]])))
    Snapshots(tmp_path / "history", two_days).save()
    window = restored(tmp_path / "history", empty()).window(CPU, FIVE_MINUTES)
    assert window.values[0, -2:].tolist() == [1.0, 2.0]
    assert window.values.shape == (1, 288)


def test_a_signal_that_is_not_kept_any_more_is_passed_over(path: Path) -> None:
    history = restored(path, empty(signals=(MEMORY,)))
    expected = filled().window(MEMORY, FIVE_MINUTES).values
    np.testing.assert_array_equal(history.window(MEMORY, FIVE_MINUTES).values, expected)


def test_a_new_signal_starts_empty(path: Path) -> None:
    history = restored(path, empty(signals=(*SIGNALS, PODS)))
    assert history.window(PODS, MINUTE).keys == ()


def test_no_snapshot_is_no_error(tmp_path: Path) -> None:
    assert not Snapshots(tmp_path / "history", empty()).load()


def damaged(content: bytes, damage: str) -> bytes:
    middle = len(content) // 2
    return {
        "empty": b"",
        "cut off in the header": content[:100],
        "cut off in the values": content[:middle],
        "cut off at the end": content[:-1],
        "a flipped value": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "another version": content.replace(SNAPSHOT_MAGIC, b"fcRings0", 1),
        "a header too long": content[:8] + b"\xff\xff\xff\xff" + content[12:],
        "a header that is not ours": content[:12] + b"]" + content[13:],
    }[damage]


@pytest.mark.parametrize(
    "damage",
    [
        "empty",
        "cut off in the header",
        "cut off in the values",
        "cut off at the end",
        "a flipped value",
        "another version",
        "a header too long",
        "a header that is not ours",
    ],
)
def test_a_damaged_snapshot_is_refused_and_changes_nothing(path: Path, damage: str) -> None:
    path.write_bytes(damaged(path.read_bytes(), damage))
    history = empty()
    with pytest.raises(StoreError, match=r"history: it is .*; starting without it"):
        Snapshots(path, history).load()
    assert len(history.gaps(NOON)) == 2 * len(SIGNALS)


def test_a_snapshot_from_the_future_is_refused(path: Path) -> None:
    with pytest.raises(StoreError, match="ends at 2026-03-01T12:00Z, but now is 2026-03-01T11:00Z"):
        Snapshots(path, empty(NOON - timedelta(hours=1))).load()


def test_a_path_that_cannot_be_read_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"snapshot .*: cannot be read \(Is a directory\)"):
        Snapshots(tmp_path, empty()).load()


def test_on_a_full_disk_the_previous_snapshot_stays(path: Path) -> None:
    before = path.read_bytes()
    with full_disk(), pytest.raises(StoreError, match=r"cannot be saved .*; the previous one is kept"):
        Snapshots(path, filled(NOON + MINUTE)).save()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_what_can_neither_be_written_nor_removed_is_one_sentence(path: Path) -> None:
    """A file system that has become read-only refuses both; a directory in the way does, too."""
    path.with_name(f".{path.name}.new").mkdir()
    with pytest.raises(StoreError, match="cannot be saved"):
        Snapshots(path, filled()).save()
