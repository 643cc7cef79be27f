"""Real sidecars and queriers of Thanos, over Prometheus servers of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import requests

from tests.support.ports import free_ports
from tests.support.stores import StoreProcess
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class _Component(StoreProcess):
    """One process of Thanos; others ask it at its `address`."""

    def __init__(self, binary: str, name: str, folder: Path, options: Iterable[str]) -> None:
        http, grpc = free_ports(2)
        self.address = f"127.0.0.1:{grpc}"
        served = [f"--http-address=127.0.0.1:{http}", f"--grpc-address={self.address}"]
        at_once = ["--http-grace-period=1s", "--grpc-grace-period=1s"]
        command = [binary, name, *served, *at_once, *options]
        super().__init__(command, f"http://127.0.0.1:{http}", "/-/ready", folder / f"{name}-{http}.log")


class Sidecar(_Component):
    """The store of one Prometheus."""

    def __init__(self, binary: str, prometheus: str, folder: Path) -> None:
        super().__init__(binary, "sidecar", folder, [f"--prometheus.url={prometheus}", f"--tsdb.path={folder}"])


class Querier(_Component):
    """Prometheus' API over several stores; `strict` ones are queried however long they have been silent."""

    def __init__(
        self, binary: str, stores: Iterable[Sidecar], folder: Path, *options: str, strict: bool = False
    ) -> None:
        flag = "--endpoint-strict" if strict else "--endpoint"
        named = [f"{flag}={store.address}" for store in stores]
        super().__init__(binary, "query", folder, [*named, *options])

    def stores(self) -> int:
        """Number of stores that answered the last query."""
        stores = requests.get(f"{self.url}/api/v1/stores", timeout=PATIENCE).json()["data"]
        return sum(store["lastError"] is None for kind in stores.values() for store in kind)

    def until(self, stores: int) -> None:
        """Wait until so many answer."""
        wait_until(lambda: self.stores() == stores, goal=f"{stores} stores at {self.url}")
