from __future__ import annotations

from datetime import timedelta

import pytest

from forecaster.serving.abstain import ORDER, Instead, Reader, Situation, instead

YOUNG = Situation(
    last=6.4,
    age=timedelta(minutes=2),
    last_for=timedelta(minutes=10),
    reader=Reader(0.5),
    replicas_now=7,
    replicas_held=9,
)
OLD = YOUNG._replace(age=timedelta(minutes=11))


@pytest.mark.parametrize(
    ("policy", "situation", "said"),
    [
        ("auto", YOUNG, Instead("last", 6.4)),
        ("auto", OLD, Instead("neutral", 3.5)),
        ("last", YOUNG, Instead("last", 6.4)),
        ("last", OLD, None),
        ("neutral", YOUNG, Instead("neutral", 3.5)),
        ("hold", YOUNG, Instead("hold", 4.5)),
        ("fail", YOUNG, None),
    ],
)
def test_each_policy_says_what_its_table_promises(policy: str, situation: Situation, said: Instead | None) -> None:
    assert instead(policy, situation) == said


def test_a_last_value_is_repeated_up_to_its_age_and_no_longer() -> None:
    at_limit = YOUNG._replace(age=YOUNG.last_for)
    assert instead("last", at_limit) is not None
    assert instead("last", at_limit._replace(age=YOUNG.last_for + timedelta(microseconds=1))) is None


def test_a_target_for_all_replicas_together_is_kept_by_the_target_itself() -> None:
    """A `Value` target scales by value / target: at the target nothing moves, whatever the count."""
    assert instead("neutral", YOUNG._replace(reader=Reader(0.5, per_replica=False))) == Instead("neutral", 0.5)


@pytest.mark.parametrize("policy", ORDER)
def test_without_a_known_reader_no_count_can_be_kept(policy: str) -> None:
    assert instead(policy, OLD._replace(reader=None)) is None


@pytest.mark.parametrize("policy", ORDER)
def test_at_no_replicas_nothing_is_said_rather_than_0(policy: str) -> None:
    assert instead(policy, OLD._replace(replicas_now=0, replicas_held=0)) is None


def test_a_count_out_of_date_is_not_kept_but_one_that_was_pinned_is() -> None:
    unseen = OLD._replace(replicas_now=None)
    assert instead("auto", unseen) is None
    assert instead("hold", unseen) == Instead("hold", 4.5)
