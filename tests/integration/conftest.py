from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support.cluster_week import Week, fill_week
from tests.support.prometheus import Binaries, find_binaries

if TYPE_CHECKING:
    from pathlib import Path


class FilledWeek(NamedTuple):
    """A data folder that holds a week of a cluster, and what went into it."""

    data: Path
    week: Week


@pytest.fixture(scope="session")
def prometheus_binaries() -> Binaries:
    """Tests that ask for this carry the marker `prometheus`."""
    found = find_binaries()
    if found is None:
        pytest.skip(
            "no prometheus and promtool: run .ci/prometheus, install them, or set PROMETHEUS_BIN to their folder"
        )
    return found


@pytest.fixture(scope="session")
def filled_week(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> FilledWeek:
    """The week before the present minute, so that programs that read the clock find it fresh. Takes about 20 s."""
    data = tmp_path_factory.mktemp("week") / "data"
    now = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=1)
    return FilledWeek(data, fill_week(data, now, prometheus_binaries))
