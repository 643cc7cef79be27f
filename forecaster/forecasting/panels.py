"""Kept history as panels for models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models import Panel

if TYPE_CHECKING:
    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId


def panel_of(window: Window, rows: slice, keys: tuple[str, ...]) -> Panel:
    """Some rows of a window; a view. The window names instants at which a bin ends, the panel those where it begins."""
    return Panel(window.values[rows], window.start - window.step, window.step, keys)


def key_of(id_: WorkloadId) -> str:
    """The name of a workload's series inside `models`; neither part can contain a slash."""
    return "/".join(id_)
