"""Promises for the offer of every decision."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given

from forecaster.domain.policy import Policy
from forecaster.horizontal.decide import decide as decide_columns
from forecaster.publish.decided import decided_columns
from forecaster.publish.offer import DECIDED, DecidedColumns, offered
from tests.property.test_horizontal_decide import CASES, Case
from tests.support.builders import NOON
from tests.support.horizontal import decide
from tests.support.one_row import Subject, inputs_of_one
from tests.support.published import FleetOfOne


def fleet(case: Case) -> FleetOfOne:
    recommendation, _ = decide(case.workload, case.outlooks, case.policy, case.state, NOON)
    subject = Subject(case.workload, case.policy.horizontal, case.outlooks)
    decisions, _ = decide_columns(inputs_of_one(subject, NOON), case.state, NOON.timestamp())
    return FleetOfOne(recommendation, decisions, subject)


def columns(case: Case) -> DecidedColumns:
    policy = Policy(mode="publish", horizontal=case.policy.horizontal)
    decided = fleet(case)
    return decided_columns(NOON, decided, [policy], decided.signals)


@given(CASES)
def test_a_reader_of_demand_gets_the_count_that_a_clamp_made(case: Case) -> None:
    decided = columns(case)
    demand, count = offered(decided).numbers("demand"), int(decided.count[0])
    for signal in range(len(decided.signals)):
        pod, value = float(decided.pod[signal, 0]), float(demand.value[signal, 0])
        if decided.status[0] != DECIDED or math.isnan(value) or math.isnan(pod):
            continue
        read = math.ceil(round(value / pod, 6))
        assert decided.count[0] <= decided.joined[0] or read >= count
        assert decided.count[0] >= decided.joined[0] or read <= count


@given(CASES)
def test_without_a_clamp_no_demand_is_below_what_is_measured_unless_the_policy_says_so(case: Case) -> None:
    decided = columns(case)
    offers = offered(decided)
    restrained = decided.count < decided.joined
    for signal in range(len(decided.signals)):
        if not decided.lowers[0] and not restrained[0] and not np.isnan(decided.measured[signal, 0]):
            most = decided.maximum[0] * decided.pod[signal, 0]
            assert offers.numbers("demand").value[signal, 0] >= np.fmin(decided.measured[signal, 0], most)


@given(CASES)
def test_no_number_asks_for_more_than_the_policy_allows_or_there_are_while_nothing_is_decided(case: Case) -> None:
    decided = columns(case)
    offers, most = offered(decided), int(decided.maximum[0])
    highest = most if decided.status[0] == DECIDED else max(most, int(decided.current[0]))
    for signal in range(len(decided.signals)):
        demand, pod = offers.numbers("demand").value[signal, 0], decided.pod[signal, 0]
        assert np.isnan(demand) or np.isnan(pod) or demand <= highest * pod
    assert np.isnan(offers.numbers("replicas").value[0]) or offers.numbers("replicas").value[0] <= most
    assert np.isnan(offers.numbers("floor").value[0]) or offers.numbers("floor").value[0] <= most


@given(CASES)
def test_a_floor_is_never_above_a_restrained_count_and_never_unknown_where_a_clamp_raised(case: Case) -> None:
    decided = columns(case)
    offers = offered(decided)
    if decided.status[0] == DECIDED and decided.count[0] > decided.joined[0]:
        assert offers.numbers("floor").value[0] >= decided.count[0]
    if offers.numbers("floor").known[0] and decided.count[0] < decided.joined[0]:
        assert offers.numbers("floor").value[0] <= decided.count[0]
