"""The real serving process beside a computing one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import pytest

from forecaster.app.child import NOT_STARTED, ChildExit, ServingProcess, SupervisedChild
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.errors import StoreError
from forecaster.publish.table_file import TableFile
from forecaster.serving.options import Address
from tests.support.decided_records import record_publisher
from tests.support.published import fleet_of_one
from tests.support.recommendations import NOON, recommendation, workload_id
from tests.support.tables import publish
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANY_PORT = Address("127.0.0.1", 0)
FORBIDDEN = {"numpy", "pandas", "pydantic", "models", "sqlalchemy", "typer", "rich", "structlog", "requests"}


class Served:
    """A running serving process and what became of its children."""

    def __init__(self, table: Path) -> None:
        self.deaths: list[ChildExit] = []
        self.died = threading.Event()
        self.process = ServingProcess(table, ANY_PORT, on_death=self._note)

    def _note(self, death: ChildExit) -> None:
        self.deaths.append(death)
        self.died.set()

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://{self.process.address}{path}", timeout=PATIENCE)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(publish(tmp_path / "table"))
    served.process.start()
    yield served
    served.process.stop()


def test_it_answers_what_is_published_and_stops_in_order(served: Served) -> None:
    answer = served.get("/api/v1/recommendations/shop/web")
    assert answer.json()["recommendation"]["replicas"]["recommended"] == 5
    served.process.stop()
    assert served.deaths == []
    with pytest.raises(httpx.ConnectError):
        served.get("/healthz")


def test_a_new_table_is_served_soon(served: Served, tmp_path: Path) -> None:
    assert served.get("/api/v1/recommendations/shop/api").status_code == 404
    publish(tmp_path / "table", recommendation(workload_id("api")))
    wait_until(lambda: served.get("/api/v1/recommendations/shop/api").status_code == 200, goal="the new table")


def test_a_killed_process_is_replaced_and_clients_only_wait(served: Served) -> None:
    served.get("/healthz")
    pid = served.process.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert served.died.wait(PATIENCE)
    assert served.get("/healthz").status_code == 200
    assert served.deaths == [ChildExit(-signal.SIGKILL, 0.2)]
    assert served.process.pid != pid


def test_a_child_that_cannot_be_started_is_tried_again_until_it_can(tmp_path: Path) -> None:
    program = tmp_path / "program"

    def write(text: str) -> None:
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)

    def note_death(death: ChildExit) -> None:
        deaths.append(death.code)
        if len(deaths) == 1:
            program.unlink()
        else:
            write("exec sleep 60")

    deaths: list[int] = []
    write("exit 3")
    child = SupervisedChild("odd", [str(program)], on_death=note_death)
    child.start()
    wait_until(lambda: len(deaths) == 2 and child.pid is not None, goal="the child that can be started again")
    child.stop()
    assert deaths == [3, NOT_STARTED]


def test_it_is_stopped_while_waiting_for_a_restart(served: Served) -> None:
    served.get("/healthz")
    assert served.process.pid is not None
    os.kill(served.process.pid, signal.SIGKILL)
    assert served.died.wait(PATIENCE)
    served.process.stop()
    with pytest.raises(httpx.ConnectError):
        served.get("/healthz")


def test_a_taken_address_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address(*taken.getsockname())
        with pytest.raises(
            StoreError, match=f"cannot listen on {address}: Address already in use; state another port by serving.port"
        ):
            ServingProcess(tmp_path / "table", address).start()


def test_it_ends_with_its_parent_however_that_dies(tmp_path: Path) -> None:
    parent = textwrap.dedent(f"""
        import pathlib, sys, time
        from forecaster.serving.options import Address
        from forecaster.app.child import ServingProcess
        process = ServingProcess(pathlib.Path({str(tmp_path / "table")!r}), Address("127.0.0.1", 0))
        process.start()
        print(process.address.port, flush=True)
        time.sleep(60)
    """)
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as computing:
        assert computing.stdout is not None
        port = int(computing.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
            computing.kill()  # the connection ends only if the child does
            connection.settimeout(PATIENCE)
            while connection.recv(1000):
                pass


def test_it_loads_nothing_that_computes() -> None:
    program = "import sys, forecaster.serving.__main__; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert FORBIDDEN.isdisjoint(loaded)


def test_a_record_is_made_and_explained_without_arrays(tmp_path: Path) -> None:
    table = TableFile(tmp_path / "table", interval=timedelta(minutes=1), version="1")
    record_publisher(table, Policies(Policy(mode="publish"))).publish(NOON, fleet_of_one(2.0, 50.0, surge=0.5))
    program = textwrap.dedent(f"""
        import pathlib, sys
        from forecaster.horizontal.sentences import explanation
        from forecaster.publish.reader import TableReader
        reader = TableReader(pathlib.Path({str(table.path)!r}))
        reader.refresh()
        print(*explanation(reader.table.recommendation(reader.table.entries[0])), sep="|")
        print(*sys.modules)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines, loaded = done.stdout.splitlines()
    assert "blast radius: 100 → 8 (a forecast moves 50% at most, or 4 pods)" in lines
    assert FORBIDDEN.isdisjoint(loaded.split())


def test_the_fleet_is_put_together_without_arrays(tmp_path: Path) -> None:
    table = TableFile(tmp_path / "table", interval=timedelta(minutes=1), version="1")
    record_publisher(table, Policies(Policy(mode="publish"))).publish(NOON, fleet_of_one(2.0, 50.0))
    program = textwrap.dedent(f"""
        import pathlib, sys
        from forecaster.publish.reader import TableReader
        from forecaster.serving.fleet import fleet_view
        reader = TableReader(pathlib.Path({str(table.path)!r}))
        reader.refresh()
        print(*fleet_view(reader.table, None).name)
        print(*sys.modules)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    named, loaded = done.stdout.splitlines()
    assert named == "web"
    assert FORBIDDEN.isdisjoint(loaded.split())


def test_arguments_that_are_no_address_are_refused_in_a_sentence() -> None:
    command = [sys.executable, "-m", "forecaster.serving", "--table", "x", "--address", "localhost:http"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "'localhost:http' is not HOST:PORT" in refused.stderr
