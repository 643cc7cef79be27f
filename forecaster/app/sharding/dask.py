"""Shards on the workers of a Dask cluster: the executor, and the processes it talks to. No other file knows Dask."""

from __future__ import annotations

import asyncio
import copyreg
import logging
import math
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

from forecaster import __version__
from forecaster.app.sharding.shard import PROCESS_CYCLES, ShardFailure, ShardResult, ShardTask, UnknownShard, tried
from forecaster.config.sharding import ShardingSettings
from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError

try:
    import dask
    import distributed
except ModuleNotFoundError as missing:
    raise StoreError("sharding: Dask is missing; install kube-forecaster[dask]") from missing


CONNECT_SECONDS = 5.0
"""Longest time to connect to the scheduler; then it is tried again while the cycle has time."""
RETRY_PAUSE_SECONDS = 0.2
FACTS_SECONDS = 1.8
"""Seconds within which a worker answers about one workload: less than the serving process waits (`app/facts.py`)."""
VERSION_RESOURCE = f"forecaster {__version__}"
"""Resource by which a worker states its version."""
AVOIDED = 3
"""Cycles in which a worker that was overtaken is given nothing."""
WORKER_ERRORS = (OSError, RuntimeError, CancelledError, TimeoutError)
"""Errors of a client whose scheduler is away; it connects again."""
CONFIG = {
    "distributed.scheduler.work-stealing": False,  # a shard is best where its history is
    "distributed.scheduler.http.routes": ["distributed.http.health"],
    "distributed.worker.http.routes": ["distributed.http.health"],
    "distributed.admin.large-graph-warning-threshold": "1GB",
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
}
numbers = count()


