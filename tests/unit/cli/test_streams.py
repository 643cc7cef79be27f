"""Output that cannot be written or encoded: a message and an exit code, never a traceback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

ARROW = "from forecaster.cli.streams import tolerant_streams; tolerant_streams(); print('2 → 3, – and ж')"
MODELS = [sys.executable, "-m", "forecaster", "models"]


def run(*, stdout: int | None = subprocess.PIPE, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        MODELS, env={**os.environ, **env}, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


def test_an_encoding_without_arrows_has_them_spelt_out() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ARROW],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "2 -> 3, - and ?\n"


def test_a_full_disk_is_a_message() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    done = run(stdout=full)
    os.close(full)
    assert (done.returncode, "No space left" in done.stderr, "Traceback" in done.stderr) == (1, True, False)


def test_a_reader_that_leaves_ends_the_command_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    done = run(stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("name", ["missing/replay.html", "file/replay.html", "n" * 300])
def test_a_file_that_cannot_be_written_is_reported_before_the_work(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-m", "forecaster", "replay", "--html", str(tmp_path / name)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "name a file in a directory that may be written" in " ".join(done.stderr.split())


def test_closed_streams_swallow_the_output() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" >&- 2>&-', "sh", *MODELS], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *MODELS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_sigterm_ends_a_command_with_its_own_code(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "forecaster", "once", "--prometheus", address]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        with silent.accept()[0]:
            process.terminate()
            printed = process.communicate(timeout=120)
    assert (process.returncode, *printed) == (128 + signal.SIGTERM, "", "")
