"""Offers and forecasts into a receiver of Prometheus remote write, beside the cycle.

    forecaster_demand{namespace, kind, workload, signal}                    the offer, as HPAs read it
    forecaster_replicas, forecaster_floor{namespace, kind, workload}        the offer, as HPAs read it
    forecaster_forecast_peak{namespace, kind, workload, signal, quantile}   forecast peak, to look at
    forecaster_workload_measured{namespace, kind, workload, signal}         total demand at its own time

What is not known makes no sample: no zero, no NaN.
"""

from __future__ import annotations

import math
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from importlib.util import find_spec
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import requests
from requests.adapters import HTTPAdapter

from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError, masked, shown_url
from forecaster.horizontal.columns import Floats, rows_before, taken
from forecaster.kube.connections import timed
from forecaster.publish.publisher import OfferedCycle
from forecaster.publish.settings import RemoteWriteSettings
from forecaster.publish.values import sampled_values

FORECAST, MEASURED = "forecaster_forecast_peak", "forecaster_workload_measured"
MAX_AHEAD = timedelta(minutes=10)
"""Prometheus refuses samples further ahead of its own clock (web/api: maxAheadTime)."""


class SeriesSample(NamedTuple):
    """One value at one time, and the labels of its series, sorted by name as the protocol wants them."""

    labels: tuple[tuple[str, str], ...]
    value: float
    at: datetime


class ForecastInstants:
    """Instants of the forecasts that are written. A receiver refuses a whole request for one series that goes back."""

    def __init__(self) -> None:
        self._ids: tuple[WorkloadId, ...] = ()
        self._latest: Floats = np.zeros(0)

    def of(self, cycle: OfferedCycle, timestamps: str) -> Floats:
        """Return epoch seconds [row]; NaN where they are too far ahead, or no later than those of an earlier cycle."""
        lead = cycle.decided.lead if timestamps == "target" else np.zeros(len(cycle.ids))
        at, before = cycle.at.timestamp() + lead, taken(self._latest, rows_before(self._ids, cycle.ids), -np.inf)
        at = np.where((lead <= MAX_AHEAD.total_seconds()) & (at > before), at, np.nan)
        self._ids, self._latest = cycle.ids, np.fmax(at, before)
        return at


def samples_of(
    cycle: OfferedCycle, settings: RemoteWriteSettings, instants: ForecastInstants
) -> Iterator[SeriesSample]:
    """Yield every known sample of the workloads of a cycle, from its columns: records cover only the cycle."""
    forecast_at = instants.of(cycle, settings.timestamps).tolist()
    quantiles = FORECASTS if settings.quantiles == "all" else FORECASTS[:1]
    for row, (namespace, kind, name) in enumerate(cycle.ids):
        workload = (("kind", kind), ("namespace", namespace), ("workload", name))
        offer = cycle.offer(row)
        for value in sampled_values(offer, cycle.at) if offer else ():
            which = (*workload, ("signal", value.signal)) if value.signal else workload
            yield SeriesSample(_labels(value.metric, which), value.value, cycle.at)
        for plane, signal in enumerate(cycle.decided.signals):
            number = partial(_number, cycle.columns, plane, row)
            labels = (*workload, ("signal", signal))
            measured, at = number("measured"), number("measured_at")
            if not math.isnan(measured) and not math.isnan(at):
                yield SeriesSample(_labels(MEASURED, labels), measured, datetime.fromtimestamp(at, UTC))
            if not math.isnan(forecast_at[row]):
                yield from _forecasts(number, labels, datetime.fromtimestamp(forecast_at[row], UTC), quantiles)


def _number(columns: Mapping[str, Any], signal: int, row: int, name: str) -> float:
    return float(columns[name][signal, row])


def _forecasts(
    number: Callable[[str], float], labels: Labels, at: datetime, columns: Sequence[tuple[str, str]]
) -> Iterator[SeriesSample]:
    """Yield each quantile of the forecast of a signal."""
    values_by_level = {}
    for column, level in reversed(columns):
        value = number(column)
        if not math.isnan(value):
            values_by_level[level or f"{number('forecast_quantile'):g}"] = value
    for level, value in values_by_level.items():
        yield SeriesSample(_labels(FORECAST, (*labels, ("quantile", level))), value, at)


