"""What the demo plays on: recorded load behind an endpoint on loopback, and the service's own cycle that reads it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from forecaster.app.compose import single_cycle
from forecaster.config.settings import Settings, parse
from forecaster.domain.window import MINUTE
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.recorded import load_recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from forecaster.cycle.run import Cycle
    from forecaster.domain.policies import Policies
    from forecaster.sources.recording import Fleet, Recording

HISTORY = timedelta(days=11)
"""How much the service can look back on when the play begins: beyond what the shipped prior has learned from."""

REQUESTS_METRIC = "http_requests_per_second"
"""The HPAs of the recorded cluster know the request rate by this name."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A running endpoint, the pods that it shows, and a cycle that reads it."""

    url: str
    recording: Recording
    fleet: Fleet
    policies: Policies
    cycle: Cycle
    begin: datetime


@contextmanager
def staged() -> Iterator[Stage]:
    """Everything set up; the endpoint stops when the block ends, however it ends."""
    recording = load_recording()
    begin = recording.start - MINUTE + HISTORY
    fleet = recording.fleet(begin)
    with EmbeddedPrometheus(recording, Settings().queries, fleet) as endpoint:
        settings = settings_for(endpoint.url)
        yield Stage(endpoint.url, recording, fleet, settings.policies, single_cycle(settings, begin), begin)


def settings_for(url: str) -> Settings:
    """What a user would write for this cluster: the address, and the name of the request rate; the rest is default."""
    policy = {"horizontal": {"requests_metric": REQUESTS_METRIC}}
    return parse({"prometheus": {"url": url}, "policy": policy}, "demo")
