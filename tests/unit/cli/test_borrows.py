"""A new workload borrows from others, which are read only with `--donors`; without it a line says so."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from typer.testing import CliRunner

from forecaster.cli import app
from forecaster.cli.once import borrows
from forecaster.domain.signal import CPU
from forecaster.domain.window import DAY, FIVE_MINUTES, Window
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import load_recording
from tests.support.builders import NOON
from tests.support.recommendations import workload_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.cycle.run import Cycle

WEB, API = workload_id("web"), workload_id("api")


def cycle(days_kept: float, days_of_web: float) -> Cycle:
    """A cycle with a history of `days_of_web` days for the web, and of all kept days for the api."""
    columns, own = (int(days * (DAY / FIVE_MINUTES)) for days in (days_kept, days_of_web))
    values = np.ones((2, columns), np.float32)
    values[0, : columns - own] = np.nan
    weeks = Window((WEB, API), NOON, FIVE_MINUTES, values)
    return SimpleNamespace(history=SimpleNamespace(signals=(CPU,), window=lambda *_: weeks))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("days_kept", "own", "expected"), [(14, 1, True), (14, 3, False), (14, 0, False), (2, 1, False)]
)
def test_only_what_has_less_than_two_days_of_its_own_where_others_have_more(
    days_kept: float, own: float, *, expected: bool
) -> None:
    assert borrows(cycle(days_kept, own), {WEB}) is expected


def test_a_workload_with_a_past_needs_no_other() -> None:
    assert not borrows(cycle(14, 1), {API})


@pytest.fixture(scope="module")
def young() -> Iterator[list[str]]:
    """Options of a Prometheus with the recorded load on its first day."""
    recording = load_recording()
    at = recording.start + timedelta(hours=20)
    with EmbeddedPrometheus(recording, Queries(), recording.fleet(at)) as server:
        yield ["--prometheus", server.url, "--at", at.isoformat(), "-o", "json"]


@pytest.mark.parametrize("donors", [False, True])
def test_one_workload_costs_one_workload_unless_donors_are_asked_for(young: list[str], *, donors: bool) -> None:
    done = CliRunner().invoke(app, ["once", "shop/search", *young, *(["--donors"] if donors else [])])
    assert [row["name"] for row in json.loads(done.stdout)["recommendations"]] == ["search"]
    assert ("which were not read; --donors reads the whole fleet" in done.stderr) is not donors


def test_where_the_whole_fleet_is_read_no_option_is_advised_that_reads_no_more(young: list[str]) -> None:
    done = CliRunner().invoke(app, ["once", *young])
    assert (done.exit_code, "--donors" in done.stderr) == (0, False)
