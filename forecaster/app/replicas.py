"""One of several replicas: computes while it holds the Lease, and else copies the leader's files and serves them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from forecaster.errors import StoreError
from forecaster.kube.client import ApiClient, ApiError
from forecaster.kube.connections import RawRequest
from forecaster.publish.table import TableBytes, TableMeta, read_header
from forecaster.serving.options import FOLLOWS, LEADS
from forecaster.serving.replicas import FILES, TABLE, ReplicatedFiles, replicated_files, size_of

if TYPE_CHECKING:
    import threading

    from forecaster.app.service import Service
    from forecaster.app.telemetry import Log
    from forecaster.config.settings import Settings
    from forecaster.kube.config import ClientConfig
    from forecaster.kube.lease import Election, Leader
    from forecaster.ports import Publisher
    from forecaster.publish.decided import DecidedRows


@dataclass(slots=True)
class Replica:
    """`build` makes the service, which continues from the files of the state directory; its argument closes it."""

    election: Election
    follower: Follower
    build: Callable[[ExitStack], Service]
    tell: Callable[[bytes], None]
    """Tells the serving process whether this replica computes."""
    log: Log
    _fault: str = ""

    def run(self, stop: threading.Event) -> bool:
        """Run until stopped; return whether the last cycle finished within its grace.

        A cycle that does not finish ends the process, also where the Lease was lost: it must not publish after another
        replica.
        """
        finished = True
        while finished and not stop.is_set():
            if self.election.leading():
                finished = self._lead(stop)
            else:
                self._follow(stop)
        self.follower.close()
        return finished

    def _lead(self, stop: threading.Event) -> bool:
        self.follower.close()
        self.log.info("leads", identity=self.election.identity)
        self.tell(LEADS)
        with ExitStack() as parts:
            service = self.build(parts)
            service.schedule.start()
            while self.election.holds() and not stop.wait(FOLLOW_SECONDS):
                self.tell(LEADS)
            finished = service.stop()
        if not stop.is_set():
            self.log.warning("lead_lost", identity=self.election.identity, fault=self.election.fault)
        return finished

    def _follow(self, stop: threading.Event) -> None:
        self._say_fault()
        self.tell(FOLLOWS)
        leader = self.election.leader
        of_before = leader is not None and leader.address == self.election.address  # this replica, before its restart
        self.follower.step(None if of_before else leader)
        stop.wait(FOLLOW_SECONDS)

    def _say_fault(self) -> None:
        """Report once that the Lease cannot be read and so has no leader."""
        if self.election.fault and not self._fault:
            self.log.warning("lease_not_read", error=self.election.fault)
        self._fault = self.election.fault


@dataclass(frozen=True, slots=True)
class FencedPublisher:
    """`Publisher` that publishes nothing of a cycle in which another replica may have taken over."""

    publisher: Publisher
    holds: Callable[[], bool]

    def publish(self, at: datetime, recommendations: DecidedRows) -> None:
        """Offer the decisions.

        Raises:
            StoreError: with the messages of the receivers that failed; or another replica may publish.
        """
        if not self.holds():
            raise StoreError("offers: the Lease was not renewed in time; the replica that holds it publishes its own")
        self.publisher.publish(at, recommendations)


FOLLOW_SECONDS = 0.5
"""Seconds between two requests to the leader; without news they cost it a stat of five files."""
LEADER_ANSWER_SECONDS = 3.0
SKEW_SECONDS = 10.0
"""Difference of clocks that is reported, in seconds; a table is stale after minutes."""
HISTORY_FILE = "history"


class ReplacedError(ApiError):
    """The file is another one by now: the next step copies that."""


class Follower:
    """Copies tables, one `step` after the other, in one thread; calls `taken` for each table that is in place."""

    def __init__(
        self,
        table: Path,
        config: Callable[[str], ClientConfig],
        taken: Callable[[TableMeta], None],
        log: Log,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._files = replicated_files(table)
        self._config, self._taken, self._log, self.clock = config, taken, log, clock
        self._leader: Leader | None = None
        self._client: ApiClient | None = None
        self._tags: dict[str, str] = {}
        self._history: Iterator[None] = iter(())
        self._fault = ""
        self._differ = False

    def step(self, leader: Leader | None) -> None:
        """Copy new files of the leader. Raises nothing: a line reports a failure, and its end."""
        try:
            if leader != self._leader:
                self._follow(leader)
            if self._client is None:
                return  # without a leader there is nothing to copy, which is no end of a fault
            self._step(self._client)
        except ReplacedError:
            return
        except (ApiError, StoreError, OSError, ValueError) as error:
            fault = str(error)
        else:
            fault = ""
        if fault and not self._fault:
            self._log.warning("leader_not_copied", leader=leader.identity if leader else "", error=fault)
        elif self._fault and not fault:
            self._log.info("leader_copied", leader=leader.identity if leader else "")
        self._fault = fault

    def close(self) -> None:
        """End the connection; whatever is copied in part is begun anew."""
        self._follow(None)

    def _follow(self, leader: Leader | None) -> None:
        if self._client is not None:
            self._client.close()
        self._leader, self._client, self._tags, self._history = leader, None, {}, iter(())
        if leader is not None and leader.address:
            self._client = ApiClient(
                partial(self._config, leader.address), connections=1, timeout=LEADER_ANSWER_SECONDS
            )

    def _step(self, client: ApiClient) -> None:
        files = client.get(FILES, ReplicatedFiles)
        self._compare(files.now)
        for name, tag in self._new(files.tags):
            if name == HISTORY_FILE:
                self._history = self._copied(name, tag)
            else:
                for _ in self._copied(name, tag):
                    pass
            self._tags[name] = tag
        try:
            next(self._history, None)  # a piece of it, then the next table
        except BaseException:
            self._tags.pop(HISTORY_FILE, None)
            raise

    def _new(self, tags: dict[str, str]) -> list[tuple[str, str]]:
        """The files that are others than at the last step, in the order in which they are taken over."""
        return [(name, tags[name]) for name in self._files if name in tags and tags[name] != self._tags.get(name)]

    def _copied(self, name: str, tag: str) -> Iterator[None]:
        """Put a file in its place, a piece at a time. Raises ApiError, StoreError, OSError."""
        path = self._files[name]
        temporary = path.with_name(f".{path.name}.copy")
        whole = size_of(tag)
        with temporary.open("w+b") as file:
            while (at := file.tell()) < whole:
                file.write(self._piece(name, tag, at))
                yield
            file.flush()
            meta = read_header(TableBytes(file.fileno()))[0].meta if name == TABLE else None
        os.utime(temporary)
        temporary.replace(path)
        if meta is not None:
            self._taken(meta)

    def _piece(self, name: str, tag: str, at: int) -> bytes:
        assert self._client is not None  # noqa: S101  as `_step` has seen
        request = RawRequest("GET", f"{FILES}/{quote(name)}?tag={quote(tag)}&at={at}")
        answer = self._client.exchange(request)
        if answer.status == HTTPStatus.PRECONDITION_FAILED:
            raise ReplacedError(f"{request}: replaced", answer.status)
        if answer.status != HTTPStatus.OK or not answer.body:
            raise ApiError(f"{request}: status {answer.status} with {len(answer.body)} bytes", answer.status)
        return answer.body

    def _compare(self, now: float) -> None:
        """Report once that the clocks differ, because ages depend on both."""
        ahead = now - self.clock()
        if (abs(ahead) > SKEW_SECONDS) is not self._differ:
            self._differ = not self._differ
            if self._differ:
                self._log.warning("clocks_differ", leader_ahead_seconds=round(ahead, 1))


def leader_config(settings: Settings, own: Callable[[], ClientConfig]) -> Callable[[str], ClientConfig]:
    """Return how to reach the leader: with our own token, by the name of our Service, for which it has a certificate.

    `own` is how to reach the API server. A client certificate for that is not used here.
    """
    namespace, _, name = (settings.serving.secure.service or "").partition("/")

    def config(address: str) -> ClientConfig:
        return msgspec.structs.replace(
            own(),
            server=f"https://{address}",
            ca_file=str(settings.replicas.ca_file),
            ca="",
            certificate_file="",
            key_file="",
            certificate="",
            key="",
            tls_server_name=f"{name}.{namespace}.svc",
            verify=True,
            proxy="",
        )

    return config
