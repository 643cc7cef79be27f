"""What earlier forecasts covered moves the level that the next ones are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.signal import CPU as CPU_SIGNAL
from forecaster.horizontal.quantile import MIN_SCORES, Coverage, Held, Level
from tests.support.recommendations import workload_id

if TYPE_CHECKING:
    from forecaster.domain.workload import WorkloadId

WEB, CART = workload_id("web"), workload_id("cart")
CPU = CPU_SIGNAL


def seen(matured: int, share: float, *, of: WorkloadId = WEB, into: Coverage | None = None) -> Coverage:
    """So many p90s, of which about this share held, evenly spread."""
    coverage = into or Coverage()
    for i in range(matured):
        coverage.matured(of, CPU, 0.9, covered=int((i + 1) * share) > int(i * share))
    return coverage


def test_a_p90_that_covered_too_little_is_asked_for_as_what_lies_beyond_and_says_so() -> None:
    level = Coverage.of({(WEB, CPU): Held(0.9, 210, 176.4)}).level(WEB, CPU, 0.9)
    assert level.value == pytest.approx(0.939, abs=0.001)
    assert level.why == "p90 asked as p93.9: 84% of 210 peaks were covered, 84% of those of all workloads"


def test_one_that_covered_too_much_is_asked_for_as_less() -> None:
    assert seen(300, 0.97).level(WEB, CPU, 0.9).value < 0.86


def test_one_that_held_as_stated_stays() -> None:
    assert seen(300, 0.9).level(WEB, CPU, 0.9) == Level(0.9)


def test_a_few_forecasts_move_nothing() -> None:
    assert seen(MIN_SCORES, 0.5).level(WEB, CPU, 0.9) == Level(0.9)
    assert seen(2 * MIN_SCORES, 0.5).level(WEB, CPU, 0.9).value > 0.9


def test_a_workload_that_nobody_has_scored_is_asked_for_as_stated() -> None:
    assert seen(300, 0.5).level(CART, CPU, 0.9) == Level(0.9)


def test_all_workloads_together_pull_one_that_was_unlucky_back() -> None:
    alone = seen(100, 0.7)
    among = seen(2000, 0.9, of=CART, into=seen(100, 0.7))
    assert 0.9 < among.level(WEB, CPU, 0.9).value < alone.level(WEB, CPU, 0.9).value


def test_it_forgets_how_forecasts_were_long_ago() -> None:
    coverage = seen(1000, 0.5)
    for _ in range(2000):
        seen(10, 0.9, into=coverage)
    assert coverage.held[WEB, CPU].share == pytest.approx(0.9, abs=0.02)


def test_another_quantile_begins_anew() -> None:
    coverage = seen(300, 0.5)
    coverage.matured(WEB, CPU, 0.8, covered=True)
    assert coverage.level(WEB, CPU, 0.8) == Level(0.8)
    assert coverage.pooled[CPU, 0.9].matured == pytest.approx(0.0, abs=1e-9)


def test_who_is_gone_is_forgotten_by_the_sums_too() -> None:
    coverage = seen(300, 0.9, of=CART, into=seen(300, 0.5))
    coverage.forget_others({CART})
    assert set(coverage.held) == {(CART, CPU)}
    assert coverage.pooled[CPU, 0.9].share == pytest.approx(0.9, abs=0.01)


@given(st.floats(0.5, 0.99), st.floats(0, 1), st.floats(MIN_SCORES, 400))
def test_the_level_is_bounded_and_moves_against_the_miss(quantile: float, share: float, matured: float) -> None:
    value = Coverage.of({(WEB, CPU): Held(quantile, matured, share * matured)}).level(WEB, CPU, quantile).value
    odds, stated = value / (1 - value), quantile / (1 - quantile)
    assert stated / 3.001 <= odds <= 3.001 * stated
    assert (value >= quantile - 0.006) if share <= quantile else (value <= quantile + 0.006)
