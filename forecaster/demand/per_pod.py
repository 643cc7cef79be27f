"""What one pod used: total demand over ready pods. Arrays are [workload, time], newest last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating]


def per_pod(total: Floats, pods: Floats) -> Floats:
    """Usage of one pod at each common instant: total demand over ready pods.

    Instants with no ready pod are gaps: a total without a pod is the remainder of a pod that is gone.
    """
    common = min(total.shape[1], pods.shape[1])
    used, ready = total[:, total.shape[1] - common :], pods[:, pods.shape[1] - common :]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ready >= 1, used / ready, np.nan)
