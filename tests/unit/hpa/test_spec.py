from __future__ import annotations

from dataclasses import replace

from forecaster.hpa.behavior import Behavior
from forecaster.hpa.manifest import SCALE_DOWN, SCALE_UP, behavior_of, rules_of
from forecaster.hpa.proposals import Tolerance
from forecaster.hpa.spec import SHIPPED, Controller, FeatureGates, tolerance_of
from tests.support.hpa import policy, seconds

OWN = Behavior(rules_of({"tolerance": "200m"}, SCALE_UP), rules_of({"tolerance": "300m"}, SCALE_DOWN))


def test_each_direction_may_have_its_own_tolerance() -> None:
    assert tolerance_of(OWN, SHIPPED) == Tolerance(0.2, 0.3)
    default_up = replace(OWN, scale_up=replace(OWN.scale_up, tolerance=None))
    assert tolerance_of(default_up, Controller(tolerance=0.05)) == Tolerance(0.05, 0.3)
    default_down = replace(OWN, scale_down=replace(OWN.scale_down, tolerance=None))
    assert tolerance_of(default_down, Controller(tolerance=0.05)) == Tolerance(0.2, 0.05)


def test_without_the_gate_or_behavior_the_flag_rules() -> None:
    off = Controller(gates=FeatureGates(configurable_tolerance=False))
    assert tolerance_of(OWN, off) == tolerance_of(None, SHIPPED) == Tolerance(0.1, 0.1)


def test_gates_are_those_of_the_version() -> None:
    assert FeatureGates.of(36) == SHIPPED.gates
    assert FeatureGates.of(37) == replace(SHIPPED.gates, scale_to_zero=True)
    assert FeatureGates.of(34) == replace(SHIPPED.gates, configurable_tolerance=False)


def test_nothing_given_is_the_default() -> None:
    assert behavior_of({}) == behavior_of({"scaleUp": None, "scaleDown": {}})
    assert rules_of(None, SCALE_UP) == rules_of({"policies": None}, SCALE_UP)


def test_every_field_that_is_given_stays() -> None:
    rules = {"stabilizationWindowSeconds": 9, "selectPolicy": "Min", "tolerance": 0.5}
    stated = {"type": "Pods", "value": 1, "periodSeconds": 60}
    filled = rules_of({**rules, "policies": [stated]}, SCALE_UP)
    assert (filled.stabilization_window, filled.select_policy, filled.policies, filled.tolerance) == (
        seconds(9),
        "Min",
        (policy("Pods", 1),),
        0.5,
    )


def test_an_empty_list_of_policies_is_given() -> None:
    assert rules_of({"policies": []}, SCALE_UP).policies == ()
