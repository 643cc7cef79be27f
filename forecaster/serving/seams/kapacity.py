"""Kapacity's result ConfigMap: replicas at coming instants, for an IHPA whose algorithm is an external job. Pure.

We have no right to write it. `curl | kubectl apply -f -` by whoever has one makes us a source of its portrait.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from forecaster.serving.seams.deciding import deciding

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.publish.views import RecommendationView
    from forecaster.serving.values import Moment, Value

UNTIL_AT_LEAST = timedelta(minutes=5)
"""A result that has expired is none to Kapacity: this much for whoever carries it over once a minute."""


class Metadata(msgspec.Struct, frozen=True):
    """Where it belongs."""

    name: str
    namespace: str


class ConfigMap(msgspec.Struct, frozen=True, rename={"api_version": "apiVersion"}):
    """A manifest."""

    api_version: str
    kind: str
    metadata: Metadata
    data: dict[str, str]


def config_map(portrait: Metadata, value: Value, view: RecommendationView, moment: Moment) -> ConfigMap:
    """The count now, and from the beginning of the forecast window on; it expires with that window."""
    counts, until = {_epoch(moment.now): round(value.value)}, moment.now + UNTIL_AT_LEAST
    ahead = deciding(view)
    if ahead is not None:
        counts[_epoch(ahead.forecast.begin)] = max(round(value.value), ahead.replicas)
        until = max(until, ahead.forecast.until)
    data = {
        "type": "TimeSeries",
        "expireTime": f"{until:%Y-%m-%dT%H:%M:%SZ}",
        "timeSeries": msgspec.json.encode(counts).decode(),
    }
    return ConfigMap("v1", "ConfigMap", Metadata(f"{portrait.name}-result", portrait.namespace), data)


def _epoch(at: datetime) -> str:
    return str(int(at.timestamp()))
