"""The forms of output; by itself, so that the command line can name them without loading any."""

from __future__ import annotations

from enum import StrEnum


class Output(StrEnum):
    """How recommendations are printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


class AdviceOutput(StrEnum):
    """How advice is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PATCHES = "patches"
    """YAML documents, one strategic-merge patch for each workload."""
    KUSTOMIZE = "kustomize"
    """An overlay in a folder."""


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
