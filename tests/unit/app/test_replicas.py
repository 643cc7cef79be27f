"""One of several replicas by its Lease: what it does while it leads, while another one does, and when that changes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forecaster.app.replicas import Replica
from forecaster.kube.lease import Leader
from forecaster.serving.options import FOLLOWS, LEADS

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

OWN = "10.0.0.1:6443"
OTHER = Leader("other", "10.0.0.2:6443")


@dataclass
class Election:
    """An election that gives the answers of a test, one a look."""

    leads: list[bool]
    leader: Leader | None = None
    address: str = OWN
    identity: str = "own"
    fault: str = ""

    def leading(self) -> bool:
        return self.leads[0]

    def holds(self) -> bool:
        return self.leads.pop(0) if len(self.leads) > 1 else self.leads[0]


@dataclass
class Follower:
    """Notes the leaders that it was told of; `then` happens in each step."""

    then: Callable[[], object]
    steps: list[Leader | None] = field(default_factory=list)

    def step(self, leader: Leader | None) -> None:
        self.steps.append(leader)
        self.then()

    def close(self) -> None:
        """Do nothing, since no connection is open."""


@dataclass
class Service:
    """Starts and stops."""

    finishes: bool = True
    did: list[str] = field(default_factory=list)

    @property
    def schedule(self) -> Service:
        return self

    def start(self) -> None:
        self.did.append("started")

    def stop(self) -> bool:
        self.did.append("stopped")
        return self.finishes


class Log:
    """Keeps the names of events."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def info(self, event: str, **_: object) -> None:
        self.said.append(event)

    warning = info


def run(election: Election, service: Service | None = None) -> tuple[bool, list[Leader | None], list[bool], list[str]]:
    """Run until the first step as a follower; return whether it finished, whom it followed, its roles and its log."""
    stepped, roles, log = threading.Event(), [], Log()
    follower = Follower(stepped.set)

    def role(message: bytes) -> None:
        roles.append(message)

    def build(_parts: ExitStack) -> Any:
        assert service is not None
        return service

    parts: Any = (election, follower, build, role, log)
    return Replica(*parts).run(stepped), follower.steps, roles, log.said


def test_while_another_one_leads_it_is_followed() -> None:
    assert run(Election([False], OTHER)) == (True, [OTHER], [FOLLOWS], [])


def test_its_own_name_of_before_a_restart_is_nothing_to_copy_from() -> None:
    assert run(Election([False], Leader("before", OWN)))[1] == [None]


def test_a_lease_that_cannot_be_read_is_said() -> None:
    assert run(Election([False], fault="403"))[3] == ["lease_not_read"]


def test_a_leader_that_loses_the_lease_stops_and_follows() -> None:
    service, election = Service(), Election([True, True, False], OTHER)
    finished, followed, roles, logged = run(election, service)
    assert (finished, followed, service.did) == (True, [OTHER], ["started", "stopped"])
    assert (roles[0], roles[-1], logged) == (LEADS, FOLLOWS, ["leads", "lead_lost"])


def test_a_cycle_that_goes_on_after_the_lease_was_lost_ends_the_process() -> None:
    service = Service(finishes=False)
    assert run(Election([True, False], OTHER), service)[:2] == (False, [])
