"""Recorded decisions are replayed as floors on the load that came."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import CPU, PODS
from forecaster.replay.comparison import Benefit
from forecaster.replay.realised import DecidedCount, floors_of, outcome_of
from forecaster.replay.traces import Traces
from forecaster.report.comparison import left_out_lines, sentences
from forecaster.report.comparison_view import comparison_view, print_comparison
from forecaster.report.formats import Output
from forecaster.report.printed import json_text
from tests.support.builders import NOON, after, hpa, minutes, workload
from tests.support.recommendations import workload_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.replay.comparison import Comparison

WEB, CART = workload("web", autoscaler=hpa(highest=200)), workload("cart", autoscaler=hpa(highest=200))
PAST, LENGTH = 200, 240
JUMPS = np.r_[np.full(PAST, 2.0), np.tile(np.repeat([2.0, 8.0, 2.0], [50, 10, 60]), 2)]


def outcome(*decisions: DecidedCount, pods: Sequence[float] | None = None) -> Comparison:
    values = {CPU: np.array([JUMPS, np.full(len(JUMPS), 2.0)])}
    if pods is not None:
        values[PODS] = np.array([pods, pods], float)
    traces = Traces((WEB, CART), NOON - minutes(PAST - 1), values)
    decided = {WEB.id: decisions}
    return outcome_of(traces, decided, Policies(Policy()), begin=NOON, until=after(LENGTH))


def test_the_count_in_force_is_the_last_that_was_decided_and_a_hold_leaves_it() -> None:
    decisions = [
        DecidedCount(after(-5), 3),
        DecidedCount(after(2), 5),
        DecidedCount(after(3), None),
        DecidedCount(after(4), 2),
    ]
    assert floors_of(decisions, NOON, 6).tolist() == [3, 3, 5, 5, 2, 2]


def test_a_decision_between_two_minutes_counts_from_the_next() -> None:
    assert floors_of([DecidedCount(after(1.5), 5)], NOON, 4).tolist() == [0, 0, 5, 5]


def test_decisions_ahead_of_every_jump_are_worth_their_pods() -> None:
    comparison = outcome(
        DecidedCount(after(-1), 1),
        DecidedCount(after(45), 16),
        DecidedCount(after(62), 1),
        DecidedCount(after(165), 16),
    )
    (compared,) = comparison.workloads
    assert compared.curves["hpa"].own.missing > 0
    assert compared.curves["decided"].own.missing == 0
    assert compared.benefit("decided") is Benefit.BETTER
    assert comparison.left_out == {CART.id: "no decision about it is recorded for that time"}


def test_decisions_after_every_jump_are_named_as_a_loss() -> None:
    comparison = outcome(DecidedCount(after(-1), 1), DecidedCount(after(60), 30), DecidedCount(after(150), 1))
    (compared,) = comparison.worse("decided")
    assert compared.workload is WEB
    assert "worse than the HPA alone on 1 of 1 workload: shop/web" in sentences(comparison)[0]


def test_the_measured_pods_stand_beside_the_decisions() -> None:
    pods = np.full(len(JUMPS), 4.0)
    (compared,) = outcome(DecidedCount(NOON, 1), pods=pods).workloads
    measured = compared.curves["measured"].own
    assert measured.pod_hours == pytest.approx(4.0 * LENGTH / 60)
    assert measured.missing == pytest.approx(20 * 4.0 / 60)


def test_machines_get_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    comparison = outcome(DecidedCount(NOON, 6))
    view = comparison_view(comparison)
    print_comparison(comparison, Output.JSON)
    assert msgspec.json.decode(capsys.readouterr().out) == msgspec.json.decode(json_text(view))
    print_comparison(comparison, Output.TABLE)
    assert "better on 1, the same on none" in capsys.readouterr().out


def test_without_decisions_nothing_is_compared() -> None:
    assert sentences(replace(outcome(), workloads=[]))[0].endswith("nothing could be compared.")


def test_what_is_left_out_is_grouped_by_its_reason() -> None:
    reasons = {workload_id(f"w{i}"): "no HPA scales it" for i in range(7)} | {workload_id("x"): "no request"}
    assert left_out_lines(reasons) == [
        "Left out, no HPA scales it: 7 workloads: shop/w0, shop/w1, shop/w2, shop/w3, shop/w4 and 2 more",
        "Left out, no request: 1 workload: shop/x",
    ]


def test_time_before_the_first_decision_is_not_judged() -> None:
    """The service was installed within the week, so the days before do not count."""
    comparison = outcome(DecidedCount(after(45.5), 16), DecidedCount(after(62), 1))
    assert comparison.begin == after(46)
    assert "12:46 to " in sentences(comparison)[1]
    assert "no decision was recorded before" in sentences(comparison)[1]
    assert comparison.own("hpa").measured == minutes(LENGTH - 46)
    assert comparison.own("decided").missing < comparison.own("hpa").missing
