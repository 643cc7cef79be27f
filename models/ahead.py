"""What earlier days say about windows ahead of an origin, as numbers without a unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .situation import DAYS, squash
from .trailing import running_maximum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .forecast import Window
    from .panel import Floats
    from .situation import Situation

    Running = list[tuple[int, Floats]]

# How far around the clock time of the target one looks, per day of distance.
NEIGHBOURS = ((1, (-2, -1, 1, 2, 4)), (7, (-1, 1)))


def ahead(seen: Situation, windows: Sequence[Window]) -> Floats:
    """Float32 [series, origin, window, feature]: the same window on the last seven days, and how far it is away."""
    first = np.array([window.first for window in windows])
    width = np.array([window.steps for window in windows])
    running = _running(seen, windows)
    earlier = [_same_window(seen, running, days=k) for k in range(1, DAYS + 1)]
    then = np.stack([window for window, _ in earlier], axis=-1) - seen.level[:, :, None, None]
    since = np.stack([window - origin for window, origin in earlier], axis=-1)
    parts = [since[..., k] for k in range(DAYS)] + [then[..., k] for k in (0, 1, 2, 6)]
    for each in (then, since):
        ordered = np.sort(each, axis=-1)
        parts += [*(ordered[..., k] for k in (0, 1, 3, 5, 6)), each.mean(axis=-1)]
    for days, offsets in NEIGHBOURS:
        parts += [_same_window(seen, running, days, shift)[0] - seen.level[:, :, None] for shift in offsets]
    newest = np.stack([largest[:, seen.origins] for _, largest in running], axis=-1)
    parts.append(newest - seen.level[:, :, None])
    scaled = squash(np.stack(parts, axis=-1) / seen.scale[:, :, None, None])
    distance = np.stack([np.log(first), first / 12, np.log(width), np.log((first + width) / seen.day)], axis=-1)
    place = np.broadcast_to(distance, (*scaled.shape[:3], distance.shape[1]))
    return np.concatenate([scaled, place], axis=-1).astype(np.float32)


def _same_window(seen: Situation, running: Running, days: int, shift: int = 0) -> tuple[Floats, Floats]:
    """[series, origin, window] largest value of the window some days ago, and the value at the origin's clock time.

    Where history does not reach back as many days, the oldest day that it has; without any, the newest value. Bins that
    were not over at the origin are never read.
    """
    back = np.maximum(np.minimum(days, (seen.origins + 1) // seen.day), 1) * seen.day
    then = np.where(seen.origins < back, seen.origins, seen.origins - back)
    found = []
    for last, largest in running:
        at = np.minimum(seen.origins - back + shift + last, seen.origins)
        found.append(largest[:, np.where(at < 0, seen.origins, at)])
    return np.stack(found, axis=-1), seen.values[:, then][:, :, None]


def _running(seen: Situation, windows: Sequence[Window]) -> Running:
    """Per window its last step and [series, time] the largest of as many newest bins as it is long."""
    by_width = {steps: running_maximum(seen.values, steps) for steps in {window.steps for window in windows}}
    return [(window.last, by_width[window.steps]) for window in windows]
