"""The forms of output; by itself, so that the command line can name them without loading any."""

from __future__ import annotations

from enum import StrEnum


class Output(StrEnum):
    """Output formats of commands with a table; `-o`."""

    TABLE = "table"
    WIDE = "wide"
    """All columns, however wide the terminal is."""
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"
    """NAMESPACE/NAME of each workload, one a line."""


class DocumentOutput(StrEnum):
    """Output formats of commands that answer in sentences."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


class TuneOutput(StrEnum):
    """Output formats of proposals."""

    YAML = "yaml"
    """A fragment of the settings, with comments."""
    JSON = "json"
    NAME = "name"
    """Names of the workloads with a proposal."""


class AdviceOutput(StrEnum):
    """Output formats of advice: the usual ones, and the input of `kubectl apply`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"
    PATCHES = "patches"
    """YAML documents, one strategic-merge patch for each workload."""
    KUSTOMIZE = "kustomize"
    """An overlay in a folder."""
    HELM_VALUES = "helm-values"
    """An overlay of values in a file, and what it changes as Markdown."""
    MARKDOWN = "md"
    """All columns and the totals as Markdown, for the text of a pull request."""


class NodesOutput(StrEnum):
    """Output formats of node forecasts: the usual ones, and manifests of headroom."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"
    """Names of the pools."""
    HEADROOM = "headroom"
    """Manifests of headroom pods."""
    CAPACITY_BUFFER = "capacitybuffer"
    """A PodTemplate and a CapacityBuffer for each pool."""
    METRICS = "metrics"
    """The text format of Prometheus."""
