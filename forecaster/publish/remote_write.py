"""Offers and forecasts into a receiver of Prometheus remote write, beside the cycle.

    forecaster_demand{namespace, kind, workload, signal}                    the offer, as HPAs read it
    forecaster_replicas, forecaster_floor{namespace, kind, workload}        the offer, as HPAs read it
    forecaster_forecast_peak{namespace, kind, workload, signal, quantile}   forecast peak, to look at
    forecaster_workload_measured{namespace, kind, workload, signal}         total demand at its own time

What is not known makes no sample: no zero, no NaN.
"""

from __future__ import annotations

import struct
import threading
import time
from datetime import timedelta
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import requests

from forecaster.errors import StoreError
from forecaster.publish.values import sampled_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from forecaster.domain.decision import SignalView
    from forecaster.domain.outlook import PeakForecast
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.publish.settings import RemoteWriteSettings


FORECAST, MEASURED = "forecaster_forecast_peak", "forecaster_workload_measured"
AHEAD_AT_MOST = timedelta(minutes=10)
"""Prometheus refuses what is further ahead of its own clock (web/api: maxAheadTime)."""


class SeriesSample(NamedTuple):
    """One value at one time, and the labels of its series, sorted by name as the protocol wants them."""

    labels: tuple[tuple[str, str], ...]
    value: float
    at: datetime


def samples_of(cycle: OfferedCycle, settings: RemoteWriteSettings) -> Iterator[SeriesSample]:
    """Everything that is known of the workloads of a cycle."""
    for row, offer in zip(cycle.recommendations, cycle.offers, strict=True):
        namespace, kind, name = row.id
        workload = (("kind", kind), ("namespace", namespace), ("workload", name))
        for value in sampled_values(offer, row.at) if offer else ():
            which = (*workload, ("signal", value.signal)) if value.signal else workload
            yield SeriesSample(_labels(value.metric, which), value.value, row.at)
        for view in row.signals:
            yield from _looked_at(view, (*workload, ("signal", view.signal)), row.at, settings)


def _looked_at(
    view: SignalView, labels: tuple[tuple[str, str], ...], evaluated_at: datetime, settings: RemoteWriteSettings
) -> Iterator[SeriesSample]:
    """What is measured and forecast of a signal, whether it acts or not."""
    if view.measured is not None and view.measured_at is not None:
        yield SeriesSample(_labels(MEASURED, labels), view.measured, view.measured_at)
    for quantile, value, at in _forecasts(view, evaluated_at, settings):
        yield SeriesSample(_labels(FORECAST, (*labels, ("quantile", f"{quantile:g}"))), value, at)


def _forecasts(
    view: SignalView, evaluated_at: datetime, settings: RemoteWriteSettings
) -> Iterator[tuple[float, float, datetime]]:
    """Quantile, value and time of each forecast of a signal."""
    ahead = view.forecast
    if ahead is None:
        return
    at = ahead.begin if settings.timestamps == "target" else evaluated_at
    if at - evaluated_at > AHEAD_AT_MOST:
        return
    for quantile, value in _quantiles(ahead, every=settings.quantiles == "all").items():
        yield quantile, value, at


def _quantiles(ahead: PeakForecast, *, every: bool) -> dict[float, float]:
    others = {0.1: ahead.low, 0.5: ahead.median, 0.95: ahead.high} if every else {}
    return {**others, ahead.quantile: ahead.peak}


def _labels(name: str, rest: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return (("__name__", name), *sorted(rest))


SHOWN = 200
"""Characters of a refusal that are shown."""
HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "User-Agent": "forecaster",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}


