"""Readers' view of a table while the API server reports changes between two cycles, and while it is silent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.domain.decision import Reason
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import Target, TargetType, WorkloadId
from forecaster.publish.overlay import (
    GONE,
    LAPSED,
    NUMBER_BYTES,
    Overlay,
    OverlayWriter,
    PresentWorkload,
    overlay_path,
)
from forecaster.publish.reader import TableReader
from forecaster.publish.table_file import TableFile
from forecaster.publish.values import MetricTarget, metric_readers
from forecaster.serving.app import create_app
from tests.support.asgi import Client
from tests.support.decided_records import record_publisher
from tests.support.recommendations import NOON, recommendation, workload_id
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from httpx import Response

    from forecaster.domain.decision import Recommendation

WEB = workload_id()
VALUE = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/forecaster_demand?labelSelector=workload=web,signal="
SOON = timedelta(seconds=2)
DEPLOYMENTS = ("Deployment",)


def demand(target: float, signal: str = "") -> Target:
    return Target("forecaster_demand", TargetType.AVERAGE_VALUE, target, signal=signal)


def held(now: int = 10, *targets: Target, at: datetime = NOON, reason: Reason = Reason.NO_DATA) -> Recommendation:
    """A workload of which nothing but the count and the HPA is known."""
    return replace(recommendation(replicas=None, reason=reason, now=now, at=at), signals=(), targets=targets)


@dataclass
class Story:
    """A table of one workload that is held, its overlay, and a clock."""

    folder: Path
    now: datetime = NOON
    present: dict[WorkloadId, PresentWorkload] = field(default_factory=dict)
    confirmed: Callable[[], float] | None = None

    def __post_init__(self) -> None:
        self.path = self.folder / "recommendations.table"
        self.writer = OverlayWriter(
            overlay_path(self.path),
            lambda id_: self.present.get(id_, PresentWorkload(GONE)),
            lambda: self.confirmed() if self.confirmed else self.now.timestamp(),
            self._seconds,
        )

    def _seconds(self) -> float:
        return self.now.timestamp()

    def publish(self, *rows: Recommendation, live: Collection[str] = DEPLOYMENTS, abstain: str = "neutral") -> None:
        table = TableFile(self.path, interval=timedelta(minutes=1), version="1", live=lambda _at: live)
        policies = Policies(Policy.model_validate({"mode": "publish", "publish": {"abstain": abstain}}))
        record_publisher(table, policies).publish(self.now, rows)
        if live:
            self.writer.published(self.now)

    def happens(self, replicas: int, *targets: Target, id_: WorkloadId = WEB) -> None:
        """A change, and the moment in which it is written."""
        self.present[id_] = PresentWorkload(replicas, metric_readers(targets))
        self.writer.changed(id_)
        self.writer.step()

    def read(self, signal: str = "cpu") -> Response:
        """Return the answer that the HPA controller gets."""
        reader = TableReader(self.path, lambda: self.now)
        reader.refresh()
        return Client(create_app(reader)).get(VALUE + signal)

    def value(self, signal: str = "cpu") -> str:
        answer = self.read(signal)
        assert answer.status_code == 200, answer.text
        number: str = answer.json()["items"][0]["value"]
        return number


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


class TestPerson:
    def test_who_scales_between_two_cycles_is_not_asked_back(self, story: Story) -> None:
        """10 -> 30 as mitigation, while nothing is known of the demand."""
        story.publish(held(10, demand(0.5)))
        story.writer.step()
        assert story.value() == "5"
        story.now += SOON
        story.happens(30, demand(0.5))
        assert story.value() == "15"

    def test_who_raises_the_target_gets_the_count_there_is(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.happens(10, demand(1.0))
        assert story.value() == "10"

    def test_who_deletes_the_workload_or_its_hpa_gets_an_error(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.happens(10)
        assert story.read().status_code == 503
        del story.present[WEB]
        story.writer.changed(WEB)
        story.writer.step()
        assert story.read().status_code == 503

    def test_is_followed_while_the_table_is_stale_too(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.now += timedelta(hours=1)
        story.happens(30, demand(0.5))
        assert story.value() == "15"

    def test_is_followed_while_the_workloads_cannot_be_listed_by_prometheus(self, story: Story) -> None:
        story.publish(held(10, demand(0.5), reason=Reason.SOURCE_DOWN))
        story.happens(30, demand(0.5))
        assert story.value() == "15"


class TestSilence:
    @pytest.mark.parametrize("rows", [b'[["\xff","Deployment","web",[1,[]]]]', b"[]"])
    def test_of_a_damaged_file_says_nothing_of_the_count(self, story: Story, rows: bytes) -> None:
        story.publish(held(10, demand(0.5)))
        overlay_path(story.path).write_bytes(b"0" * 16 + b'{"since":1e300,"rows":' + rows + b"}")
        assert story.read().status_code == 503

    def test_of_the_api_server_ends_what_is_known_after_seconds(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.writer.step()
        until = story.now.timestamp()
        story.confirmed = lambda: until
        story.now += LAPSED
        story.writer.step()
        assert story.value() == "5"
        story.now += timedelta(seconds=1)
        story.writer.step()
        answer = story.read()
        assert answer.status_code == 503
        assert "the API server has not answered lately" in answer.json()["message"]

    def test_of_an_api_server_that_has_nothing_to_report_changes_nothing(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.happens(30, demand(0.5))
        story.now += LAPSED + timedelta(seconds=1)
        story.writer.step()
        assert story.value() == "15"

    def test_of_the_computing_process_is_the_same(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.happens(30, demand(0.5))
        story.now += LAPSED + timedelta(seconds=1)
        assert story.read().status_code == 503

    def test_is_over_with_the_next_confirmation(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.now += timedelta(minutes=1)
        story.writer.step()
        assert story.value() == "5"

    def test_without_an_overlay_is_no_count_either(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.writer.step()
        story.writer.close()
        assert story.read().status_code == 503

    def test_says_nothing_of_kinds_that_were_not_live(self, story: Story) -> None:
        """Without rights no kind is live: the count of this cycle's inventory is used."""
        story.publish(held(10, demand(0.5)), live=())
        assert story.value() == "5"

    def test_takes_no_number_away_that_is_known(self, story: Story) -> None:
        story.publish(replace(recommendation(), targets=(demand(0.5),)))
        assert story.value() == "1750m"


