"""CPU sizes of containers with two weeks of usage, in cores at five-minute points."""

from __future__ import annotations

import numpy as np
import pytest

from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.vertical.sizing.cpu import cpu_sizes
from forecaster.vertical.sizing.panel import ContainerPanel, SizeColumns

POINTS = 288
DAYS = 14
UNKNOWN = np.array([np.nan])
FREE = VerticalPolicy(change_price=0, cpu_limit="none")
UNIFORM = np.random.default_rng(2).permutation(np.linspace(0, 2, DAYS * POINTS))


def sizes(cpu: np.ndarray, policy: VerticalPolicy = FREE, *, growth: float = 1.0, **today: float) -> SizeColumns:
    stated = {name: np.array([today.get(name, np.nan)]) for name in ("cpu_request", "cpu_limit")}
    quiet = np.full((1, cpu.size), np.nan)
    given = ContainerPanel(
        cpu[None], quiet, POINTS, **stated, memory_request=UNKNOWN, memory_limit=UNKNOWN,
        oom_floor=np.zeros(1), growth=np.array([growth]),
    )  # fmt: skip
    return cpu_sizes(given, policy)


def bursts(share: float, low: float = 0.1, high: float = 2.0) -> np.ndarray:
    """Usage that is at the high level for this share of every day."""
    day = np.where(np.arange(POINTS) < share * POINTS, high, low)
    return np.tile(day, DAYS)


def test_a_flat_load_is_requested_as_it_is() -> None:
    assert sizes(np.full(DAYS * POINTS, 0.5)).request[0] == pytest.approx(0.5)


def test_seldom_bursts_are_not_worth_a_request() -> None:
    assert sizes(bursts(0.02)).request[0] == pytest.approx(0.1)


def test_frequent_bursts_are() -> None:
    assert sizes(bursts(0.5)).request[0] == pytest.approx(2.0)


def test_a_dearer_hour_above_the_request_raises_it() -> None:
    lognormal = np.random.default_rng(1).lognormal(-1, 0.5, DAYS * POINTS)
    requests = [
        sizes(lognormal, VerticalPolicy(throttle_price=price, change_price=0)).request[0] for price in (1, 8, 100)
    ]
    assert requests == sorted(requests)


def test_the_share_of_time_above_stands_beside() -> None:
    assert sizes(bursts(0.02)).over_request[0] == pytest.approx(0.02, abs=0.011)


def test_a_load_that_grows_grows_the_request() -> None:
    assert sizes(np.full(DAYS * POINTS, 0.5), growth=1.5).request[0] == pytest.approx(0.75)


class TestLimit:
    def test_keeps_its_ratio(self) -> None:
        policy = VerticalPolicy(change_price=0)
        assert sizes(np.full(DAYS * POINTS, 0.5), policy, cpu_request=1, cpu_limit=3).limit[0] == pytest.approx(1.5)

    def test_that_is_absent_stays_absent(self) -> None:
        assert np.isnan(sizes(np.full(DAYS * POINTS, 0.5), VerticalPolicy(), cpu_request=1).limit[0])

    def test_cuts_off_no_more_than_the_target(self) -> None:
        """If usage is uniform from 0 to 2, (1 - x/2)^2 of the core-hours lie above x, which is 1 % at 1.8."""
        target = VerticalPolicy(change_price=0, cpu_limit="throttle-target", throttle_target=0.01, throttle_price=0.1)
        assert sizes(UNIFORM, target).limit[0] == pytest.approx(1.8, abs=0.05)

    def test_is_never_below_the_request(self) -> None:
        target = VerticalPolicy(change_price=0, cpu_limit="throttle-target", throttle_target=0.5, throttle_price=1000)
        sized = sizes(UNIFORM, target)
        assert sized.limit[0] >= sized.request[0]


class TestStaticCpus:
    STATIC = VerticalPolicy(change_price=0, static_cpus=True)

    @pytest.mark.parametrize(("used", "cores"), [(1.2, 2.0), (2.0, 2.0), (0.1, 1.0)])
    def test_are_whole_and_the_limit(self, used: float, cores: float) -> None:
        sized = sizes(np.full(DAYS * POINTS, used), self.STATIC)
        assert (sized.request[0], sized.limit[0]) == (cores, cores)

    def test_a_limit_that_is_near_is_changed_as_it_keeps_the_pod_from_cpus_of_its_own(self) -> None:
        sized = sizes(np.full(DAYS * POINTS, 20.0), self.STATIC, cpu_request=20.0, cpu_limit=21.0)
        assert (sized.request[0], sized.limit[0], bool(sized.unchanged[0])) == (20.0, 20.0, False)


def test_today_is_kept_where_a_change_gains_too_little() -> None:
    sized = sizes(np.full(DAYS * POINTS, 0.5), VerticalPolicy(), cpu_request=0.55)
    assert (sized.request[0], bool(sized.unchanged[0])) == (0.55, True)


def test_a_pod_that_does_nothing_keeps_the_least() -> None:
    assert sizes(np.zeros(DAYS * POINTS), VerticalPolicy(min_cpu=0.02)).request[0] == 0.02


def test_nothing_known_is_no_number() -> None:
    assert np.isnan(sizes(np.full(DAYS * POINTS, np.nan)).request[0])
