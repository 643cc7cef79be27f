"""The HPA's arithmetic on arrays: every digit as the scalar rules of `forecaster.hpa` have it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forecaster.horizontal.columns import Band, ceil_counts, millis, truncated
from forecaster.horizontal.inputs import Kind
from forecaster.horizontal.proposals import ReadyPods, combined, proposal
from forecaster.horizontal.row import UNKNOWN
from forecaster.hpa.numbers import MAX_INT64, ceil_to_int32, milli, truncated_quotient
from forecaster.hpa.proposals import (
    MetricProposal,
    NoRecommendation,
    Share,
    Tolerance,
    Unmeasured,
    combine,
    from_average,
    from_utilization,
    per_pod_value,
)

USAGES = st.integers(0, 10**6) | st.integers(0, 10**15) | st.integers(0, MAX_INT64)
COUNTS = st.integers(0, 2000) | st.integers(0, 2**31 - 1)
REQUESTS = st.integers(1, 10**6) | st.integers(1, 10**9)
GOALS = st.integers(1, 300) | st.integers(1, 10**9)
TOLERANCES = st.sampled_from((0.0, 0.1, 0.35, 0.5704)) | st.integers(0, 900).map(
    lambda thousandths: thousandths * 0.001
)
UTILIZATION, AVERAGE = Kind("cpu", of_request=True), Kind("cpu", of_request=False)
VALUE = Kind("requests", of_request=False, of_all_pods=True)


class Row(NamedTuple):
    """Inputs of one proposal; there are pods, and at least one of them is ready."""

    usage: int
    ready: int
    current: int
    request: int
    goal: int
    tolerance: float


@st.composite
def rows(draw: st.DrawFn) -> Row:
    current, more = draw(st.integers(1, 2000)), draw(st.integers(0, 5))
    ready = draw(st.integers(1, current + more))
    request, goal = draw(REQUESTS), draw(GOALS)
    near = st.integers(-3, 3).map(lambda off: max(0, ready * goal + off))
    share = st.integers(-3, 3).map(lambda off: max(0, ready * request * goal // 100 + off))
    return Row(draw(USAGES | near | share), ready, current, request, goal, draw(TOLERANCES))


def by_arrays(kind: Kind, drawn: list[Row]) -> list[int]:
    usage, ready, current, request, goal = (np.array(part) for part in list(zip(*drawn, strict=True))[:5])
    tolerances = np.array([row.tolerance for row in drawn])
    return proposal(kind, usage, goal, request, ReadyPods.of(ready, current), Band.of(tolerances)).tolist()


def by_rules(kind: Kind, row: Row) -> int:
    tolerance = Tolerance(row.tolerance, row.tolerance)
    ready = min(row.ready, row.current)
    starting = row.current - ready
    if kind.of_all_pods:
        return per_pod_value(row.usage, row.goal, row.current, tolerance).replicas
    if not kind.of_request:
        return from_average(row.usage, ready, row.goal, ready, row.current, tolerance, unready=starting).replicas
    unready = Share(starting, starting * row.request)
    totals = (row.usage, ready * row.request, row.goal, ready, row.current, tolerance)
    proposal = from_utilization(*totals, unready=unready)
    assert isinstance(proposal, MetricProposal)
    return proposal.replicas


@given(st.sampled_from((UTILIZATION, AVERAGE, VALUE)), st.lists(rows(), min_size=1, max_size=6))
def test_a_proposal_is_that_of_the_scalar_rules(kind: Kind, drawn: list[Row]) -> None:
    assert by_arrays(kind, drawn) == [by_rules(kind, row) for row in drawn]


@given(st.integers(0, MAX_INT64), st.integers(1, 10**9), TOLERANCES)
def test_with_no_pods_a_value_for_all_of_them_asks_for_what_it_needs(usage: int, goal: int, tolerance: float) -> None:
    row = Row(usage, 0, 0, 1, goal, tolerance)
    assert by_arrays(VALUE, [row]) == [by_rules(VALUE, row)]


PROPOSALS = st.none() | st.integers(-3, 60)


@given(st.lists(st.tuples(st.lists(PROPOSALS, min_size=3, max_size=3), st.integers(0, 60)), min_size=1, max_size=6))
def test_proposals_are_combined_as_by_the_scalar_rules(drawn: list[tuple[list[int | None], int]]) -> None:
    targets = [np.array([UNKNOWN if counts[i] is None else counts[i] for counts, _ in drawn]) for i in range(3)]
    together = combined(targets, np.array([current for _, current in drawn]))
    for row, (counts, current) in enumerate(drawn):
        sides = [Unmeasured("no_samples", "") if count is None else MetricProposal(count, 0.0) for count in counts]
        expected = combine(sides, current)
        assert together.valid[row] == (not isinstance(expected, NoRecommendation))
        if not isinstance(expected, NoRecommendation):
            assert (together.replicas[row], together.partial[row]) == (expected.replicas, expected.partial)


AMOUNTS = st.floats(0, 9e15) | st.floats(0, 100) | st.integers(0, 10**7).map(lambda millis: millis / 1000)
HALF = st.tuples(st.integers(0, 10**6), st.sampled_from((0.0, 5e-10, 4.9999e-10, 5.0001e-10, 1e-9))).map(
    lambda both: both[0] / 1000 + both[1]
)


@given(st.lists(AMOUNTS | HALF, min_size=1, max_size=8))
def test_milli_units_are_rounded_as_one_by_one(amounts: list[float]) -> None:
    assert millis(np.array(amounts)).tolist() == [milli(amount) for amount in amounts]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**40))
def test_whole_numbers_are_divided_toward_zero(dividend: int, divisor: int) -> None:
    assert truncated(np.array([dividend]), np.array([divisor])).tolist() == [truncated_quotient(dividend, divisor)]


@given(st.floats(allow_nan=False))
def test_counts_are_held_at_the_ends_of_32_bits(value: float) -> None:
    assert ceil_counts(np.array([value])).tolist() == [ceil_to_int32(value)]
