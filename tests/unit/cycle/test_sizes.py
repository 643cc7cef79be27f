from __future__ import annotations

import numpy as np
import pytest

from forecaster.cycle.containers import Containers
from forecaster.cycle.sizes import SIZING_ROUNDS, PodSizes
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy, PolicySelector
from forecaster.domain.signal import BUILT_IN
from forecaster.domain.window import FIVE_MINUTES, Block
from forecaster.store.history import HistoryStore
from forecaster.vertical.sizing.containers import NO_SIZING
from tests.support.builders import GIB, NOON, workload, workload_id
from tests.support.fakes import SHORT

WEB, CART = workload("web"), workload("cart")
DAY = 288


def history(**rows: np.ndarray) -> HistoryStore:
    """A store with these five-minute points of the web."""
    store = HistoryStore(BUILT_IN.measured, SHORT, now=NOON)
    for signal, values in rows.items():
        start = NOON - (len(values) - 1) * FIVE_MINUTES
        store.write(Block(BUILT_IN.by_name[signal], (WEB.id,), start, FIVE_MINUTES, values[None, :]))
    return store


def a_day(cpu: float = 2.0) -> HistoryStore:
    return history(cpu=np.full(DAY, cpu), memory=np.full(DAY, GIB), pods=np.full(DAY, 4.0))


def renewed(store: HistoryStore, policies: Policies | None = None) -> PodSizes:
    sizes = PodSizes()
    sizes.renew(store, Containers(), policies or Policies(Policy()), [WEB, CART])
    return sizes


def request_of(sizes: PodSizes) -> float:
    (container,) = sizes.of(WEB.id)
    assert container.cpu is not None
    return container.cpu.request


def test_sizes_are_those_of_one_pod() -> None:
    (container,) = renewed(a_day()).of(WEB.id)
    assert container.memory is not None
    assert (request_of(renewed(a_day())), container.days) == (0.5, 1.0)
    assert 0.25 * GIB < container.memory.request < 0.5 * GIB


def test_prices_are_those_of_the_policy() -> None:
    rising = history(cpu=np.linspace(0, 4, DAY), pods=np.ones(DAY))
    cheap = Policies(Policy(), ((PolicySelector(name="web"), {"vertical": {"throttle_price": 1.5}}),))
    assert request_of(renewed(rising, cheap)) < request_of(renewed(rising)) == pytest.approx(4.0)


def test_a_workload_without_history_has_no_size() -> None:
    (container,) = renewed(a_day()).of(CART.id)
    assert (container.cpu, container.memory, container.days) == (None, None, 0.0)


def test_a_workload_that_nobody_looked_at_has_no_size() -> None:
    assert PodSizes().of(WEB.id) == NO_SIZING


def test_each_workload_is_looked_at_again_within_so_many_rounds() -> None:
    sizes, policies = renewed(a_day()), Policies(Policy())
    for _ in range(SIZING_ROUNDS):
        sizes.renew(a_day(cpu=8.0), Containers(), policies, [WEB, CART])
    assert request_of(sizes) == 2.0


def test_a_workload_that_is_away_keeps_its_size_and_many_that_are_gone_do_not() -> None:
    sizes, policies = renewed(a_day()), Policies(Policy())
    for _ in range(SIZING_ROUNDS):
        sizes.renew(a_day(), Containers(), policies, [WEB])
    assert set(sizes.known) == {WEB.id, CART.id}
    sizes.known |= {workload_id(f"gone-{i}"): NO_SIZING for i in range(3)}
    for _ in range(SIZING_ROUNDS):
        sizes.renew(a_day(), Containers(), policies, [WEB])
    assert set(sizes.known) == {WEB.id}


def test_a_fleet_gets_its_first_sizes_over_several_cycles() -> None:
    sizes = PodSizes(first=1)
    sizes.renew(a_day(), Containers(), Policies(Policy()), [WEB, CART])
    assert set(sizes.known) == {WEB.id}
    sizes.renew(a_day(), Containers(), Policies(Policy()), [WEB, CART])
    assert set(sizes.known) == {WEB.id, CART.id}
