from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.errors import StoreError
from tests.support.decided_records import RecordPublisher
from tests.support.recommendations import NOON, recommendation

if TYPE_CHECKING:
    from forecaster.publish.publisher import OfferedCycle

PUBLISH = Policies(Policy(mode="publish"))


class Received:
    """A receiver that keeps what it gets, or fails."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.cycles: list[OfferedCycle] = []

    def receive(self, cycle: OfferedCycle) -> None:
        if self.fault == "no thread":
            raise RuntimeError(self.fault)
        if self.fault:
            raise StoreError(self.fault)
        self.cycles.append(cycle)


def test_every_receiver_gets_the_very_same_offers() -> None:
    first, second = Received(), Received()
    RecordPublisher(PUBLISH, {"table": first, "remote-write": second}).publish(NOON, [recommendation()])
    assert len(first.cycles[0].ids) == 1
    assert first.cycles[0] is second.cycles[0]


def test_one_that_fails_keeps_it_from_no_other_and_all_faults_are_said() -> None:
    received = Received()
    faults = {"table": "the disk is full", "pictures": "no thread"}
    receivers = {name: Received(fault) for name, fault in faults.items()} | {"a": received, "b": Received("refused")}
    with pytest.raises(StoreError, match="the disk is full; pictures: RuntimeError: no thread; refused"):
        RecordPublisher(PUBLISH, receivers).publish(NOON, [])
    assert len(received.cycles) == 1


def test_the_last_known_numbers_go_on_from_cycle_to_cycle() -> None:
    received = Received()
    publisher = RecordPublisher(PUBLISH, {"table": received})
    publisher.publish(NOON, [recommendation()])
    publisher.publish(NOON, [recommendation(replicas=None)])
    offer = received.cycles[1].offer(0)
    assert offer is not None
    assert offer.replicas is not None
    assert (offer.replicas.value, offer.replicas.known) == (5, False)
