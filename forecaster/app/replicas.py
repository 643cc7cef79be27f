"""One of several replicas: computes while it holds the Lease, and serves what the one computes that does."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from forecaster.app.follower import FOLLOW_SECONDS
from forecaster.errors import StoreError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from forecaster.app.follower import Follower
    from forecaster.app.service import Service
    from forecaster.app.telemetry import Log
    from forecaster.domain.decision import Recommendation
    from forecaster.kube.lease import Election
    from forecaster.ports import Publisher


class RoleNews(Protocol):
    """Hears whether this replica computes."""

    def __call__(self, *, leads: bool) -> None:
        """Report that this replica leads, or copies."""


@dataclass(slots=True)
class Replica:
    """`build` makes the service, which goes on from the files of the state directory; what it is given closes it."""

    election: Election
    follower: Follower
    build: Callable[[ExitStack], Service]
    role: RoleNews
    log: Log
    _fault: str = ""

    def run(self, told: threading.Event) -> bool:
        """Until it is told to end; whether the last cycle finished within its grace.

        One that does not finish ends the process, also where the Lease was lost: it must not publish after another one.
        """
        finished = True
        while finished and not told.is_set():
            if self.election.leading():
                finished = self._lead(told)
            else:
                self._follow(told)
        self.follower.close()
        return finished

    def _lead(self, told: threading.Event) -> bool:
        self.follower.close()
        self.log.info("leads", identity=self.election.identity)
        self.role(leads=True)
        with ExitStack() as parts:
            service = self.build(parts)
            service.schedule.start()
            while self.election.holds() and not told.wait(FOLLOW_SECONDS):
                self.role(leads=True)
            finished = service.stop()
        if not told.is_set():
            self.log.warning("lead_lost", identity=self.election.identity, fault=self.election.fault)
        return finished

    def _follow(self, told: threading.Event) -> None:
        self._say_fault()
        self.role(leads=False)
        leader = self.election.leader
        of_before = leader is not None and leader.address == self.election.address  # this replica, before its restart
        self.follower.step(None if of_before else leader)
        told.wait(FOLLOW_SECONDS)

    def _say_fault(self) -> None:
        """A Lease that cannot be read has no leader: once it is said, and not at every look."""
        if self.election.fault and not self._fault:
            self.log.warning("lease_not_read", error=self.election.fault)
        self._fault = self.election.fault


@dataclass(frozen=True, slots=True)
class FencedPublisher:
    """`Publisher` that publishes nothing of a cycle in which another replica may have taken over."""

    publisher: Publisher
    holds: Callable[[], bool]

    def publish(self, at: datetime, recommendations: Sequence[Recommendation]) -> None:
        """Offer what was decided.

        Raises:
            StoreError: with what each receiver says that failed; or another replica may publish.
        """
        if not self.holds():
            raise StoreError("offers: the Lease was not renewed in time; the replica that holds it publishes its own")
        self.publisher.publish(at, recommendations)
