"""The sentences say what the numbers say, also when they are not in our favour."""

from __future__ import annotations

from datetime import timedelta

from forecaster.app.demo_comparison import FloorComparison
from forecaster.replay.account import Account
from forecaster.report.demo_summary import percent, verdict
from tests.support.recommendations import workload_id

WEB, API = workload_id("web"), workload_id("api")


def account(pod_hours: float, missing: float) -> Account:
    return Account(pod_hours, timedelta(days=1), timedelta(minutes=10 * missing), 1000.0, missing)


def one(*, plain: float, floored: float, equal: float | None) -> FloorComparison:
    return FloorComparison(account(100, plain), account(110, floored), None if equal is None else account(110, equal))


def said(**compared: FloorComparison) -> str:
    ids = {"web": WEB, "api": API}
    return " ".join(verdict({ids[name]: value for name, value in compared.items()}))


def test_cost_and_shortage_stand_side_by_side() -> None:
    text = said(web=one(plain=4.0, floored=1.0, equal=2.0))
    assert "+10.0% pod-hours" in text
    assert "10 instead of 40 workload-minutes" in text
    assert "0.100% instead of 0.400%" in text


def test_what_is_better_at_equal_cost_is_said_with_its_share() -> None:
    assert "removed 50% of what was short" in said(web=one(plain=4.0, floored=1.0, equal=2.0))


def test_what_is_worse_at_equal_cost_is_said_too() -> None:
    text = said(web=one(plain=4.0, floored=3.0, equal=2.0))
    assert "the worse way to spend them" in text
    assert "The plain HPA alone does better on shop/web" in text


def test_what_is_no_different_is_no_merit() -> None:
    assert "no more than those pods bring" in said(web=one(plain=4.0, floored=2.05, equal=2.0))
    assert "no more than those pods bring" in said(web=one(plain=0.0, floored=0.0, equal=0.0))


def test_workloads_that_lose_are_named_even_when_the_sum_wins() -> None:
    text = said(web=one(plain=9.0, floored=1.0, equal=6.0), api=one(plain=2.0, floored=1.5, equal=1.0))
    assert "removed" in text
    assert "The plain HPA alone does better on shop/api." in text


def test_without_a_figure_at_equal_cost_nothing_is_claimed() -> None:
    text = said(web=one(plain=4.0, floored=1.0, equal=None))
    assert "no figure at equal cost" in text
    assert "removed" not in text


def test_no_share_is_a_dash() -> None:
    assert percent(None) == "–"
