"""Gates in the cycle: whose policy asks for one is judged in its turn, by its own days."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.decisions.gate import Standing
from forecaster.demand.yesterday import Yesterday
from forecaster.domain.history import Inventory
from forecaster.domain.policies import Policies
from forecaster.domain.window import FIVE_MINUTES, Window
from forecaster.steps.gates import Gates
from forecaster.steps.targets import Targets
from tests.support.builders import NOON, minutes, policy, workload

if TYPE_CHECKING:
    from datetime import timedelta

GATED = Policies(policy(gate=True))
WEB, CART = workload("web"), workload("cart")


class Weeks:
    """A history that has nothing but five-minute points."""

    def __init__(self, values: np.ndarray, *names: str) -> None:
        keys = tuple(workload(name).id for name in names)
        start = NOON - (values.shape[1] - 1) * FIVE_MINUTES
        self.weeks = Window(keys, start, FIVE_MINUTES, values.astype(np.float32))

    def window(self, signal: object, step: timedelta) -> Window:
        return self.weeks


def daily(days: int) -> np.ndarray:
    """A peak of five pods for ten minutes at the same time each day, on a load of one and a half."""
    bins = np.arange(days * 288)
    return np.where(bins % 288 % 144 < 2, 2.4, 0.7) + 0.01 * np.sin(bins)


def renewed(gates: Gates, history: Weeks, *workloads: object, under: Policies = GATED, times: int = 1) -> list[str]:
    targets = Targets(Inventory(NOON, workloads))
    return [line for _ in range(times) for line in gates.renew(history, under, targets, NOON)]


def test_nobody_is_judged_whose_policy_asks_for_no_gate() -> None:
    gates = Gates()
    assert renewed(gates, Weeks(daily(6)[None], "web"), WEB, under=Policies(policy())) == []
    assert gates.known == {}


def test_a_workload_without_days_behind_it_is_observed() -> None:
    gates = Gates()
    assert renewed(gates, Weeks(daily(1)[None], "web"), WEB) == []
    assert gates.of(WEB.id).standing is Standing.OBSERVE


def test_a_forecast_that_sees_the_daily_peak_coming_is_let_in_and_it_is_said() -> None:
    gates = Gates()
    lines = renewed(gates, Weeks(daily(8)[None], "web"), WEB)
    assert gates.of(WEB.id).standing is Standing.ACTING
    assert lines[0].startswith("shop/web: observe to acting")


def test_a_few_at_a_time_and_everyone_has_his_turn() -> None:
    gates, history = Gates(at_once=1), Weeks(np.stack([daily(8), daily(8)]), "web", "cart")
    renewed(gates, history, WEB, CART)
    assert len(gates.known) == 1
    renewed(gates, history, WEB, CART)
    assert set(gates.known) == {WEB.id, CART.id}


def test_who_is_gone_is_forgotten() -> None:
    gates, history = Gates(), Weeks(np.stack([daily(4), daily(4)]), "web", "cart")
    renewed(gates, history, WEB, CART)
    renewed(gates, history, CART)
    assert set(gates.known) == {CART.id}


def test_yesterday_is_the_largest_of_the_same_minutes_a_day_ago() -> None:
    values = np.zeros((1, 600))
    values[0, 600 - 1 - 288 + 1] = 7.0
    one = Yesterday(Weeks(values, "web").weeks)
    assert one.peak(WEB.id, NOON + minutes(3), NOON + minutes(6)) == 7.0
    assert one.peak(WEB.id, NOON + minutes(20), NOON + minutes(26)) == 0.0
    assert one.peak(CART.id, NOON, NOON + minutes(6)) is None
