"""Two resolutions side by side: weeks of coarse bins, the latest of which end at the latest minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .errors import PanelError
from .panel import trusted

if TYPE_CHECKING:
    from .panel import Panel


def freshened(weeks: Panel, minutes: Panel) -> Panel:
    """Coarse bins as long as `weeks`, the latest of them made of `minutes` and ending where these end.

    What was measured a minute ago reaches the forecast, and not what a bin of the clock knew four minutes ago. Older
    bins keep the cut they have, so they are less than a bin early; what a model reads there changes by the hour.

    Raises:
        PanelError: other series, a step that is no multiple, or minutes that end before the weeks or begin after them.

    >>> from datetime import UTC, datetime, timedelta
    >>> from models import Panel
    >>> noon, minute = datetime(2026, 1, 5, 12, tzinfo=UTC), timedelta(minutes=1)
    >>> weeks = Panel(np.array([[1.0, 1.0, 1.0]]), noon, 5 * minute, ("a",))
    >>> minutes = Panel(np.array([[1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0]]), noon + 10 * minute, minute, ("a",))
    >>> found = freshened(weeks, minutes)
    >>> found.values.tolist(), f"{found.end:%H:%M}"
    ([[1.0, 1.0, 2.6]], '12:17')
    """
    _check(weeks, minutes)
    recent = minutes.resample(weeks.step).last(weeks.length * weeks.step)
    older = weeks.until(recent.start)
    kept = older.values[:, max(0, older.length - (weeks.length - recent.length)) :]
    values = np.concatenate([kept, recent.values.astype(weeks.values.dtype)], axis=1)
    return trusted(values, recent.end - values.shape[1] * weeks.step, weeks.step, weeks.keys)


def _check(weeks: Panel, minutes: Panel) -> None:
    if minutes.keys != weeks.keys:
        other = next(iter(set(minutes.keys) ^ set(weeks.keys)), "their order")
        raise PanelError(f"the panels differ in series {other!r}; select the same keys first")
    if minutes.end < weeks.end or minutes.start > weeks.end:
        raise PanelError(f"minutes from {minutes.start} to {minutes.end} do not carry on weeks that end at {weeks.end}")
