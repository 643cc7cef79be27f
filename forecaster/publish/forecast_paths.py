"""Forecasts step by step: as they lie in the table, and as `/api/v1` answers them."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  msgspec resolves the annotations when it encodes
from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.outlook import StepForecast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import WorkloadId


class QuantileView(msgspec.Struct, frozen=True, gc=False):
    """One quantile of a demand."""

    quantile: float
    value: float


class StepView(msgspec.Struct, frozen=True, gc=False):
    """The mean demand from `begin` to `until`."""

    begin: datetime
    until: datetime
    quantiles: tuple[QuantileView, ...]


class PathView(msgspec.Struct, frozen=True, gc=False):
    """The coming hour step by step. It is made every few cycles, so it has an age of its own."""

    made_at: datetime
    age_seconds: float
    model: str
    steps: tuple[StepView, ...]


class EncodedPaths:
    """Every workload's paths as bytes, encoded again only when they have changed."""

    def __init__(self) -> None:
        self._known: dict[WorkloadId, tuple[Mapping[Signal, StepForecast], bytes]] = {}

    def renew(self, paths: Mapping[WorkloadId, Mapping[Signal, StepForecast]]) -> None:
        """Take over what there is now."""
        before = self._known
        self._known = {
            id_: known if (known := before.get(id_)) and known[0] is mine else (mine, _encoded(mine))
            for id_, mine in paths.items()
        }

    def of(self, ids: Iterable[WorkloadId]) -> list[bytes]:
        """Return the paths of these workloads; empty where one has none."""
        known = self._known
        return [known[id_][1] if id_ in known else b"" for id_ in ids]


def decoded_paths(raw: bytes) -> dict[str, StepForecast]:
    """Decode the steps by signal."""
    return _decoder.decode(raw) if raw else {}


def path_view(path: StepForecast, now: datetime) -> PathView:
    """What is answered at `now`."""
    steps = (_step(path, path.begin + k * path.step, values) for k, values in enumerate(path.values))
    return PathView(path.made_at, max((now - path.made_at).total_seconds(), 0.0), path.model, tuple(steps))


def _step(path: StepForecast, begin: datetime, values: tuple[float, ...]) -> StepView:
    return StepView(begin, begin + path.step, tuple(map(QuantileView, path.levels, values)))


def _encoded(paths: Mapping[Signal, StepForecast]) -> bytes:
    return msgspec.json.encode({str(signal): path for signal, path in sorted(paths.items())})


_decoder = msgspec.json.Decoder(dict[str, StepForecast])
