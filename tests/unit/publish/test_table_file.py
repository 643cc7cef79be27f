"""What is said in words is said anew where it has changed, and nowhere else."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import WorkloadId
from forecaster.horizontal.decide import decide
from forecaster.horizontal.one import inputs_of_one
from forecaster.horizontal.record import Subject
from forecaster.horizontal.state import State
from forecaster.publish.decided import fingerprints
from forecaster.publish.publisher import OfferPublisher, table_publisher
from forecaster.publish.reader import TableReader
from forecaster.publish.table_file import RENEWED_IN, TableFile
from tests.support.builders import outlooks, policy, workload
from tests.support.horizontal import decided
from tests.support.recommendations import NOON

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.publish.reader import PublishedTable

POLICY = policy()


class Counted(list["Recommendation"]):
    """A fleet of one row that counts how often its record is asked for."""

    def __init__(self, cpu: float, ahead: float, name: str = "web", sized: int = 0) -> None:
        seen = outlooks(cpu=cpu, cpu_ahead=ahead)
        of = workload(name)
        super().__init__([decided(seen, of=of, under=POLICY)])
        decisions, _ = decide(inputs_of_one(Subject(of, POLICY.horizontal, seen), NOON), State.new(1), NOON.timestamp())
        self.asked = 0
        self.ids = (WorkloadId("shop", "Deployment", name),)
        self.current, self.replicas, self.reason = decisions.inputs.current, decisions.replicas, decisions.reason
        self.sized = np.array([sized])
        self.groups = [(np.zeros(1, np.intp), decisions)]

    def __getitem__(self, index: object) -> Recommendation:  # type: ignore[override]
        self.asked += 1
        return super().__getitem__(0)


@pytest.fixture
def file(tmp_path: Path) -> TableFile:
    return TableFile(tmp_path / "table", interval=timedelta(minutes=1), version="1")


@pytest.fixture
def publisher(file: TableFile) -> OfferPublisher:
    return table_publisher(file, Policies(Policy(mode="publish")))


def table(file: TableFile) -> PublishedTable:
    reader = TableReader(file.path)
    reader.refresh()
    assert reader.table is not None, reader.fault
    return reader.table


def test_demand_moves_without_a_word(file: TableFile, publisher: OfferPublisher) -> None:
    publisher.publish(NOON, Counted(2.1, 2.9))
    moved = Counted(2.2, 2.95)
    publisher.publish(NOON + timedelta(minutes=1), moved)
    view = table(file).view(table(file).entries[0])
    assert moved.asked == 0
    assert (view.at, view.signals[0].measured) == (NOON + timedelta(minutes=1), 2.2)
    assert view.signals[0].forecast is not None
    assert view.signals[0].forecast.peak == 2.95
    assert view.signals[0].forecast.begin == NOON + timedelta(minutes=4)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Counted(2.1, 3.6), id="another count"),
        pytest.param(Counted(3.4, 3.4), id="another reason"),
        pytest.param(Counted(2.1, 2.9, sized=1), id="another size"),
    ],
)
def test_another_decision_is_said_anew(publisher: OfferPublisher, other: Counted) -> None:
    publisher.publish(NOON, Counted(2.1, 2.9))
    publisher.publish(NOON + timedelta(minutes=1), other)
    assert other.asked == 1


def test_words_are_made_anew_in_turn(publisher: OfferPublisher) -> None:
    cycles = [Counted(2.1, 2.9) for _ in range(RENEWED_IN + 1)]
    for minute, cycle in enumerate(cycles):
        publisher.publish(NOON + timedelta(minutes=minute), cycle)
    assert [cycle.asked for cycle in cycles].count(1) == 2
    assert cycles[0].asked == 1


def test_workloads_that_come_and_go_keep_their_words(file: TableFile, publisher: OfferPublisher) -> None:
    publisher.publish(NOON, Counted(2.1, 2.9))
    publisher.publish(NOON + timedelta(minutes=1), Counted(2.1, 2.9, name="api"))
    (entry,) = table(file).entries
    assert entry.name == "api"
    assert table(file).view(entry).replicas.message.startswith("the forecast asks for 6")
    assert table(file).named("shop", "web") == []


def test_a_plain_list_is_said_as_it_is(file: TableFile, publisher: OfferPublisher) -> None:
    publisher.publish(NOON, Counted(2.1, 2.9))
    publisher.publish(NOON + timedelta(minutes=1), list(Counted(2.1, 3.6)))
    publisher.publish(NOON + timedelta(minutes=2), last := Counted(2.1, 3.6))
    assert last.asked == 1
    assert len(table(file).entries) == 1


def test_a_fingerprint_is_that_of_the_row_alone() -> None:
    assert fingerprints(Counted(2.1, 2.9)) == fingerprints(Counted(2.15, 2.85))
    assert fingerprints(Counted(2.1, 2.9)) != fingerprints(Counted(2.1, 3.6))
