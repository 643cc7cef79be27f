"""Ctrl-C on a real terminal: the cursor is back, its modes are as before, no traceback, exit code 130."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("forecaster")
ERASE = b"\x1b[2K"
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
PATIENCE = 120.0


class Terminal:
    """A pseudo-terminal of 40 lines and 120 columns with one program on it."""

    def __init__(self, *command: str | Path) -> None:
        try:
            self.master, self.slave = pty.openpty()
        except OSError as error:
            pytest.skip(f"this system gives out no terminals ({error}); mount devpts")
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.modes = termios.tcgetattr(self.slave)
        self.seen = b""
        self.program = subprocess.Popen(
            command,
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  nothing else runs here
        )

    def read_until(self, text: bytes) -> None:
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], PATIENCE)
            assert ready, f"waited for {text!r}; saw {self.seen[-500:]!r}"
            self.seen += os.read(self.master, 65536)

    def type(self, key: bytes) -> None:
        os.write(self.master, key)

    def read_to_the_end(self) -> int:
        os.set_blocking(self.master, False)
        while self.program.poll() is None:
            select.select([self.master], [], [], 0.1)
            self._read_what_is_there()
        self._read_what_is_there()
        return self.program.returncode

    def _read_what_is_there(self) -> None:
        with suppress(BlockingIOError):
            while chunk := os.read(self.master, 65536):
                self.seen += chunk

    def close(self) -> None:
        self.program.kill()
        self.program.wait()
        os.close(self.master)
        os.close(self.slave)


def interrupted(moment: bytes) -> bytes:
    """Return the output of a demo that Ctrl-C ended at `moment`; the modes of the terminal are restored."""
    terminal = Terminal(COMMAND, "demo")
    try:
        terminal.read_until(moment)
        terminal.type(b"\x03")
        assert terminal.read_to_the_end() == 130
        assert b"Traceback" not in terminal.seen
        assert b"Exception" not in terminal.seen
        assert terminal.seen.rfind(SHOW) >= terminal.seen.rfind(HIDE)
        assert termios.tcgetattr(terminal.slave) == terminal.modes
        return terminal.seen
    finally:
        terminal.close()


@pytest.mark.parametrize(
    "moment",
    [b"of recorded load", HIDE, b"Ctrl-C ends it"],
    ids=["before the first cycle", "as the cursor goes", "at the first picture"],
)
def test_ctrl_c_leaves_the_terminal_as_it_was(moment: bytes) -> None:
    interrupted(moment)


def test_ctrl_c_at_a_later_picture_leaves_what_was_shown() -> None:
    """A terminal that erases a line erases none of the last picture."""
    output = interrupted(b"0.6 of 12 h")
    last_picture = output[output.rfind(ERASE) :]
    assert [word for word in (b"of 12 h", b"shop/checkout", b"plain HPA") if word not in last_picture] == []


def test_impatience_changes_nothing() -> None:
    terminal = Terminal(COMMAND, "demo")
    try:
        terminal.read_until(b"Ctrl-C ends it")
        terminal.type(b"\x03\x03\x03")
        assert terminal.read_to_the_end() == 130
        assert b"Traceback" not in terminal.seen
        assert terminal.seen.rfind(SHOW) > terminal.seen.rfind(HIDE)
    finally:
        terminal.close()
