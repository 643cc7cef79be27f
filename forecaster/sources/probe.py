"""What `forecaster doctor` asks a Prometheus: one check per thing that has to work, each with its remedy."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from forecaster.domain.report import Check
from forecaster.errors import SourceError, SourceUnavailable
from forecaster.sources.failures import Denied, shown_url
from forecaster.sources.probe_data import probe_data
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.wire import by_its_own_clock

if TYPE_CHECKING:
    from forecaster.sources.queries import Queries
    from forecaster.sources.settings import PrometheusSettings

_CLOCK_TOLERANCE = timedelta(seconds=30)
"""Half of a one-minute cycle: beyond it the newest minute is missed or is not there yet."""

_LIMITS = ("query.timeout", "query.max-samples", "query.lookback-delta", "storage.tsdb.retention.time")

_WHERE = "check prometheus.url, and that the address can be reached from here"
_WHAT = "prometheus.url must be the address of the Prometheus API, without /api/v1"
_WHO = "state bearer_token_file, username and password_file, or client_certificate_file"
_TIME = "run a time service on both machines"


def probe(settings: PrometheusSettings, queries: Queries, now: datetime) -> list[Check]:
    """Try the address first, and everything else only if somebody answers there. `now` is our own clock."""
    with closing(PrometheusSource(settings, queries)) as source:
        reached = _reached(source, settings, now)
        if reached[-1].name != "clock":
            return reached
        return [*reached, _version(source), *probe_data(source, whole_minute(now))]


def whole_minute(now: datetime) -> datetime:
    """The newest whole minute."""
    return datetime.fromtimestamp(now.timestamp() // 60 * 60, UTC)


def _reached(source: PrometheusSource, settings: PrometheusSettings, now: datetime) -> list[Check]:
    """Address, authentication and clock, as far as one small question tells; ends at the first that fails."""
    address = Check("address", ok=True, detail=f"{shown_url(settings.url)} answers")
    try:
        rows = source.rows(by_its_own_clock("time", "vector(time())"))
    except Denied as error:
        return [address, Check("authentication", ok=False, detail=str(error), remedy=_WHO)]
    except SourceUnavailable as error:
        return [Check("address", ok=False, detail=str(error), remedy=_WHERE)]
    except SourceError as error:
        return [Check("address", ok=False, detail=str(error), remedy=_WHAT)]
    return [address, Check("authentication", ok=True, detail="accepted"), _clock(rows[0].value - now.timestamp())]


def _clock(ahead_seconds: float) -> Check:
    detail = f"the server is {abs(ahead_seconds):.1f} s {'ahead' if ahead_seconds >= 0 else 'behind'}"
    return Check("clock", abs(ahead_seconds) <= _CLOCK_TOLERANCE.total_seconds(), detail, _TIME)


def _version(source: PrometheusSource) -> Check:
    version = source.client.status("buildinfo").get("version", "not stated")
    flags = source.client.status("flags")
    limits = [f"{name} {flags[name]}" for name in _LIMITS if name in flags]
    return Check("version", ok=True, detail=", ".join([version, *limits]))
