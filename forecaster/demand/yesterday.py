"""What the coming minutes were a day ago: the forecast of seasonal naive, where nothing decides better."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId

DAY = timedelta(days=1)


@dataclass(slots=True)
class Yesterday:
    """Looks a day back in a window of some weeks; rows are looked up once somebody asks."""

    weeks: Window
    row: Mapping[WorkloadId, int] = field(default_factory=dict)

    def peak(self, id_: WorkloadId, begin: datetime, until: datetime) -> float | None:
        """The largest value between these instants of the day before; None where nothing is known of it."""
        if not self.row:
            self.row = {key: i for i, key in enumerate(self.weeks.keys)}
        first = -(-(begin - DAY - self.weeks.start) // self.weeks.step)
        last = -(-(until - DAY - self.weeks.start) // self.weeks.step)
        if id_ not in self.row or first < 0:
            return None
        values = self.weeks.values[self.row[id_], first : last + 1]
        return float(np.nanmax(values)) if values.size and not np.isnan(values).all() else None
