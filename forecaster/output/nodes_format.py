"""The forms in which node forecasts are printed; by itself, so that naming them loads nothing else."""

from __future__ import annotations

from enum import StrEnum


class NodesOutput(StrEnum):
    """How node forecasts are printed."""

    TABLE = "table"
    JSON = "json"
    HEADROOM = "headroom"
    """Manifests of headroom pods."""
    WATCHER = "watcher"
    """The JSON of load-watcher, for load-aware schedulers."""
    METRICS = "metrics"
    """The text format of Prometheus."""