FORECASTS = (("peak", ""), ("low", "0.1"), ("median", "0.5"), ("high", "0.95"))
"""Columns of a forecast, and the quantiles that they are; the peak is that of the policy."""
Labels = tuple[tuple[str, str], ...]


def _labels(name: str, rest: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return (("__name__", name), *sorted(rest))


ANSWER_SHOWN = 200
"""Characters of a refusal that are shown."""
ANSWER_READ = 1 << 16
"""Bytes of an answer that are read."""
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

    Raises StoreError where Snappy is not installed.
    """

    def __init__(self, settings: RemoteWriteSettings) -> None:
        if find_spec("cramjam") is None:
            raise StoreError(
                "remote_write.url: Snappy is not installed; install kube-forecaster with its extra `remote-write`"
            )
        self._settings = settings
        self._session = requests.Session()
        self._session.mount(settings.url, timed(HTTPAdapter()))
        self._sending: threading.Thread | None = None
        self._fault = ""
        self._instants = ForecastInstants()

    def receive(self, cycle: OfferedCycle) -> None:
        """Begin to send this cycle, unless the one before is still under way.

        Raises StoreError: the one before was not taken as a whole, or this one is left out.
        """
        if self._sending is not None and self._sending.is_alive():
            raise StoreError(
                f"remote write of {cycle.at:%H:%M:%S}: left out, the receiver is still busy with the one before"
            )
        fault, self._fault = self._fault, ""
        self._sending = threading.Thread(target=self._send, args=[cycle], name="remote-write", daemon=True)
        self._sending.start()
        if fault:
            raise StoreError(f"remote write to {shown_url(self._settings.url)}: {fault}")

    def settle(self, timeout: float) -> None:
        """Let writes under way finish, up to `timeout` seconds."""
        if self._sending is not None:
            self._sending.join(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """`settle`, and close the connections."""
        self.settle(timeout)
        self._session.close()

    def _send(self, cycle: OfferedCycle) -> None:
        """Runs in a thread, up to the first request that is not taken."""
        until = time.monotonic() + self._settings.deadline_seconds
        try:
            headers = self._headers()
            samples = samples_of(cycle, self._settings, self._instants)
            while batch := list(islice(samples, self._settings.series_per_request)):
                if time.monotonic() > until:
                    self._fault = f"not finished within {self._settings.deadline_seconds:g} s; the rest was left out"
                    return
                self._post(write_request(batch), headers)
        except (OSError, ValueError, requests.RequestException, StoreError) as error:
            self._fault = _innermost_reason(error)

    def _headers(self) -> dict[str, str]:
        own = {name: value.get_secret_value() for name, value in self._settings.headers.items()}
        file = self._settings.bearer_token_file
        token = {"Authorization": f"Bearer {file.read_text(encoding='ascii').strip()}"} if file else {}
        return {**HEADERS, **token, **own}

    def _post(self, body: bytes, headers: dict[str, str]) -> None:
        import cramjam  # noqa: PLC0415  an extra

        packed = bytes(cramjam.snappy.compress_raw(body))
        with self._session.post(
            self._settings.url,
            packed,
            headers=headers,
            verify=str(self._settings.ca_file or "") or True,  # a session's own is overruled by REQUESTS_CA_BUNDLE
            timeout=self._settings.timeout_seconds,
            allow_redirects=False,
            stream=True,
        ) as answer:
            text = next(answer.iter_content(ANSWER_READ), b"").decode(errors="replace")
        if not requests.codes.ok <= answer.status_code < requests.codes.multiple_choices:
            reason = " ".join(masked(text, headers)[:ANSWER_SHOWN].split())
            raise StoreError(f"{answer.status_code} {reason}".strip())


def _innermost_reason(error: BaseException) -> str:
    """The innermost reason: the layers above it name the address, which may carry secrets, or a header's value."""
    if isinstance(error, (UnicodeError, requests.exceptions.InvalidHeader)):
        return "the token or a header has characters that no header may have"
    while deeper := error.__cause__ or error.__context__:
        error = deeper
    return str(error) or type(error).__name__


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
    encoded = bytearray()
    while number > SEVEN_BITS:
        encoded.append(number & SEVEN_BITS | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
