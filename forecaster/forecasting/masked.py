"""What of the last week is not learned from as it was measured: in numbers for metrics, in words for `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.demand.learned_from import Masked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from forecaster.domain.workload import WorkloadId

    Floats = NDArray[np.floating]


def shares_of(
    ids: Sequence[WorkloadId], why: NDArray[np.uint8], usage: Floats
) -> dict[WorkloadId, dict[Masked, float]]:
    """Part of the known columns of `why` and `usage` [workload, column], by reason; only where there is some."""
    known = np.maximum(np.count_nonzero(~np.isnan(usage), axis=1), 1).tolist()
    rows = np.flatnonzero(why.any(axis=1)).tolist()
    found = {row: np.bincount(why[row], minlength=max(Masked) + 1).tolist() for row in rows}
    return {
        ids[row]: {reason: counts[reason] / known[row] for reason in Masked if counts[reason]}
        for row, counts in found.items()
    }


def remarks_of(
    ids: Sequence[WorkloadId], masked: Mapping[WorkloadId, Mapping[Masked, float]], warm_up: Floats
) -> dict[WorkloadId, str]:
    """A sentence on each workload of which something is masked, or whose pods take `warm_up` [workload] to start."""
    said = {
        id_: [f"{sum(parts.values()):.1%} of the last week is masked ({_listed(parts)})"]
        for id_, parts in masked.items()
    }
    for row in np.flatnonzero(warm_up > 0).tolist():
        left_out = f"{5 * warm_up[row]:.2g} core-minutes that each new pod takes to start are left out"
        said.setdefault(ids[row], []).append(left_out)
    return {id_: "; ".join(parts) for id_, parts in said.items()}


def masked_now(ids: Sequence[WorkloadId], why: NDArray[np.uint8]) -> dict[WorkloadId, Masked]:
    """Whose newest column of `why` [workload, column] is masked."""
    return {ids[row]: Masked(why[row, -1]) for row in np.flatnonzero(why[:, -1:].any(axis=1)).tolist()}


def with_now(remarks: Mapping[WorkloadId, str], now: Mapping[WorkloadId, Masked]) -> Mapping[WorkloadId, str]:
    """The sentences, begun with what is masked now."""
    begun = {id_: f"now {why.words}: what is usual stands in" for id_, why in now.items()}
    return {**remarks, **{id_: "; ".join(filter(None, (said, remarks.get(id_)))) for id_, said in begun.items()}}


def _listed(parts: Mapping[Masked, float]) -> str:
    return ", ".join(f"{why.words} {part:.1%}" for why, part in parts.items())
