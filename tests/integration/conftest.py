from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support.cluster_week import Week, fill_week, played_week
from tests.support.evidence import evidence_once
from tests.support.kubeconfigs import kubeconfigs_once
from tests.support.prometheus import Binaries, find_binaries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


__all__ = ["evidence_once", "kubeconfigs_once"]


class FilledWeek(NamedTuple):
    """A data folder that holds a week of a cluster, and what went into it."""

    data: Path
    week: Week


@pytest.fixture(scope="session")
def prometheus_binaries() -> Binaries:
    """The binaries of Prometheus; tests with this fixture carry the marker `prometheus`."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(
            "no prometheus and promtool: run .ci/prometheus, install them, or set PROMETHEUS_BIN to their folder"
        )
    return binaries


@pytest.fixture(scope="session")
def filled_week(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> FilledWeek:
    """The week before the present minute, so that programs that read the clock find it fresh.

    Filled once, in about 20 s, also when several processes run the tests; each gets a folder of its own with links to
    the same blocks, because a Prometheus wants its folder for itself.
    """
    own = tmp_path_factory.mktemp("week") / "data"
    common = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        common = common.parent
    with _one_at_a_time(common / "week.lock"):
        stamp = common / "week.txt"
        if not stamp.exists():
            now = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=1)
            fill_week(common / "week-blocks", now, prometheus_binaries)
            stamp.write_text(now.isoformat(), encoding="utf-8")
        now = datetime.fromisoformat(stamp.read_text(encoding="utf-8"))
    shutil.copytree(common / "week-blocks", own, copy_function=os.link)
    return FilledWeek(own, played_week(now))


@contextmanager
def _one_at_a_time(lock: Path) -> Iterator[None]:
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
