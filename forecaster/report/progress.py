"""Stage and progress bar of long work on standard error: on a terminal only, and erased at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class ShownProgress:
    """A `StageWatch`: shows stages, and after the first Ctrl-C lets a command finish with its partial results."""

    def __init__(self, bar: Progress | None = None, task: TaskID = TaskID(0)) -> None:  # noqa: B008  an integer
        self._bar, self._task = bar, task
        self.interrupted_in = ""

    def began(self, stage: str, share: float) -> None:
        """Show it."""
        if self._bar:
            self._bar.update(self._task, description=stage, completed=share)

    def interrupted(self, stage: str) -> bool:
        """Return whether to stop; only once: a second Ctrl-C ends everything."""
        first, self.interrupted_in = not self.interrupted_in, stage
        if first:
            console = self._bar.console if self._bar else Console(stderr=True)
            console.print("Finishing with what there is; Ctrl-C once more ends at once.", soft_wrap=True)
        return first


@contextmanager
def shown_progress(work: str) -> Iterator[ShownProgress]:
    """A bar for as long as the block takes; silent where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield ShownProgress()
        return
    console = Console(stderr=True)
    columns = (TextColumn(f"{work}:"), TextColumn("{task.description}"), BarColumn(24), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        yield ShownProgress(bar, bar.add_task("", total=1.0))
