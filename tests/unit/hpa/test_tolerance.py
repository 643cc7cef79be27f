from __future__ import annotations

import math

from forecaster.hpa.proposals import Tolerance


def test_the_upper_edge_is_inside_although_the_difference_is_not() -> None:
    assert Tolerance().holds(1.1)
    assert abs(1.0 - 1.1) > 0.1


def test_a_stored_tolerance_may_lie_one_ulp_above_its_decimal() -> None:
    assert Tolerance(up=570 * 0.001).holds(1.57)
    assert not Tolerance().holds(1.5)


def test_what_is_no_number_is_outside() -> None:
    assert not Tolerance().holds(math.nan)
    assert not Tolerance().holds(math.inf)


def test_each_edge_has_its_own_side() -> None:
    band = Tolerance(up=0.5, down=0.25)
    assert [band.holds(ratio) for ratio in (0.74, 0.75, 1.0, 1.5, 1.51)] == [False, True, True, True, False]
