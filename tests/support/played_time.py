"""A clock that a test moves and that two processes read: `python -m tests.support.played_time FILE OPTIONS...`.

That is the serving process with the options that it is always started with, by this clock.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from forecaster.serving.__main__ import main


class PlayedTime(NamedTuple):
    """The instant that lies in a file."""

    file: Path

    def __call__(self) -> datetime:
        """Now."""
        return datetime.fromtimestamp(float(self.file.read_text(encoding="ascii")), UTC)

    def set(self, at: datetime) -> None:
        """Move it, either way; readers see the old instant or the new one."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{at.timestamp():.3f}", encoding="ascii")
        fresh.replace(self.file)

    @property
    def serving(self) -> tuple[str, ...]:
        """The serving process by this clock, before its options."""
        return (sys.executable, "-m", "tests.support.played_time", str(self.file))


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:], clock=PlayedTime(Path(sys.argv[1]))))
