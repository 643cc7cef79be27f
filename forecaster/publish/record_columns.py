"""Numbers of records beside those of offers: the count after each clamp, and what each target asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.horizontal.clamps import CLAMPS
from forecaster.horizontal.codes import KNOWN, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    from forecaster.horizontal.decide import Decisions
    from forecaster.publish.decided import DecidedFleet


def record_columns(fleet: DecidedFleet) -> Mapping[str, NDArray[Any]]:
    """By the names that they have in the table, [plane, row].

    `counts` has the reactive count and those after each clamp; `asked`, `foreseen`, `unseen` and `age` have a plane for
    each target that is usable, in the order of a row.
    """
    rows, targets = len(fleet.ids), max((len(group.inputs.rules.kinds) for _, group in fleet.groups), default=0)
    columns: dict[str, NDArray[Any]] = {
        "counts": np.full((1 + len(CLAMPS), rows), UNKNOWN, np.int32),
        "by_forecast": np.full((1, rows), UNKNOWN, np.int32),
        "outage_until": np.zeros((1, rows)),
        "asked": np.full((targets, rows), UNKNOWN, np.int32),
        "foreseen": np.full((targets, rows), UNKNOWN, np.int32),
        "unseen": np.full((targets, rows), KNOWN, np.int8),
        "age": np.full((targets, rows), np.nan),
    }
    for positions, group in fleet.groups:
        _put_group(columns, positions, group)
    return columns


def _put_group(columns: Mapping[str, NDArray[Any]], positions: NDArray[np.intp], group: Decisions) -> None:
    """Put the rows of a group into the columns."""
    for plane, count in enumerate((group.reactive, *group.counts)):
        columns["counts"][plane, positions] = count
    columns["by_forecast"][0, positions] = group.forecast
    columns["outage_until"][0, positions] = group.state.until
    for target in range(len(group.inputs.rules.kinds)):
        columns["asked"][target, positions] = group.proposals.reactive[target]
        columns["foreseen"][target, positions] = group.proposals.forecast[target]
        columns["unseen"][target, positions] = group.unseen[target]
        columns["age"][target, positions] = group.inputs.age[target]