class RemoteWriter:
    """`OfferReceiver` that sends to a receiver of remote write. One cycle is under way at a time; none waits behind it.

    Sending takes as long as it takes, up to the deadline, in a thread of its own; what went wrong with one table is
    said when the next one comes. Nothing is sent twice: the next table is newer.

    Raises:
        StoreError: Snappy is not installed.
    """

    def __init__(self, settings: RemoteWriteSettings) -> None:
        if find_spec("cramjam") is None:
            raise StoreError(
                "remote_write.url: Snappy is not installed; install kube-forecaster with its extra `remote-write`"
            )
        self._settings = settings
        self._session = requests.Session()
        self._session.verify = str(settings.ca_file) if settings.ca_file else True
        self._sending: threading.Thread | None = None
        self._fault = ""

    def receive(self, cycle: OfferedCycle) -> None:
        """Begin to send this cycle, unless the one before is still under way.

        Raises:
            StoreError: why the one before was not taken as a whole, or that this one is left out.
        """
        if self._sending is not None and self._sending.is_alive():
            raise StoreError(
                f"remote write of {cycle.at:%H:%M:%S}: left out, the receiver is still busy with the one before"
            )
        fault, self._fault = self._fault, ""
        self._sending = threading.Thread(target=self._send, args=[cycle], name="remote-write", daemon=True)
        self._sending.start()
        if fault:
            raise StoreError(f"remote write to {self._settings.url}: {fault}")

    def settle(self, timeout: float) -> None:
        """Let what is under way arrive, if that does not take longer."""
        if self._sending is not None:
            self._sending.join(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """The same, for the last time."""
        self.settle(timeout)
        self._session.close()

    def _send(self, cycle: OfferedCycle) -> None:
        """Runs in a thread, up to the first request that is not taken."""
        until = time.monotonic() + self._settings.deadline_seconds
        try:
            headers = self._headers()
            for batch in _batches(samples_of(cycle, self._settings), self._settings.series_per_request):
                if time.monotonic() > until:
                    self._fault = f"not finished within {self._settings.deadline_seconds:g} s; the rest was left out"
                    return
                self._post(write_request(batch), headers)
        except (OSError, requests.RequestException, _RefusedError) as error:
            self._fault = str(error)

    def _headers(self) -> dict[str, str]:
        own = {name: value.get_secret_value() for name, value in self._settings.headers.items()}
        file = self._settings.bearer_token_file
        token = {"Authorization": f"Bearer {file.read_text(encoding='ascii').strip()}"} if file else {}
        return {**HEADERS, **token, **own}

    def _post(self, body: bytes, headers: dict[str, str]) -> None:
        import cramjam  # noqa: PLC0415  an extra

        packed = bytes(cramjam.snappy.compress_raw(body))
        answer = self._session.post(
            self._settings.url,
            packed,
            headers=headers,
            timeout=self._settings.timeout_seconds,
            allow_redirects=False,
        )
        if not requests.codes.ok <= answer.status_code < requests.codes.multiple_choices:
            said = " ".join(answer.text[:SHOWN].split())
            raise _RefusedError(f"{answer.status_code} {said}".strip())


def _batches(samples: Iterator[SeriesSample], size: int) -> Iterator[list[SeriesSample]]:
    while batch := list(islice(samples, size)):
        yield batch


class _RefusedError(Exception):
    """The receiver said no; the text is what it said."""


# The protocol buffers of remote write 1.0, of which few fields are needed.
#
# WriteRequest { repeated TimeSeries timeseries = 1 }
# TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2 }
# Label        { string name = 1; string value = 2 }
# Sample       { double value = 1; int64 timestamp = 2, in milliseconds }


FIRST, SECOND = b"\x0a", b"\x12"
"""Field numbers 1 and 2 with a length."""
DOUBLE = struct.Struct("<Bd")
SEVEN_BITS = 0x7F


def write_request(samples: Iterable[SeriesSample]) -> bytes:
    """A request with one series for each sample."""
    return b"".join(_field(FIRST, _series(sample)) for sample in samples)


def _series(sample: SeriesSample) -> bytes:
    labels = b"".join([_label(name, value) for name, value in sample.labels])
    milliseconds = round(sample.at.timestamp() * 1000)
    return labels + _field(SECOND, DOUBLE.pack(0x09, sample.value) + b"\x10" + varint(milliseconds))


@lru_cache(maxsize=65_536)
def _label(name: str, value: str) -> bytes:
    return _field(FIRST, _field(FIRST, name.encode()) + _field(SECOND, value.encode()))


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that more come.

    >>> varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while number > SEVEN_BITS:
        found.append(number & SEVEN_BITS | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
