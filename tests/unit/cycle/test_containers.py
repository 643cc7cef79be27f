"""Usage by container is read once an hour and kept for eight days; gaps stay gaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.cycle.containers import CONTAINER_COLUMNS, CONTAINER_HISTORY, Containers, container_news
from forecaster.cycle.sizes import PodSizes
from forecaster.domain.decision import Hold, Reason, Resize
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import BUILT_IN, CPU, Signal
from forecaster.domain.window import FIVE_MINUTES
from forecaster.domain.workload import ContainerBlock, ContainerFacts, ContainerId, Resources
from forecaster.errors import SourceUnavailable
from forecaster.store.history import HistoryStore
from forecaster.vertical.sizing.memory import OOM_RAISE
from forecaster.vertical.sizing.pod import size
from tests.support.builders import GIB, NOON, workload
from tests.support.fakes import SHORT, FakeSource

if TYPE_CHECKING:
    from collections.abc import Iterator

WEB = workload("web", autoscaler=None)
APP, PROXY, SETUP = (ContainerId(WEB.id, name) for name in ("app", "proxy", "setup"))
FACTS = ContainerFacts(
    images={APP: "shop/web:2", PROXY: "mesh:1"},
    init=frozenset({SETUP}),
    resources={APP: Resources(1.0, None, GIB, GIB), PROXY: Resources(0.1, None, GIB, GIB)},
)


@dataclass
class Telling(FakeSource):
    """A source that tells containers apart: the app uses a core and half a GiB, the proxy a tenth of each."""

    usage: dict[ContainerId, float] = field(default_factory=lambda: {APP: 1.0, PROXY: 0.1})
    facts: ContainerFacts = FACTS
    since: dict[ContainerId, datetime] = field(default_factory=dict)
    spans: list[tuple[datetime, datetime]] = field(default_factory=list)
    failing: bool = False

    def containers(self, at: datetime) -> ContainerFacts:
        if self.failing:
            raise SourceUnavailable("nobody answers")
        return self.facts

    def container_usage(
        self, signal: Signal, start: datetime, end: datetime, step: timedelta
    ) -> Iterator[ContainerBlock]:
        self.spans.append((start, end))
        unit = 1.0 if signal == CPU else 0.5 * GIB
        points = (end - start) // step + 1
        values = np.array([np.full(points, used * unit) for used in self.usage.values()])
        for row, id_ in enumerate(self.usage):
            before = (self.since.get(id_, start) - start) // step
            values[row, :before] = np.nan
        yield ContainerBlock(tuple(self.usage), start, step, values)


def read(source: Telling) -> Containers:
    containers = Containers()
    assert containers.catch_up(source, NOON) == []
    return containers


def test_the_first_look_reads_all_that_is_kept() -> None:
    source = Telling([])
    containers = read(source)
    assert (source.spans[0][0], source.spans[-1][1]) == (NOON - CONTAINER_HISTORY + FIVE_MINUTES, NOON)
    np.testing.assert_array_equal(containers.usage([APP], CPU), np.ones((1, CONTAINER_COLUMNS), np.float32))


def test_within_the_hour_nothing_is_asked_again() -> None:
    source = Telling([])
    containers = read(source)
    source.spans.clear()
    containers.catch_up(source, NOON + timedelta(minutes=59))
    assert source.spans == []


def test_after_an_hour_only_what_is_new_is_asked() -> None:
    source = Telling([])
    containers = read(source)
    source.usage[APP] = 2.0
    containers.catch_up(source, NOON + timedelta(hours=1))
    assert source.spans[-1] == (NOON + FIVE_MINUTES, NOON + timedelta(hours=1))
    assert containers.usage([APP], CPU)[0, -13:].tolist() == [1.0] + [2.0] * 12


def test_a_container_that_is_silent_for_long_gives_its_row_back() -> None:
    source = Telling([])
    containers = read(source)
    del source.usage[PROXY]
    source.facts = ContainerFacts(images={APP: "shop/web:2"})
    containers.catch_up(source, NOON + CONTAINER_HISTORY)
    assert set(containers.rows) == {APP}


def test_a_container_that_nobody_saw_is_a_gap() -> None:
    assert np.isnan(read(Telling([])).usage([SETUP], CPU)).all()


def test_a_source_that_fails_is_one_sentence() -> None:
    assert Containers().catch_up(Telling([], failing=True), NOON) == [
        "containers: nobody answers; pods are sized as a whole"
    ]


def test_what_was_not_answered_is_asked_again() -> None:
    source = Telling([])
    containers = read(source)
    source.failing = True
    assert containers.catch_up(source, NOON + timedelta(hours=1)) == ["containers: nobody answers"]
    source.failing = False
    containers.catch_up(source, NOON + timedelta(hours=1, minutes=5))
    assert source.spans[-1] == (NOON + FIVE_MINUTES, NOON + timedelta(hours=1, minutes=5))


def test_a_source_that_knows_no_containers_is_left_alone() -> None:
    assert Containers().catch_up(FakeSource([]), NOON) == []


class TestSizes:
    def sized(self, source: Telling) -> PodSizes:
        sizes = PodSizes()
        sizes.renew(HistoryStore(BUILT_IN.measured, SHORT, now=NOON), read(source), Policies(Policy()), [WEB])
        return sizes

    def test_are_those_of_each_container(self) -> None:
        app, proxy = self.sized(Telling([])).of(WEB.id)
        assert app.cpu is not None
        assert proxy.cpu is not None
        assert (app.name, app.cpu.request, proxy.name) == ("app", 1.0, "proxy")
        assert proxy.cpu.request == pytest.approx(0.1)

    def test_of_the_pod_are_their_sum(self) -> None:
        decided = size(WEB, self.sized(Telling([])).of(WEB.id), Policy().vertical)
        assert "app: cpu: 1000m" in decided.message
        assert "proxy: cpu: 100m" in decided.message

    def test_an_init_container_is_kept_with_its_reason(self) -> None:
        source = Telling([], usage={APP: 1.0, PROXY: 0.1, SETUP: 3.0})
        setup = self.sized(source).of(WEB.id)[-1]
        assert (setup.name, setup.cpu) == ("setup", None)
        assert "an init container" in setup.note

    def test_an_ephemeral_container_is_left_out_with_its_reason(self) -> None:
        debugger = ContainerId(WEB.id, "debugger-x7")
        source = Telling([], usage={APP: 1.0, debugger: 3.0})
        assert "ephemeral, or gone" in self.sized(source).of(WEB.id)[1].note

    @pytest.mark.parametrize("other", [SETUP, ContainerId(WEB.id, "debugger-x7")], ids=["init", "ephemeral"])
    def test_what_does_not_run_with_the_pod_is_no_part_of_its_size(self, other: ContainerId) -> None:
        """Most init containers state no resources; a debugger is in no specification."""
        usage = {APP: 1.0, PROXY: 0.1}
        alone, beside = (self.sized(Telling([], usage=amounts)).of(WEB.id) for amounts in (usage, usage | {other: 3.0}))
        decided, other_decided = (size(WEB, containers, Policy().vertical) for containers in (alone, beside))
        assert isinstance(decided, Resize)
        assert isinstance(other_decided, Resize)
        assert (other_decided.resources, other_decided.containers) == (decided.resources, decided.containers)
        assert other.name in other_decided.message

    def test_an_oom_kill_raises_the_floor(self) -> None:
        killed = ContainerFacts(FACTS.images, FACTS.init, FACTS.resources, oom_limits={APP: 2 * GIB})
        app, _ = self.sized(Telling([], facts=killed)).of(WEB.id)
        assert app.memory is not None
        assert app.memory.request == 2 * GIB * OOM_RAISE

    def test_a_throttled_container_is_not_sized_down(self) -> None:
        throttled = ContainerFacts(FACTS.images, FACTS.init, FACTS.resources, held_back={APP: 0.3})
        source = Telling([], usage={APP: 0.5, PROXY: 0.1}, facts=throttled)
        app, _ = self.sized(source).of(WEB.id)
        assert app.cpu is not None
        assert app.cpu.request == 1.0


class TestNewcomer:
    """A second workload of the same image, with two hours of usage."""

    CART = workload("cart", autoscaler=None)
    STATED = Resources(0.1, None, 8 * GIB, 8 * GIB)

    def decided(self, image: str = "shop/web:2", name: str = "app", killed_at: float | None = None) -> Resize | Hold:
        new = ContainerId(self.CART.id, name)
        source = Telling(
            [],
            usage={APP: 1.0, new: 0.7},
            facts=ContainerFacts(
                {**FACTS.images, new: image},
                resources={**FACTS.resources, new: self.STATED},
                oom_limits={new: killed_at} if killed_at else {},
            ),
            since={new: NOON - timedelta(hours=2)},
        )
        sizes = PodSizes()
        sizes.renew(
            HistoryStore(BUILT_IN.measured, SHORT, now=NOON), read(source), Policies(Policy()), [WEB, self.CART]
        )
        return size(self.CART, sizes.of(self.CART.id), Policy().vertical)

    def test_gets_what_its_relative_takes_as_widely_as_one_relative_deserves(self) -> None:
        decided = self.decided()
        assert isinstance(decided, Resize)
        (app,) = decided.containers
        assert app.recommended.cpu_request == pytest.approx(1.72, abs=0.01)
        assert app.cpu is None
        assert "by 1 donor of its image, nine of ten take 498m to 2009m" in decided.message

    def test_keeps_what_it_has_where_that_is_more(self) -> None:
        decided = self.decided()
        assert isinstance(decided, Resize)
        assert decided.resources.memory_request == 8 * GIB
        assert "nine of ten take" in decided.message.rpartition("memory: ")[2]

    def test_has_no_donors_by_an_image_and_a_name_of_its_own(self) -> None:
        decided = self.decided(image="shop/cart:1", name="cart")
        assert isinstance(decided, Hold)
        assert decided.reason is Reason.SHORT_HISTORY
        assert decided.message == "2.1 h of usage; a day is the least"

    def test_that_was_killed_gets_more_than_it_had(self) -> None:
        decided = self.decided(killed_at=8 * GIB)
        assert isinstance(decided, Resize)
        assert decided.resources.memory_request == 8 * GIB * OOM_RAISE


def test_another_image_and_an_oom_kill_are_news_and_the_first_look_is_none() -> None:
    before = ContainerFacts(images={APP: "web:1"}, oom_limits={APP: 2.0**29})
    after = ContainerFacts(images={APP: "web:2"}, oom_limits={APP: 2.0**30})
    assert [news.text for news in container_news(before, after, NOON)] == [
        "deploy of app: web:1 → web:2",
        "OOM kill of app at 1Gi",
    ]
    assert not [*container_news(ContainerFacts(), before, NOON)]
    assert not [*container_news(after, after, NOON)]
