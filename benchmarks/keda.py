"""KEDA's scaler at full size: `python -m benchmarks.keda [--rate N] [--seconds S]`.

KEDA's own Go client (`.ci/keda` builds it) queries 10,000 workloads over mutual TLS, on one connection as KEDA does,
while the table is replaced four times a minute; alone, and beside a process that keeps a core busy. Times count from
when a call was due. One line per figure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.procfs import cpu_seconds, peak_mib, rss_mib
from benchmarks.serving import recommendation
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import WorkloadId
from forecaster.publish.table_file import TableFile
from tests.support.control_plane.authority import Authority, KeyPair
from tests.support.control_plane.binaries import find
from tests.support.decided_records import RecordPublisher, record_publisher
from tests.support.keda import ScalerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.domain.decision import Recommendation

BUSY = "sum(i * i for _ in iter(int, 1) for i in range(1000))"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--workloads", type=int, default=10_000)
    options = parser.parse_args()
    client = find("keda-client")
    if client is None:
        sys.exit("no keda-client: run .ci/keda")
    with tempfile.TemporaryDirectory() as folder, prepared(Path(folder), options.workloads) as (scaler, flags):
        pid = scaler.process.pid
        print(f"RSS with one table of {options.workloads} workloads: {rss_mib(pid):.0f} MiB")
        for busy in (False, True):
            own = cpu_seconds(pid)
            figures = measure([str(client), *flags, "-address", scaler.address], options, busy=busy)
            share = (cpu_seconds(pid) - own) / options.seconds
            beside = "beside a process that keeps a core busy" if busy else "alone"
            print(f"{options.rate}/s {beside}: {json.dumps(figures)}, {share:.2f} cores")
        print(f"RSS afterwards: {rss_mib(pid):.0f} MiB, at its peak {peak_mib(pid):.0f} MiB")


@contextmanager
def prepared(folder: Path, workloads: int) -> Iterator[tuple[ScalerProcess, list[str]]]:
    """A scaler over a table that is replaced all the while, and the client's options for its certificates."""
    table = TableFile(folder / "table", interval=timedelta(minutes=1), version="0")
    publisher = record_publisher(table, Policies(Policy(mode="publish")))
    rows = [row(i) for i in range(workloads)]
    publisher.publish(datetime.now(UTC), rows)
    authority = Authority(folder / "pki", "scaler-ca")
    server, client = authority.issue("server", "localhost"), authority.issue("client", common_name="keda-operator")
    done = threading.Event()
    thread = threading.Thread(target=replace_again_and_again, args=[publisher, rows, done])
    with ScalerProcess(table.path, *server_options(authority, server)) as scaler:
        thread.start()
        try:
            yield scaler, client_options(authority, client)
        finally:
            done.set()
            thread.join()


def replace_again_and_again(publisher: RecordPublisher, rows: list[Recommendation], done: threading.Event) -> None:
    while not done.wait(15):
        publisher.publish(datetime.now(UTC), rows)


def row(i: int) -> Recommendation:
    return replace(recommendation(i), id=WorkloadId("shop", "Deployment", f"workload-{i:04}"))


def server_options(authority: Authority, pair: KeyPair) -> list[str]:
    files = {"--certificate": pair.certificate, "--key": pair.key, "--client-ca": authority.certificate}
    return [*(str(word) for option in files.items() for word in option), "--client-name", "keda-operator"]


def client_options(authority: Authority, pair: KeyPair) -> list[str]:
    return ["-ca", str(authority.certificate), "-certificate", str(pair.certificate), "-key", str(pair.key)]


def measure(command: list[str], options: argparse.Namespace, *, busy: bool) -> dict[str, float]:
    load = [*command, "-rate", str(options.rate), "-seconds", str(options.seconds), "Load", "shop", "workload"]
    beside = subprocess.Popen([sys.executable, "-c", BUSY]) if busy else None
    try:
        time.sleep(1)
        output = subprocess.run(load, capture_output=True, text=True, check=True).stdout
    finally:
        if beside:
            beside.kill()
            beside.wait()
    figures: dict[str, float] = json.loads(output)
    return {name: round(value, 2) for name, value in figures.items()}


if __name__ == "__main__":
    main()
