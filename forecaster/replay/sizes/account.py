"""What came of the sizes, container by container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Account:
    """[row] sums over the points of the replay; amounts are in the resource's unit times points."""

    points: Doubles
    used: Doubles
    idle: Doubles
    """Requested and not used."""
    over_request: Doubles
    """Points at which more was wanted than requested."""
    over_limit: Doubles
    """Points at which more was wanted than the limit: OOM kills of memory, throttled time of CPU."""
    cut: Doubles
    """What was wanted above the limit."""
    changes: Doubles

    @classmethod
    def empty(cls, rows: int) -> Account:
        """Nothing happened yet."""
        return cls(*(np.zeros(rows) for _ in range(7)))

    def count(self, wanted: Doubles, request: Doubles, limit: Doubles) -> None:
        """Book one point."""
        known = ~np.isnan(wanted)
        value, got = np.where(known, wanted, 0.0), np.where(known, np.fmin(wanted, limit), 0.0)
        self.points += known
        self.used += got
        self.idle += np.where(known, np.maximum(request - got, 0.0), 0.0)
        self.over_request += known & (wanted > request)
        self.over_limit += known & (wanted > limit)
        self.cut += np.where(known, np.maximum(value - got, 0.0), 0.0)

    def summary(self) -> Summary:
        """All rows together, each container counting the same."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return Summary(
                slack=float(np.nanmean(self.idle / self.used)),
                slack_of_total=float(self.idle.sum() / self.used.sum()),
                over_limit=int(self.over_limit.sum()),
                over_request_share=float(self.over_request.sum() / self.points.sum()),
                over_limit_share=float(self.over_limit.sum() / self.points.sum()),
                cut_share=float(np.nanmean(self.cut / (self.used + self.cut))),
                changes=int(self.changes.sum()),
            )


class Summary(NamedTuple):
    """Slack is requested and not used over used: the mean of the containers' ratios, and that of the totals."""

    slack: float
    slack_of_total: float
    over_limit: int
    over_request_share: float
    over_limit_share: float
    cut_share: float
    changes: int
