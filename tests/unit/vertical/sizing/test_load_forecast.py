"""The coming load of a pod, compared with the days that sizes are learned from."""

from __future__ import annotations

import numpy as np
import pytest

from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.window import FIVE_MINUTES
from forecaster.domain.workload import Resources
from forecaster.vertical.sizing.containers import ContainerSpec, choose
from forecaster.vertical.sizing.load_forecast import (
    MOST,
    LoadForecast,
    PeakQuantiles,
    PodCounts,
    PodLoad,
    load_forecast,
)

DAY = 288
FIXED = PodCounts(np.full(1, 4.0), np.full(1, np.nan), np.ones(1), np.ones(1))
"""Counts of a workload with four pods that nothing scales."""
SCALED = PodCounts(np.full(1, 4.0), np.full(1, 0.5), np.full(1, 2.0), np.full(1, 20.0))
"""Counts of an HPA with a target of half a core a pod, between two and twenty pods."""


def load_ahead(
    forecast: float, *peaks: float, counts: PodCounts = FIXED, pods: float = 4.0, ahead: int = DAY
) -> LoadForecast:
    """Compare a forecast peak with days that have these peaks at noon over a quiet core, the newest last."""
    total = np.ones((1, DAY * len(peaks)))
    total[0, DAY // 2 :: DAY] = peaks
    quantiles = PeakQuantiles(*(np.array([forecast * factor]) for factor in (0.9, 1.0, 1.2)))
    return load_forecast(quantiles, total, np.full_like(total, pods), counts, DAY, ahead)


def growth_of(load: LoadForecast) -> float:
    return float(load.growth[0])


def test_days_like_the_forecast_one_weigh_more() -> None:
    quiet, busy = load_ahead(8.0, 8.0, 4.0).likeness[0]
    assert busy == pytest.approx(1.0)
    assert quiet < 0.1


def test_a_container_without_a_forecast_changes_no_days_of_another_one() -> None:
    """Containers of one policy are sized together, and only some of their workloads have a forecast."""
    cpu = np.repeat([0.5, 0.5, 2.0], DAY)[None]
    forecast, unknown = (ContainerSpec(Resources(), load=PodLoad(likeness=days)) for days in ((0.01, 1.0, 1.0), ()))

    def requests(*specs: ContainerSpec) -> list[float | None]:
        usage = np.repeat(cpu, len(specs), axis=0)
        sizing = choose(usage, usage, FIVE_MINUTES, specs, VerticalPolicy(cpu_limit="none"))
        return [container.cpu.request if container.cpu else None for container in sizing]

    assert requests(forecast, unknown) == [*requests(forecast), *requests(unknown)] == [0.5, 2.0]


def test_no_day_is_silenced_for_good() -> None:
    assert load_ahead(8.0, 0.001, 8.0).likeness.min() > 0.01


def test_a_day_like_one_that_is_known_grows_nothing() -> None:
    assert growth_of(load_ahead(5.0, 4.0, 8.0, 6.0)) == 1.0


def test_more_than_any_day_had_raises_by_as_much() -> None:
    assert growth_of(load_ahead(9.6, 4.0, 8.0, 6.0)) == pytest.approx(1.2)


def test_less_than_any_day_had_lowers_by_as_much_unless_it_may_only_raise() -> None:
    load = load_ahead(3.0, 4.0, 8.0, 6.0)
    assert growth_of(load) == pytest.approx(0.75)
    raising = load.only_raising()
    assert (growth_of(raising), raising.likeness.tolist(), float(raising.ratio[0])) == (1.0, [[1.0] * 3], 1.0)


def test_however_much_is_forecast_there_is_a_bound() -> None:
    assert growth_of(load_ahead(800.0, 4.0, 8.0)) == MOST


def test_within_its_bounds_an_hpa_keeps_the_load_of_a_pod() -> None:
    load = load_ahead(9.6, 4.0, 8.0, counts=SCALED)
    assert growth_of(load) == pytest.approx(1.0)
    assert float(load.ratio[0]) == pytest.approx(1.0)
    assert load.likeness == pytest.approx(np.ones((1, 2)))


def test_beyond_its_maximum_it_does_not() -> None:
    at_most = PodCounts(SCALED.pods, SCALED.per_pod, SCALED.least, np.full(1, 10.0))
    assert growth_of(load_ahead(6.0, 3.0, 4.0, counts=at_most)) == pytest.approx(6 / 10 / 0.5)


def test_pods_that_have_gone_leave_their_load_to_the_others() -> None:
    assert growth_of(load_ahead(8.0, 8.0, 8.0, pods=8.0)) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "load", [load_ahead(np.nan, 4.0, 8.0), load_ahead(4.0, 4.0, pods=0.0)], ids=["no forecast", "no pods"]
)
def test_nothing_known_changes_nothing(load: LoadForecast) -> None:
    assert (growth_of(load), float(load.ratio[0])) == (1.0, 1.0)
    assert (load.likeness == 1.0).all()


def test_only_the_coming_hours_are_compared() -> None:
    """The next six hours have no noon, and the hours just past count as a day of their own."""
    load = load_ahead(1.0, 8.0, 8.0, ahead=DAY // 4)
    assert load.likeness.shape == (1, 3)
    assert growth_of(load) == pytest.approx(1.0)
