"""Demand by the clock on the wall: after a change to or from summer time, yesterday at eight is still 24 hours back.

Older columns of a workload in such a time zone are moved by the hour that the clock has changed, so that every model
reads 24 and 168 hours as its users live them. In spring the hour that the clock skipped holds what the hour before
it did; in autumn, of the hour that came twice, the second counts. A workload in UTC is left as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.fresh import FreshHistory
from forecaster.domain.clock import clock_changes
from forecaster.domain.workload import WorkloadId


def by_wall_clock(
    values: NDArray[np.floating], ids: Sequence[WorkloadId], history: FreshHistory
) -> NDArray[np.floating]:
    """Return demand [workload, column] with older columns where the clock of each workload puts them.

    The last column is the latest one of `history.weeks`.
    """
    if not history.zones:
        return values
    rows: dict[str, list[int]] = defaultdict(list)
    for row, id_ in enumerate(ids):
        if id_ in history.zones:
            rows[history.zones[id_]].append(row)
    moved = values
    for zone, places in rows.items():
        order = columns_by_clock(zone, history.weeks.end, history.weeks.step, values.shape[1])
        if order is not None:
            moved = values.copy() if moved is values else moved
            moved[places] = np.where(order >= 0, values[places][:, np.maximum(order, 0)], np.nan)
    return moved


def series_by_clock(values: NDArray[np.floating], zone: str, end: datetime, step: timedelta) -> NDArray[np.floating]:
    """Return one series [column], which ends at `end`, with older columns where the clock of a zone puts them."""
    order = columns_by_clock(zone, end, step, len(values))
    return values if order is None else np.where(order >= 0, values[np.maximum(order, 0)], np.nan)


@lru_cache(maxsize=1024)
def columns_by_clock(zone: str, end: datetime, step: timedelta, columns: int) -> NDArray[np.intp] | None:
    """[column] of which column each holds the demand, -1 for none; None where the clock did not change.

    The last column ends at `end`.
    """
    begin = end - columns * step
    changes = clock_changes(zone, begin, end)
    if not changes:
        return None
    order, moved = np.arange(columns), 0
    for change in changes:  # the latest first: what lies before it has moved by it and by all later ones
        place, by = -(-(change.at - begin) // step), change.by // step
        before = np.arange(columns) < place - moved - max(by, 0)
        moved += by
        order = np.where(before, np.arange(columns) + moved, order)
    known = np.where((order >= 0) & (order < columns), order, -1)
    known.flags.writeable = False  # it is cached
    return known
