"""Where pods are, as far as a policy wants to survive the loss of it: a share a row, and a line for what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecaster.cycle.rows import Rows
    from forecaster.domain.workload import Spread


class PodSpread(NamedTuple):
    """Shares [row] of pods in the fullest node or zone, and what is not known or cannot be survived."""

    shares: NDArray[np.float64]
    faults: Sequence[str] = ()


def pod_spread(rows: Rows) -> PodSpread:
    """The spread of each row whose policy wants to survive something; 0 of all others."""
    shares, faults = np.zeros(len(rows.ids)), []
    for row in rows.standing.surviving:
        workload, domain = rows.workloads[row], rows.rows[row].policy.horizontal.survive
        shares[row] = share = lost_share(workload.spread, domain)
        if workload.ready_replicas and (why := _fault(share, domain)):
            faults.append(f"{workload.id}: survive {domain}: {why}")
    return PodSpread(shares, faults)


def lost_share(spread: Spread, domain: str) -> float:
    """Share of the pods that are lost with the fullest domain; NaN where that is not known, 0 of none."""
    share = {"node": spread.node, "zone": spread.zone}.get(domain, 0.0)
    return np.nan if share is None else share


def _fault(share: float, domain: str) -> str:
    """Why the loss cannot be survived, and what helps; empty where it can."""
    if np.isnan(share):
        label = " (topology.kubernetes.io/zone)" if domain == "zone" else ""
        return f"it is not known in which {domain}{label} its pods are, nothing is added; live facts tell it"
    if share < 1.0:
        return ""
    return f"all its pods are in one {domain}, and one more is added; topologySpreadConstraints would spread them"
