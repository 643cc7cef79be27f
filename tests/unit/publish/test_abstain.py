from __future__ import annotations

from datetime import timedelta

import pytest

from forecaster.publish.values import ORDER, AbstainInputs, MetricReader, abstained

YOUNG = AbstainInputs(
    last=6.4,
    age=timedelta(minutes=2),
    last_for=timedelta(minutes=10),
    reader=MetricReader(0.5),
    replicas_now=7,
    replicas_held=9,
)
OLD = YOUNG._replace(age=timedelta(minutes=11))


@pytest.mark.parametrize(
    ("policy", "situation", "expected"),
    [
        ("auto", YOUNG, ("last", 6.4)),
        ("auto", OLD, ("neutral", 3.5)),
        ("auto", YOUNG._replace(replicas_now=13), ("neutral", 6.5)),
        ("auto", YOUNG._replace(replicas_now=0), ("last", 6.4)),
        ("last", YOUNG, ("last", 6.4)),
        ("last", OLD, None),
        ("neutral", YOUNG, ("neutral", 3.5)),
        ("hold", YOUNG, ("hold", 4.5)),
        ("fail", YOUNG, None),
    ],
)
def test_each_policy_says_what_its_table_promises(
    policy: str, situation: AbstainInputs, expected: tuple[str, float] | None
) -> None:
    assert abstained(policy, situation) == expected


def test_a_last_value_is_repeated_up_to_its_age_and_no_longer() -> None:
    at_limit = YOUNG._replace(age=YOUNG.last_for)
    assert abstained("last", at_limit) is not None
    assert abstained("last", at_limit._replace(age=YOUNG.last_for + timedelta(microseconds=1))) is None


def test_a_target_for_all_replicas_together_is_kept_by_the_target_itself() -> None:
    """A `Value` target scales by value / target: at the target nothing moves, whatever the count."""
    assert abstained("neutral", YOUNG._replace(reader=MetricReader(0.5, per_replica=False))) == ("neutral", 0.5)


@pytest.mark.parametrize("policy", ORDER)
def test_without_a_known_reader_no_count_can_be_kept(policy: str) -> None:
    assert abstained(policy, OLD._replace(reader=None)) is None


@pytest.mark.parametrize("policy", ORDER)
def test_at_no_replicas_nothing_is_said_rather_than_0(policy: str) -> None:
    assert abstained(policy, OLD._replace(replicas_now=0, replicas_held=0)) is None


def test_a_count_out_of_date_is_not_kept_but_one_that_was_pinned_is() -> None:
    unseen = OLD._replace(replicas_now=None)
    assert abstained("auto", unseen) is None
    assert abstained("auto", YOUNG._replace(replicas_now=None)) is None, "it may be lower than what a person asked for"
    assert abstained("hold", unseen) == ("hold", 4.5)