def frozen(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """Return a read-only mapping: frozen values contain one, and pickle does not find its class by name."""
    return MappingProxyType(mapping)


copyreg.pickle(MappingProxyType, lambda proxy: (frozen, (dict(proxy),)))


class Ran(NamedTuple):
    """Result of a shard, and the worker that ran it."""

    worker: str
    came: ShardResult | ShardFailure | UnknownShard


def run_on_worker(task: ShardTask) -> Ran:
    """Run one shard on a worker."""
    return Ran(str(distributed.get_worker().address), tried(PROCESS_CYCLES, task))


async def facts_on_worker(fleet: str, shard: int, id_: WorkloadId) -> bytes:
    """Return facts on a worker; not in its event loop, where it may wait for samples that are being read."""
    return await asyncio.to_thread(PROCESS_CYCLES.facts, fleet, shard, id_)


def sizes_of(tasks: Mapping[int, ShardTask]) -> dict[int, int]:
    """Workloads of each shard."""
    return {shard: len(task.inventory.workloads) for shard, task in tasks.items()}


@dataclass(slots=True)
class DaskExecutor:
    """Runs each shard on its last worker if that is present, else on another one.

    A worker that is lost costs its shards another start, a scheduler that is lost a new connection. What has not come
    in a part of the time is begun once more on workers that have nothing left to do. What was learned is with the
    asking process, so that none of them takes it away.
    """

    address: str
    security: Any = None
    """Certificates of mutual TLS; None for no TLS."""
    last: dict[int, str] = field(default_factory=dict)
    """Worker on which each shard ran last."""
    waits: float = 0.5
    """The share of the time after which a shard is begun once more on another worker."""
    avoided: dict[str, int] = field(default_factory=dict)
    """Workers that were overtaken, and for how many cycles they are given nothing."""
    there: list[str] = field(default_factory=list)
    """Workers, when it was looked last."""
    others: list[str] = field(default_factory=list)
    """Workers of another version, which get a shard only while there are no others."""
    places: dict[int, str] = field(default_factory=dict)
    """Worker to which each shard was given first in this cycle."""
    _client: Any = None

    @property
    def processes(self) -> int:
        """Number of workers at the last check."""
        return max(1, len(self.there))

    def run(self, tasks: Sequence[ShardTask], seconds: float) -> Iterator[ShardResult | ShardFailure]:
        """Yield the results as they come."""
        until, left, fault = time.monotonic() + seconds, {task.shard: task for task in tasks}, ""
        self.avoided, self.places = {worker: n - 1 for worker, n in self.avoided.items() if n > 1}, {}
        while left and (rest := until - time.monotonic()) > RETRY_PAUSE_SECONDS:
            try:
                yield from self._submitted(left, rest)
                fault = "" if self.there else f"the scheduler at {self.address} has no workers"
            except WORKER_ERRORS as error:
                fault = f"the scheduler at {self.address} is away: {type(error).__name__}: {error}"
                self.close()
            if left:
                time.sleep(RETRY_PAUSE_SECONDS)
        for shard in left:
            worker = self.places.get(shard, "")
            late = f"not computed within {seconds:g} s" + (f" by worker {worker}" if worker else "")
            foreign = f", which is not of {VERSION_RESOURCE}; deploy workers and service of one version"
            yield ShardFailure(shard, fault or late + (foreign if worker in self.others else ""))

    def _submitted(self, left: dict[int, ShardTask], seconds: float) -> Iterator[ShardResult | ShardFailure]:
        """Submit the remaining tasks; a task is removed once its result has come."""
        round_ = ShardRound(self._connected(seconds), self.last)
        stated = self._client.scheduler_info(n_workers=-1)["workers"]
        self.there = sorted(stated)
        self.others = [worker for worker in self.there if VERSION_RESOURCE not in stated[worker]["resources"]]
        fit = [worker for worker in self.there if worker not in self.others] or self.there
        workers = [worker for worker in fit if worker not in self.avoided] or fit
        if not workers:
            return
        try:
            self.places = assigned(sizes_of(left), self.last, workers)
            for shard, worker in self.places.items():
                known = self.last.get(shard) == worker
                round_.submit(left[shard].alone() if known else left[shard], worker)
            yield from round_.came(left, seconds * self.waits)
            if left:
                self._overtake(round_, left, {self.places[shard] for shard in left}, workers)
                yield from round_.came(left, seconds * (1.0 - self.waits) - RETRY_PAUSE_SECONDS)
        finally:
            with suppress(*WORKER_ERRORS):
                self._client.cancel([future for future in round_.shards if not future.done()])

    def _overtake(self, round_: ShardRound, left: dict[int, ShardTask], slow: set[str], workers: Sequence[str]) -> None:
        idle = [worker for worker in workers if worker not in slow]
        if idle:
            self.avoided |= dict.fromkeys(slow, AVOIDED)
            for shard, worker in assigned(sizes_of(left), {}, idle).items():
                round_.submit(left[shard], worker)

    def _connected(self, seconds: float) -> Any:
        if self._client is None:
            dask.config.set(CONFIG)
            log_as_ours()
            make: Any = distributed.Client
            patience = min(CONNECT_SECONDS, seconds)
            self._client = make(self.address, timeout=patience, security=self.security, set_as_default=False)
        return self._client

    def facts(self, fleet: str, shard: int, id_: WorkloadId) -> bytes:
        """Return facts from the worker that ran the shard last, if it answers in time."""
        client, worker = self._client, self.last.get(shard, "")
        if client is None or not worker:
            return b""
        try:
            answers = client.sync(
                client.run, facts_on_worker, fleet, shard, id_, workers=[worker], callback_timeout=FACTS_SECONDS
            )
        except Exception:  # noqa: BLE001  of the worker or on the way there; the thread that asks has other readers
            return b""
        return bytes(answers.get(worker, b""))

    def close(self) -> None:
        """Leave the cluster."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(*WORKER_ERRORS):
                client.close(timeout=1)


@dataclass(slots=True)
class ShardRound:
    """Requests to workers until the shards of one evaluation time are done, or the scheduler is lost."""

    client: Any
    last: dict[int, str]
    shards: dict[Any, int] = field(default_factory=dict)
    """Shard of each future."""

    def submit(self, task: ShardTask, worker: str) -> Any:
        """Have a shard run on a worker, or on any other if that one is lost."""
        key = f"shard-{task.shard}-{task.fleet}-{os.getpid()}-{next(numbers)}"
        future = self.client.submit(
            run_on_worker, task, key=key, pure=False, workers=[worker], allow_other_workers=True
        )
        self.shards[future] = task.shard
        return future

    def came(self, left: dict[int, ShardTask], seconds: float) -> Iterator[ShardResult | ShardFailure]:
        """Yield the results that arrive in time, and remove them from `left`."""
        waiting = [future for future, shard in self.shards.items() if shard in left]
        as_completed: Any = distributed.as_completed
        coming = as_completed(waiting, loop=self.client.loop, timeout=seconds)
        with suppress(TimeoutError):
            for future in coming:
                ran = self._ran(future)
                if isinstance(ran.came, UnknownShard):
                    if ran.came.shard in left:
                        coming.add(self.submit(left[ran.came.shard], ran.worker))
                elif left.pop(ran.came.shard, None):
                    self.last[ran.came.shard] = ran.worker
                    yield ran.came
                if not left:
                    return

    def _ran(self, future: Any) -> Ran:
        if future.status == "error":  # workers died of it one after the other, or do not understand us
            return Ran(
                "", ShardFailure(self.shards[future], f"{type(future.exception()).__name__}: {future.exception()}")
            )
        ran: Ran = future.result()
        return ran


def security_of(settings: ShardingSettings) -> Any:
    """Mutual TLS with these files; None where the address asks for none."""
    if not settings.scheduler.startswith("tls://"):
        return None
    ca, certificate, key = map(str, settings.files)
    make: Any = distributed.Security
    roles = ("client", "worker", "scheduler")
    own = {f"tls_{role}_{part}": file for role in roles for part, file in (("cert", certificate), ("key", key))}
    return make(tls_ca_file=ca, require_encryption=True, **own)


def work(settings: ShardingSettings, health: str) -> None:
    """Run shards until SIGTERM. A lost scheduler is looked for again, from the port by which it gave the shards."""
    with socket.create_server(("", 0)) as probe:
        port = probe.getsockname()[1]
    worker = partial(
        distributed.Worker,
        settings.scheduler,
        host=settings.listens_at,
        port=[port, 0],
        nthreads=1,
        memory_limit=0,
        resources={VERSION_RESOURCE: 1},
        dashboard=False,
        dashboard_address=health,
        security=security_of(settings),
    )
    asyncio.run(_served(worker))


def schedule(settings: ShardingSettings, health: str) -> None:
    """Hand shards to workers until SIGTERM."""
    scheduler = partial(
        distributed.Scheduler,
        host=settings.listens_at,
        port=settings.port,
        dashboard=False,
        dashboard_address=health,
        security=security_of(settings),
    )
    asyncio.run(_served(scheduler))


def log_as_ours() -> None:
    """Send Dask's log to our own, from warnings on; Dask has handlers of its own for each logger."""
    for name in [name for name in logging.Logger.manager.loggerDict if name.partition(".")[0] == "distributed"]:
        log = logging.getLogger(name)
        log.handlers.clear()
        log.propagate = True
        log.setLevel(logging.WARNING if name == "distributed" else logging.NOTSET)


async def _served(make: Callable[[], Any]) -> None:
    """Run one server after the other, until stopped."""
    dask.config.set(CONFIG)
    log_as_ours()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    end = asyncio.ensure_future(stop.wait())
    while not stop.is_set():
        with suppress(*WORKER_ERRORS):
            async with make() as server:
                finished = asyncio.ensure_future(server.finished())
                await asyncio.wait([finished, end], return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait([end], timeout=RETRY_PAUSE_SECONDS)


PLACEMENT_SLACK = 1.1
"""Factor by which the busiest worker may hold more workloads than after a new distribution of all shards."""


def assigned(sizes: Mapping[int, int], last: Mapping[int, str], workers: Sequence[str]) -> dict[int, str]:
    """Return a worker for each shard: its last one, unless that one has too many workloads then; else the idlest.

    The result is stable: a shard that moves has to read its history again.
    """
    afresh = _placed(sizes, {}, workers, math.inf)
    limit = PLACEMENT_SLACK * _busiest(sizes, afresh)
    placed = _placed(sizes, last, workers, limit)
    return placed if _busiest(sizes, placed) <= limit else afresh


def _placed(sizes: Mapping[int, int], last: Mapping[int, str], workers: Sequence[str], limit: float) -> dict[int, str]:
    """The largest first; those that cannot stay come last."""
    load, placed = Counter(dict.fromkeys(workers, 0)), {}
    largest_first = sorted(sizes, key=lambda shard: (-sizes[shard], shard))
    for shard in largest_first:
        worker = last.get(shard, "")
        if worker in load and load[worker] + sizes[shard] <= limit:
            placed[shard] = worker
            load[worker] += sizes[shard]
    for shard in largest_first:
        if shard not in placed:
            placed[shard] = min(workers, key=lambda worker: load[worker])
            load[placed[shard]] += sizes[shard]
    return placed


def _busiest(sizes: Mapping[int, int], places: Mapping[int, str]) -> int:
    """Workloads of the worker that has most."""
    load: Counter[str] = Counter()
    for shard, worker in places.items():
        load[worker] += sizes[shard]
    return max(load.values(), default=0)
