"""Every notebook on a week of a real Prometheus: one variable says where it is.

`./dev test --long` runs all, any other run those that take seconds; on recorded load all are run each time.
"""

from __future__ import annotations

import re
import runpy
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pytest
import yaml

from forecaster.config.settings import parse
from notebooks.render import HERE, NAMES
from tests.support.prometheus import RealPrometheus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.conftest import FilledWeek
    from tests.support.prometheus import Binaries


MINUTES_LONG = {"7_write_your_own_model"}
LAST = re.compile(r"^(forecast|overrides|policy):\n(?!.*^(forecast|overrides|policy):\n).*", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def url(prometheus_binaries: Binaries, filled_week: FilledWeek) -> Iterator[str]:
    with RealPrometheus(prometheus_binaries, filled_week.data) as server:
        yield server.url


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests by the names of the notebooks."""
    names = [name for name in NAMES if name not in MINUTES_LONG or metafunc.config.getoption("--long")]
    metafunc.parametrize("name", names)


@pytest.mark.prometheus
@pytest.mark.slow
@pytest.mark.long
def test_a_notebook_ends_with_settings_for_what_prometheus_has(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The notebook is run as the script that it is made of: a kernel for each would take as long as its work."""
    monkeypatch.setenv("FORECASTER__PROMETHEUS__URL", url)
    monkeypatch.setenv("FORECASTER__QUERIES__NAMESPACES", "shop")
    monkeypatch.syspath_prepend(HERE)
    monkeypatch.chdir(HERE)
    mpl.use("agg")
    left = runpy.run_path(str(HERE / f"{name}.py"))
    fragment = LAST.search(capsys.readouterr().out)
    assert fragment
    parse(yaml.safe_load(fragment[0]), name)
    assert list(workloads(left))
    assert [workload for workload in workloads(left) if not workload.startswith("shop/")] == []


def workloads(left: dict[str, Any]) -> Iterator[str]:
    """Names of the workloads that a notebook looked at."""
    if "panel" in left:
        yield from left["panel"].keys
    elif "workload" in left:
        yield left["workload"]
    else:
        yield from (str(workload.id) for workload in left["load"].workloads)
