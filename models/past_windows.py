"""What earlier days say about windows ahead of an origin, as numbers without a unit."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from .situation import DAYS_BACK, hour_of, squash
from .trailing import running_maximum

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .forecast import StepWindow
    from .panel import Floats
    from .situation import SeenSituation

# How far around the clock time of the target one looks, per day of distance.
NEIGHBOURS = ((1, (-2, -1, 1, 2, 4)), (7, (-1, 1)))


def past_windows(seen: SeenSituation, windows: Sequence[StepWindow]) -> Floats:
    """Float32 [series, origin, window, feature]: the same window on the last seven days, and how far it is away."""
    first = np.array([window.first for window in windows])
    width = np.array([window.steps for window in windows])
    days = np.array([*range(1, DAYS_BACK + 1), *(day for day, shifts in NEIGHBOURS for _ in shifts)])
    shifts = np.array([0] * DAYS_BACK + [shift for _, each in NEIGHBOURS for shift in each])
    back = _back(seen, days)
    found = _same_windows(seen, windows, back, shifts)
    then = found[..., :DAYS_BACK] - seen.level[:, :, None, None]
    since = found[..., :DAYS_BACK] - _same_minute(seen, back[:, :DAYS_BACK])[:, :, None]
    parts: list[Floats] = [since, then[..., [0, 1, 2, 6]]]
    for each in (then, since):
        ordered = np.sort(each, axis=-1)
        parts += [ordered[..., [0, 1, 3, 5, 6]], each.mean(axis=-1, keepdims=True)]
    parts.append(found[..., DAYS_BACK:] - seen.level[:, :, None, None])
    latest = np.stack([_largest(seen, window.steps, seen.origins[:, None])[:, :, 0] for window in windows], axis=-1)
    parts.append((latest - seen.level[:, :, None])[..., None])
    parts += _around(seen, windows, back[:, :DAYS_BACK])
    scaled = squash(np.concatenate(parts, axis=-1) / seen.scale[:, :, None, None].astype(seen.values.dtype))
    distance = np.stack([np.log(first), first / 12, np.log(width), np.log((first + width) / seen.day)], axis=-1)
    place = np.broadcast_to(distance, (*scaled.shape[:3], distance.shape[1]))
    return np.concatenate([scaled, place], axis=-1).astype(np.float32)


def _around(seen: SeenSituation, windows: Sequence[StepWindow], back: npt.NDArray[np.intp]) -> list[Floats]:
    """Means of the hour around the middle of each window on these days, and how they changed since the origin's clock.

    One bin of a restless series says little; an hour of seven days says what is usual at that time.
    """
    origins, hour = seen.origins[:, None], hour_of(seen.day)
    at = np.stack([origins - back + (one.first + one.last + hour) // 2 for one in windows], axis=1)
    usual = seen.view.mean_at(hour, _known(at, seen.origins[:, None, None]))
    since = usual - seen.view.mean_at(hour, _known(origins - back, origins))[:, :, None]
    latest = seen.view.mean(hour)[:, :, None, None]
    then, level = usual - seen.level[:, :, None, None], seen.level[:, :, None, None]
    parts = [then[..., [0, -1]], then.mean(axis=-1, keepdims=True), _median(then)]
    return [*parts, since[..., [0, -1]], since.mean(axis=-1, keepdims=True), _median(since) + (latest - level)]


def _median(values: Floats) -> Floats:
    """Return the median of the last axis, of odd length; a sort of seven values is quicker than a partition."""
    return np.sort(values, axis=-1)[..., [values.shape[-1] // 2]]


def _known(at: npt.NDArray[np.intp], origins: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Positions that were over at the origin; where history does not reach so far, the origin."""
    return np.asarray(np.where(at < 0, origins, np.minimum(at, origins)))


def _back(seen: SeenSituation, days: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """[origin, place] bins back to these days; where history does not reach so far, to the oldest day that it has."""
    known = (seen.origins[:, None] + 1) // seen.day
    return np.asarray(np.maximum(np.minimum(days, known), 1) * seen.day)


def _same_windows(
    seen: SeenSituation, windows: Sequence[StepWindow], back: npt.NDArray[np.intp], shifts: npt.NDArray[np.intp]
) -> Floats:
    """[series, origin, window, place] largest value of the window so many bins ago; without history the latest value.

    Bins that were not over at the origin are never read.
    """
    origins = seen.origins[:, None]
    found = []
    for window in windows:
        at = _known(origins - back + shifts + window.last, origins)
        found.append(_largest(seen, window.steps, at))
    return np.stack(found, axis=2)


def _largest(seen: SeenSituation, width: int, at: npt.NDArray[np.intp]) -> Floats:
    """[series, *at] largest of the `width` bins up to each of these, fewer at the beginning.

    A few of them are looked up; for many it is cheaper to know all.
    """
    if width * at.size < seen.values.shape[1]:
        return reduce(np.maximum, (seen.values[:, np.maximum(at - before, 0)] for before in range(width)))
    if width not in seen.running:
        seen.running[width] = running_maximum(seen.values, width)
    return np.asarray(seen.running[width][:, at])


def _same_minute(seen: SeenSituation, back: npt.NDArray[np.intp]) -> Floats:
    """[series, origin, place] value at the origin's clock time on these days."""
    origins = seen.origins[:, None]
    return np.asarray(seen.values[:, _known(origins - back, origins)])
