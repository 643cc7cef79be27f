"""Count the modules of ours that the service imports, and those that one sample passes on its way to an HPA.

The way is counted by a profiler on the service as `forecaster run` composes it: one steady cycle over one workload,
and one answer of the external metrics API from the table that the cycle published. A module counts when a function of
it is called.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from forecaster.publish.reader import TableReader
from forecaster.serving.app import create_app
from tests.support.asgi import Client
from tests.support.builders import after, workload
from tests.support.composed import composed, recorded_cluster, table_path, tick

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

ROOT = Path(__file__).parents[2]
MOST = 87
"""Modules on the way; the goal of the house is 75. Lower it with each room that becomes smaller."""
MOST_IMPORTED = 205
"""Modules that `forecaster run` imports before it knows what its settings ask for."""
RUN = "import forecaster.__main__, forecaster.cli.run, forecaster.app.serve, sys; print(*sys.modules)"
ANSWER = (
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/forecaster_demand?labelSelector=workload%3Dweb,signal%3Dcpu"
)


def test_a_sample_passes_few_modules(tmp_path: Path) -> None:
    with recorded_cluster([workload("web")]) as cluster, composed(cluster, tmp_path) as service:
        for minute in range(2):
            tick(service, after(minute))
        reader = TableReader(table_path(tmp_path), lambda: after(2))
        client = Client(create_app(reader))
        with called_modules() as modules:
            tick(service, after(2))
            reader.refresh()
            answer = client.get(ANSWER)
    assert answer.json()["items"], answer.text
    assert len(modules) <= MOST, f"{len(modules)} modules:\n" + "\n".join(sorted(modules))


def test_the_service_imports_few_modules_and_no_command_but_its_own() -> None:
    names = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True).stdout.split()
    own = {name for name in names if name.partition(".")[0] in {"forecaster", "models"}}
    assert len(own) <= MOST_IMPORTED
    commands = {name for name in own if name.startswith("forecaster.cli.")}
    assert commands == {"forecaster.cli.run", "forecaster.cli.options", "forecaster.cli.streams"}
    assert "forecaster.replay.engine" not in own


@contextmanager
def called_modules() -> Iterator[set[str]]:
    """Files of forecaster and models in which a function is called while the block lasts, in every thread."""
    files: set[str] = set()
    own = (str(ROOT / "forecaster"), str(ROOT / "models"))

    def profile(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        # The body of a module that is imported meanwhile is no call on the way.
        if event == "call" and name.startswith(own) and frame.f_code.co_name != "<module>":
            files.add(str(Path(name).relative_to(ROOT)))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
