from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.store.state import probe_state

if TYPE_CHECKING:
    from pathlib import Path


def test_a_writable_directory_is_fine_and_none_is_left_behind(tmp_path: Path) -> None:
    assert probe_state(tmp_path / "state" / "of" / "forecaster")[0].ok
    assert not (tmp_path / "state").exists()


def test_a_directory_that_cannot_be_is_said_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    (check,) = probe_state(tmp_path / "file" / "state")
    assert not check.ok
    assert "state.directory" in check.remedy
