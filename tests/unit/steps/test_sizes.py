from __future__ import annotations

import numpy as np
import pytest

from forecaster.domain.history import Block
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy, Selector
from forecaster.domain.signal import Signal
from forecaster.domain.window import FIVE_MINUTES
from forecaster.steps.sizes import ROUNDS, Sizes
from forecaster.store.history import History
from forecaster.vertical.sizing import NO_USAGE
from tests.support.builders import GIB, NOON
from tests.support.fakes import SHORT
from tests.support.recommendations import workload_id

WEB, CART = workload_id("web"), workload_id("cart")
DAY = 288


def history(**rows: np.ndarray) -> History:
    """One day of five-minute points of the web."""
    kept = History(Signal, SHORT, now=NOON)
    for signal, values in rows.items():
        start = NOON - (len(values) - 1) * FIVE_MINUTES
        kept.write(Block(Signal(signal), (WEB,), start, FIVE_MINUTES, values[None, :]))
    return kept


def a_day(cpu: float = 2.0) -> History:
    return history(cpu=np.full(DAY, cpu), memory=np.full(DAY, 4 * GIB), pods=np.full(DAY, 4.0))


def renewed(kept: History, policies: Policies | None = None) -> Sizes:
    sizes = Sizes()
    sizes.renew(kept, policies or Policies(Policy()), [WEB, CART])
    return sizes


def test_usage_is_that_of_one_pod() -> None:
    usage = renewed(a_day()).of(WEB)
    assert (usage.cpu, usage.memory, usage.days) == (0.5, GIB, 1.0)


def test_the_quantile_is_that_of_the_policy() -> None:
    rising = history(cpu=np.linspace(0, 4, DAY), pods=np.ones(DAY))
    medians = Policies(Policy(), ((Selector(name="web"), {"vertical": {"cpu_quantile": 0.5}}),))
    assert renewed(rising, medians).of(WEB).cpu == pytest.approx(2.0)
    assert renewed(rising).of(WEB).cpu == pytest.approx(3.8)


def test_a_workload_without_history_has_no_usage() -> None:
    assert renewed(a_day()).of(CART) == NO_USAGE


def test_a_workload_that_nobody_looked_at_has_no_usage() -> None:
    assert Sizes().of(WEB) == NO_USAGE


def test_each_workload_is_looked_at_again_within_so_many_rounds() -> None:
    sizes, policies = renewed(a_day()), Policies(Policy())
    for _ in range(ROUNDS):
        sizes.renew(a_day(cpu=4.0), policies, [WEB, CART])
    assert sizes.of(WEB).cpu == 1.0


def test_a_workload_that_is_gone_is_forgotten_with_the_next_look() -> None:
    sizes, policies = renewed(a_day()), Policies(Policy())
    for _ in range(ROUNDS):
        sizes.renew(a_day(), policies, [WEB])
    assert set(sizes.known) == {WEB}
