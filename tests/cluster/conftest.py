"""The control plane for all tests of this folder. They carry the marker `cluster`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forecaster.app.serve import table_path
from tests.support.control_plane.acting import watched
from tests.support.control_plane.binaries import CORE, why_not
from tests.support.control_plane.deployed import NAMESPACE, Deployed
from tests.support.control_plane.plane import ControlPlane
from tests.support.kubeconfigs import kubeconfigs_once
from tests.support.tables import publish
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.app.child import ServingProcess
    from forecaster.sources.live import LiveCluster

__all__ = ["kubeconfigs_once"]
LONG = {"test_story.py", "test_bad_day.py", "test_outages.py", "test_rights.py", "test_replicas.py"}
"""Files that begin first, so that of two workers none is left alone with one of them at the end."""
_numbers = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(folder):
            item.add_marker(pytest.mark.cluster)
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane of all tests of a process: ready in four seconds, about 540 MB. Each test has a namespace."""
    absent = why_not(*CORE)
    if absent:
        pytest.skip(absent)
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    with ControlPlane(tmp_path_factory.mktemp("cluster"), services=f"127.{96 + worker % 32}") as running:
        yield running


def unbind(plane: ControlPlane) -> None:
    """Delete the rights of components, which earlier modules applied."""
    for kind in ("clusterrolebinding", "rolebinding"):
        bindings = plane.kubectl("get", kind, f"--namespace={NAMESPACE}", "--output=name").split()
        own = [name for name in bindings if name.partition("/")[2].startswith("forecaster")]
        if own:
            plane.kubectl("delete", *own, f"--namespace={NAMESPACE}")


@pytest.fixture(scope="module")
def deployed(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """`deploy/base`, with a table of one workload, `shop/web`, and a certificate from its own Job's command."""
    unbind(control_plane)
    folder = tmp_path_factory.mktemp("deployed")
    table = publish(table_path(folder), at=datetime.now(UTC), mode="publish")
    built = Deployed(control_plane, folder, table=table)
    built.run_certificates()
    yield built
    built.remove()


@pytest.fixture(scope="module")
def serving(deployed: Deployed) -> Iterator[ServingProcess]:
    """The real serving process where its pod would be, registered and available."""
    with contextmanager(deployed.serve)() as process:
        deployed.cluster.until_available()
        yield process


@pytest.fixture(scope="module")
def live(plane: ControlPlane) -> Iterator[LiveCluster]:
    """Live facts that the account of `deploy/base` watches, with the components that the module's `plane` applied."""
    with watched(plane.account("forecaster", NAMESPACE)) as cluster:
        yield cluster


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A new namespace, in which pods are admitted. It goes with its test: each HPA is looked after every second."""
    name = f"test-{next(_numbers)}"
    control_plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    # Without its account, which comes a moment later, the API server refuses every pod.
    wait_until(lambda: control_plane.api.has("ServiceAccount", "default", name), goal=f"the account of {name}")
    yield name
    control_plane.api.delete("Namespace", name)