class TestFile:
    def test_that_is_damaged_says_nothing(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.happens(30, demand(0.5))
        file = overlay_path(story.path)
        file.write_bytes(file.read_bytes()[:-3])
        assert story.read().status_code == 503

    def test_is_small_again_once_tables_have_its_changes(self, story: Story) -> None:
        for number in range(50):
            story.happens(3, id_=workload_id(f"web-{number}"))
        sizes = []
        for _ in range(3):
            story.now += timedelta(minutes=1)
            story.publish(held(10, demand(0.5)))
            story.writer.step()
            sizes.append(overlay_path(story.path).stat().st_size)
        assert sizes[0] > 10 * sizes[-1]

    def test_keeps_a_change_for_readers_of_the_table_before(self, story: Story) -> None:
        """A reader takes a moment to see a new table."""
        story.publish(held(10, demand(0.5)))
        story.now += SOON
        story.happens(30, demand(0.5))
        old = story.path.read_bytes()
        story.now += timedelta(minutes=1)
        story.publish(held(30, demand(0.5)))
        story.writer.step()
        story.path.write_bytes(old)
        assert story.value() == "15"

    def test_keeps_a_change_by_its_own_clock_where_tables_have_the_clock_of_another_replica(self, story: Story) -> None:
        story.happens(30, demand(0.5))
        rows = []
        for minutes, since in ((60, NOON), (61, NOON), (62, NOON + SOON)):
            story.writer.published(NOON + timedelta(minutes=minutes), since.timestamp())
            story.writer.step()
            rows.append(msgspec.json.decode(overlay_path(story.path).read_bytes()[NUMBER_BYTES:], type=Overlay).rows)
        assert [[id_ for id_, _ in each] for each in rows] == [[WEB], [WEB], []]

    def test_is_read_anew_by_a_reader_that_has_read_it_before(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.writer.step()
        reader = TableReader(story.path, lambda: story.now)
        reader.refresh()
        client = Client(create_app(reader))

        def value() -> str:
            return str(client.get(VALUE + "cpu").json()["items"][0]["value"])

        assert value() == "5"
        story.happens(30, demand(0.5))
        wait_until(lambda: value() == "15", goal="the new count", timeout=20)

    def test_without_the_changes_since_an_old_table_says_nothing_of_it(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        old = story.path.read_bytes()
        for _ in range(3):
            story.now += timedelta(minutes=1)
            story.publish(held(30, demand(0.5)))
        story.writer.step()
        story.path.write_bytes(old)
        assert story.read().status_code == 503

    def test_of_the_process_before_is_not_confirmed_by_this_one(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.happens(30, demand(0.5))
        after = Story(story.folder, story.now)
        after.writer.step()
        assert after.value() == "5"

    def test_lacks_no_change_that_was_told_before_the_instant_of_its_confirmation(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        story.writer.step()

        def told_meanwhile() -> float:
            story.present[WEB] = PresentWorkload(30, metric_readers([demand(0.5)]))
            story.writer.changed(WEB)
            return story.now.timestamp()

        story.confirmed = told_meanwhile
        story.writer.step()
        assert story.value() == "15"

    def test_that_cannot_be_written_is_a_fault_until_it_can(self, story: Story) -> None:
        story.publish(held(10, demand(0.5)))
        blocked = overlay_path(story.path).with_name(".recommendations.live.new")
        blocked.mkdir()
        story.happens(30, demand(0.5))
        assert "recommendations.live" in story.writer.fault
        assert story.read().status_code == 503
        blocked.rmdir()
        story.writer.step()
        assert (story.writer.fault, story.value()) == ("", "15")


class TestSelectors:
    def test_of_two_targets_answer_each_its_own(self, story: Story) -> None:
        """Without them two targets of the same metric are an error: a request could be taken for a core."""
        targets = (demand(0.5, "cpu"), demand(100.0, "requests"))
        story.publish(held(10, *targets))
        story.writer.step()
        assert metric_readers(targets) == (
            MetricTarget("forecaster_demand", "AverageValue", 0.5, "cpu"),
            MetricTarget("forecaster_demand", "AverageValue", 100.0, "requests"),
        )
        assert (story.value("cpu"), story.value("requests")) == ("5", "1000")
