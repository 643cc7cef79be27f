"""Valid settings that do not do what they seem to."""

from __future__ import annotations

import pytest

from forecaster.hpa.behavior import ScalingRules
from forecaster.hpa.cautions import cautions, counts_out_of_reach
from forecaster.hpa.pods import PodContainer
from forecaster.hpa.proposals import DEFAULT_TOLERANCE, Tolerance, per_pod_value
from forecaster.hpa.spec import CrossVersionObjectReference, HpaSpec
from tests.support.hpa import CPU, QUEUE, both, hpa, pod, policy, rules


def codes(spec: HpaSpec, replicas: int = 5, **more: object) -> list[str]:
    return [caution.code for caution in cautions(spec, replicas, **more)]  # type: ignore[arg-type]


def hidden(replicas: int, tolerance: Tolerance) -> tuple[int, ...]:
    return tuple(n for n in counts_out_of_reach(replicas, tolerance) if n != replicas)


def test_a_plain_hpa_has_nothing_to_beware_of() -> None:
    assert not codes(hpa())


@pytest.mark.parametrize(
    ("replicas", "out_of_reach"),
    [(0, ()), (1, ()), (9, ()), (10, (11,)), (11, (12,)), (20, (19, 21, 22)), (30, (28, 29, 31, 32, 33))],
)
def test_counts_that_the_tolerance_hides(replicas: int, out_of_reach: tuple[int, ...]) -> None:
    assert hidden(replicas, DEFAULT_TOLERANCE) == out_of_reach


def test_counts_out_of_reach_are_those_that_no_load_leads_to() -> None:
    for replicas in (1, 7, 10, 20, 33):
        reached = {per_pod_value(load, 1000, replicas, DEFAULT_TOLERANCE).replicas for load in range(0, 80_000, 7)}
        assert set(hidden(replicas, DEFAULT_TOLERANCE)) == set(range(1, replicas + 10)) - reached


def test_no_tolerance_hides_nothing() -> None:
    assert hidden(50, Tolerance(0.0, 0.0)) == ()


def test_a_huge_tolerance_and_a_huge_size_are_answered_at_once() -> None:
    most = 2**31 - 1
    assert 2_000_000_001 in counts_out_of_reach(most, Tolerance(1e9, 0.1))
    lazy = both(None, ScalingRules((policy("Pods", 1),), tolerance=1e9))
    assert "at 1000000000 replicas" in cautions(hpa(high=most, behavior=lazy), 1_000_000_000)[0].sentence


def test_hidden_counts_are_told_where_the_bounds_allow_them() -> None:
    (caution,) = cautions(hpa(), 20)
    assert str(caution) == (
        "out-of-reach: at 20 replicas the tolerance holds ratios 0.9 to 1.1, so 19, 21, 22 replicas cannot be reached "
        "in one pass; set behavior.scaleUp.tolerance or scaleDown.tolerance lower"
    )
    assert "28, 29, 31 and more replicas" in cautions(hpa(), 30)[0].sentence
    assert "out-of-reach" not in codes(hpa(low=2, high=18), 20)


def test_a_tolerance_of_one_never_scales_down() -> None:
    lazy = both(None, ScalingRules((policy("Pods", 1),), tolerance=1.0))
    assert "never-scales-down" in codes(hpa(behavior=lazy), 1)
    almost = both(None, ScalingRules((policy("Pods", 1),), tolerance=0.999))
    assert "never-scales-down" not in codes(hpa(behavior=almost), 1)


def test_a_window_up_delays_each_rise() -> None:
    assert codes(hpa(behavior=both(rules(policy("Pods", 1), window_s=60)))) == ["window-delays-rises"]
    assert not codes(hpa(behavior=both()))


def test_equal_bounds_never_scale() -> None:
    assert codes(hpa(low=5, high=5)) == ["fixed-size"]


def test_one_pod_without_a_request_stops_utilization() -> None:
    bare = pod("bare", containers=(PodContainer("app"),))
    (caution,) = cautions(hpa(QUEUE, CPU), 2, pods=[pod(), bare])
    assert caution.code == "missing-requests"
    assert caution.sentence.startswith("missing request for cpu in container app of Pod bare")
    assert not codes(hpa(QUEUE), 2, pods=[bare])
    assert not codes(hpa(CPU), 2, pods=[pod()])


def test_two_hpas_on_one_target() -> None:
    mine = hpa()
    twin = HpaSpec(mine.scale_target, 5, (QUEUE,), name="twin", namespace="web")
    elsewhere = HpaSpec(mine.scale_target, 5, (QUEUE,), name="twin", namespace="other")
    another = HpaSpec(CrossVersionObjectReference("Deployment", "cart"), 5, (QUEUE,), name="cart", namespace="web")
    (caution,) = cautions(mine, 5, others=[mine, twin, elsewhere, another])
    assert caution.sentence == ("twin scales Deployment shop too; both stop with AmbiguousSelector, keep one")
    assert not codes(mine, others=[mine, elsewhere, another])


def test_vertical_scaling_of_the_same_signal() -> None:
    assert codes(hpa(CPU), vertical_resources=frozenset({"cpu"})) == ["same-signal-as-vertical"]
    assert not codes(hpa(CPU), vertical_resources=frozenset({"memory"}))
    assert not codes(hpa(QUEUE), vertical_resources=frozenset({"queue"}))
