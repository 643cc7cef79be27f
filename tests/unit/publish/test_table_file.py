"""Words of a table are made anew where they have changed, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.publish.reader import TableReader
from forecaster.publish.table_file import TableFile
from tests.support.decided_records import RecordPublisher, record_publisher
from tests.support.published import fleet_of_one
from tests.support.recommendations import NOON

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.publish.reader import PublishedTable


@pytest.fixture
def file(tmp_path: Path) -> TableFile:
    return TableFile(tmp_path / "table", interval=timedelta(minutes=1), version="1")


@pytest.fixture
def publisher(file: TableFile) -> RecordPublisher:
    return record_publisher(file, Policies(Policy(mode="publish")))


def table(file: TableFile) -> PublishedTable:
    reader = TableReader(file.path)
    reader.refresh()
    assert reader.table is not None, reader.fault
    return reader.table


def test_demand_moves_without_a_word(file: TableFile, publisher: RecordPublisher) -> None:
    publisher.publish(NOON, fleet_of_one(2.1, 2.9))
    moved = fleet_of_one(2.2, 2.95)
    publisher.publish(NOON + timedelta(minutes=1), moved)
    view = table(file).view(table(file).entries[0])
    assert moved.asked == []
    assert (view.at, view.signals[0].measured) == (NOON + timedelta(minutes=1), 2.2)
    assert view.signals[0].forecast is not None
    assert view.signals[0].forecast.peak == 2.95
    assert view.signals[0].forecast.begin == NOON + timedelta(minutes=4)


def test_another_count_is_said_by_its_numbers(file: TableFile, publisher: RecordPublisher) -> None:
    publisher.publish(NOON, fleet_of_one(2.1, 2.9))
    publisher.publish(NOON + timedelta(minutes=1), more := fleet_of_one(2.1, 3.6))
    assert more.asked == ["verdict"]
    view = table(file).view(table(file).entries[0])
    assert view.replicas.message == "the forecast asks for 8, the measured demand for 4"
    assert [(clamp.before, clamp.after) for clamp in view.clamps] == [(4, 8)]
    assert [decision.replicas for decision in table(file).past(table(file).entries[0]).decisions] == [8, 6]


def test_other_words_are_written_anew(file: TableFile, publisher: RecordPublisher) -> None:
    publisher.publish(NOON, fleet_of_one(2.1, 2.9))
    publisher.publish(NOON + timedelta(minutes=1), fleet_of_one(2.1, 2.9, lead_time="7m"))
    view = table(file).view(table(file).entries[0])
    assert view.lead_time is not None
    assert view.lead_time.seconds == 420


def test_another_size_is_written_without_the_words(publisher: RecordPublisher) -> None:
    publisher.publish(NOON, fleet_of_one(2.1, 2.9))
    other = fleet_of_one(2.1, 2.9)
    other.size_ids = other.size_ids + 1
    publisher.publish(NOON + timedelta(minutes=1), other)
    assert other.asked == ["resources"]


def test_workloads_that_come_and_go_keep_their_words(file: TableFile, publisher: RecordPublisher) -> None:
    publisher.publish(NOON, fleet_of_one(2.1, 2.9))
    publisher.publish(NOON + timedelta(minutes=1), fleet_of_one(2.1, 2.9, name="api"))
    (entry,) = table(file).entries
    assert entry.name == "api"
    assert table(file).view(entry).replicas.message.startswith("the forecast asks for 6")
    assert table(file).named("shop", "web") == []


def test_two_first_tables_read_at_once_do_not_end_the_process(file: TableFile, publisher: RecordPublisher) -> None:
    """The table and its pictures appear together, and each has a reader; a fault is a segmentation fault."""
    publisher.publish(NOON, fleet_of_one(2.1, 2.9))
    program = """
        import importlib, sys, threading
        from pathlib import Path
        from forecaster.publish import reader, table

        sys.setswitchinterval(1e-6)
        for number in range(100):
            reader.read_header = importlib.reload(table).read_header  # a header whose fields nothing has read yet
            together = threading.Barrier(2)
            def read():
                together.wait()
                reader.TableReader(Path(sys.argv[1])).refresh()
            threads = [threading.Thread(target=read) for _ in range(2)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(file.path)], check=False)
    assert ended.returncode == 0
