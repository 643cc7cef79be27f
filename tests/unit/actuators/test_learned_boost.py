"""The CPU boost of starting containers is learned from starts that their limit throttled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.actuators.resize.learned_boost import StartBoosts, StartShares, learned
from forecaster.actuators.resize.pods import SIZE
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.errors import SourceUnavailable
from forecaster.publish.new_pods import LearnedBoost, NewPodsFile
from tests.support.admitting import FITS, MINUTE, WEB, Admitting, Document, FakeRules, admitting_in, sized, web
from tests.support.builders import NOON

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from pathlib import Path

HELD_BACK, FREE = 0.6, 0.0
"""Throttled share of the CPU periods of a start: held back by its limit, and not."""
POLICY = Policy.model_validate({"vertical": {"mode": "in-place", "startup_boost": 4, "startup_learned": True}})
SIZED_TOO = POLICY.model_copy(update={"vertical": POLICY.vertical.model_copy(update={"mode": "initial"})})


@dataclass
class Starts:
    """Starts that the next cycle reads, each with its throttled share."""

    shares: list[float] = field(default_factory=list)
    spans: list[timedelta] = field(default_factory=list)
    down: bool = False

    def __call__(self, _now: datetime, since: timedelta) -> StartShares:
        if self.down:
            raise SourceUnavailable("query 'starts': no answer")
        self.spans.append(since)
        shares, self.shares = self.shares, []
        return {WEB: {"app": shares}} if shares else {}


@dataclass
class Learning:
    """A service with a cycle a minute, over one workload whose pods have a CPU limit of 200m."""

    admitting: Admitting
    starts: Starts
    minute: int = 0

    def cycle(self, *shares: float) -> dict[str, int]:
        self.starts.shares = [*shares]
        self.minute += 1
        return self.admitting.cycle(FITS, minutes=self.minute)

    def settled(self) -> None:
        for _ in range(6):
            self.cycle()

    def made(self) -> tuple[str, str]:
        """CPU limit of the next pod, and the annotation that explains it."""
        pod = self.admitting.made(pod_of_200m(), minutes=self.minute)
        limits = pod["spec"]["containers"][0]["resources"].get("limits", {})
        return limits.get("cpu", ""), pod["metadata"].get("annotations", {}).get(SIZE, "")


def pod_of_200m() -> Document:
    pod = web()
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m"}}
    pod["spec"]["containers"] = [{"name": "app", "resources": resources}]
    return pod


@pytest.fixture
def learning(tmp_path: Path) -> Learning:
    starts, admitting = Starts(), admitting_in(tmp_path)
    admitting.actuator.policies = Policies(POLICY)
    admitting.actuator.starts = StartBoosts(starts)
    return Learning(admitting, starts)


def test_five_starts_that_are_mostly_throttled_give_the_next_pods_half_as_much_again(learning: Learning) -> None:
    learning.cycle(HELD_BACK, HELD_BACK, FREE, HELD_BACK)
    assert learning.made() == ("200m", "")
    learning.cycle(FREE)
    learning.cycle()
    limit, text = learning.made()
    assert limit == "300m"
    assert text.endswith("times: app 1.5 (learned; no start with it measured yet).")


def test_with_too_few_starts_nothing_is_boosted_and_the_text_says_how_many_are_missing(learning: Learning) -> None:
    learning.cycle(HELD_BACK, HELD_BACK)
    learning.admitting.actuator.policies = Policies(SIZED_TOO)
    learning.admitting.cycle(sized(), minutes=learning.minute)
    assert learning.made()[1].endswith("times: app 1 (2 of at least 5 starts of more than 30 s measured).")


def test_where_no_start_was_long_enough_to_be_measured_the_text_says_so(learning: Learning) -> None:
    learning.admitting.actuator.policies = Policies(SIZED_TOO)
    learning.admitting.cycle(sized())
    assert learning.made()[1].endswith("times: 1 (no start of more than 30 s was measured yet).")


def test_starts_that_stay_throttled_raise_it_step_by_step_up_to_what_the_owner_states(learning: Learning) -> None:
    limits = []
    for _ in range(5):
        learning.cycle(*[HELD_BACK] * 5)
        learning.settled()
        limits.append(learning.made()[0])
    assert limits == ["300m", "450m", "675m", "800m", "800m"]
    assert "app 4 (the CPU limit held back 5 of 5 starts with it)" in learning.made()[1]


def test_pods_that_were_made_before_a_change_are_no_evidence_about_the_new_factor(learning: Learning) -> None:
    learning.cycle(*[HELD_BACK] * 5)
    learning.cycle(*[HELD_BACK] * 5)
    learning.cycle()
    assert learning.made()[0] == "300m"


def test_after_twenty_starts_that_nothing_held_back_a_step_less_is_tried(learning: Learning) -> None:
    for shares in ([HELD_BACK] * 5, [HELD_BACK] * 5, [FREE] * 20):
        learning.cycle(*shares)
        learning.settled()
    assert learning.made()[0] == "300m"


def test_what_was_learned_outlives_the_process(learning: Learning) -> None:
    learning.cycle(*[HELD_BACK] * 5)
    learning.cycle()
    stored = NewPodsFile(learning.admitting.path).latest()
    assert stored is not None
    known = {id_: size.boosts for id_, size in stored.by_workload().items()}
    learning.admitting.actuator.starts = StartBoosts(learning.starts, known)
    learning.cycle()
    assert learning.made()[0] == "300m"


def test_while_writing_is_paused_pods_start_without_a_boost_and_nothing_is_learned(learning: Learning) -> None:
    learning.admitting.actuator.acting = learning.admitting.actuator.acting.model_copy(update={"paused": True})
    learning.cycle(*[HELD_BACK] * 5)
    assert learning.admitting.actuator.starts.known == {}


def test_after_a_source_that_was_down_all_starts_since_the_last_answer_are_read(learning: Learning) -> None:
    learning.cycle()
    learning.starts.down = True
    learning.cycle()
    learning.starts.down = False
    learning.cycle()
    assert learning.starts.spans == [MINUTE, 2 * MINUTE]


def test_a_source_that_is_down_is_reported_and_the_boost_stays(learning: Learning) -> None:
    learning.cycle(*[HELD_BACK] * 5)
    learning.starts.down = True
    learning.cycle()
    assert learning.made()[0] == "300m"
    report = learning.admitting.actuator.act(NOON + learning.minute * MINUTE)
    assert report.failures == ("CPU boosts stay as they were learned: query 'starts': no answer",)


def test_a_boost_that_the_namespace_does_not_admit_is_not_promised(learning: Learning) -> None:
    rule = {"metadata": {"name": "r", "namespace": "shop"}}
    limits = {"spec": {"limits": [{"type": "Container", "max": {"cpu": "200m"}}]}}
    cast("FakeRules", learning.admitting.actuator.cluster).limit_ranges = {"shop": [rule | limits]}
    learning.cycle(*[HELD_BACK] * 5)
    learning.cycle()
    assert learning.made() == ("200m", "")


@given(st.lists(st.lists(st.floats(0, 1), max_size=8), max_size=60), st.floats(1.01, 20))
def test_whatever_starts_look_like_the_factor_lies_between_one_and_what_is_stated(
    cycles: list[list[float]], most: float
) -> None:
    boost, now = LearnedBoost(), NOON
    for shares in cycles:
        boost, now = learned(boost, shares, now, most), now + 6 * MINUTE
        assert 1.0 <= boost.factor <= most


def test_what_is_learned_needs_a_largest_factor() -> None:
    with pytest.raises(ValueError, match="startup_learned needs startup_boost, the largest multiple"):
        Policy.model_validate({"vertical": {"mode": "initial", "startup_learned": True}})
