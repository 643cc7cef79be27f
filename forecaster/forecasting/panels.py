"""Kept history as panels for models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models import Panel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from forecaster.demand.fresh import Fresh
    from forecaster.domain.workload import WorkloadId


def panel_of(history: Fresh, values: NDArray[np.floating], keys: tuple[str, ...]) -> Panel:
    """Some rows of a history, or what was made of them.

    The window names instants at which a bin ends, the panel those where it begins. Its bins carry the names of the
    clock's cut also when they end up to four minutes later: models tell times by their differences, and a panel that
    changed its phase every minute would be another one to them.
    """
    weeks = history.weeks
    return Panel(values, weeks.start - weeks.step, weeks.step, keys)


def key_of(id_: WorkloadId) -> str:
    """The name of a workload's series inside `models`; neither part can contain a slash."""
    return "/".join(id_)
