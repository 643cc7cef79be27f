"""What the coming minutes were a day ago: the forecast of seasonal naive, where nothing decides better."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Yesterday:
    """Looks a day back in a window of some weeks."""

    weeks: Window

    def peak(self, id_: WorkloadId, begin: datetime, until: datetime) -> float | None:
        """The largest value between these instants of the day before; None where nothing is known of it."""
        first = -(-(begin - DAY - self.weeks.start) // self.weeks.step)
        last = -(-(until - DAY - self.weeks.start) // self.weeks.step)
        if id_ not in self.weeks.row or first < 0:
            return None
        values = self.weeks.values[self.weeks.row[id_], first : last + 1]
        return float(np.nanmax(values)) if values.size and not np.isnan(values).all() else None
