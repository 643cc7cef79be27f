"""Annotations become layers of a policy; those that cannot be read are told."""

from __future__ import annotations

import pytest

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import WorkloadId
from forecaster.sources.stated import (
    NAMES_COMPARED,
    NO_ANNOTATIONS,
    AnnotatedObject,
    _annotated,
    annotated,
    cluster_policies,
)

WEB = WorkloadId("shop", "Deployment", "web")


def policy_and_faults(**annotations: str) -> tuple[object, tuple[str, ...]]:
    """The policy and the faults of an HPA with these annotations."""
    parsed = annotated(
        {f"forecaster.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}, "HPA web"
    )
    return parsed.layer.policy if parsed.layer else None, parsed.faults


def test_each_states_one_setting() -> None:
    assert policy_and_faults(mode="floor", quantile="0.95", lead_time="4m", sizing="newsvendor") == (
        {
            "mode": "floor",
            "horizontal": {"quantile": "0.95", "lead_time": "4m", "sizing": "newsvendor"},
        },
        (),
    )


def test_those_of_others_and_our_own_marks_state_nothing() -> None:
    marks = {"forecaster.dev/min-replicas-before": "2", "forecaster.dev/floor-expires": "2026-11-22T12:00:00Z"}
    assert annotated({"team": "shop", **marks}, "HPA web") == NO_ANNOTATIONS


def test_one_that_cannot_be_read_is_left_out_and_the_others_count() -> None:
    policy, faults = policy_and_faults(quantile="95", sizing="newsvendor")
    assert policy == {"horizontal": {"sizing": "newsvendor"}}
    assert faults == ("HPA web: annotation forecaster.dev/quantile is '95': must be at most 0.99; for 95 % write 0.95",)


def test_a_mode_that_is_none_is_taken_for_observe() -> None:
    policy, faults = policy_and_faults(mode="flor")
    assert policy == {"mode": "observe"}
    (fault,) = faults
    assert fault.startswith("HPA web: annotation forecaster.dev/mode is 'flor': must be one of observe, publish, floor")
    assert fault.endswith("; did you mean floor?")


@pytest.mark.parametrize(
    "stated",
    [
        {"mode": "scale", "min-replicas": "2", "max-replicas": "20"},
        {"sizing": "newsvendor", "scale-in-by-forecast": "true", "min-replicas": "0"},
    ],
)
def test_what_needs_another_setting_is_judged_with_it(stated: dict[str, str]) -> None:
    marks = {f"forecaster.dev/{name}": text for name, text in stated.items()}
    policies = Policies(
        Policy(), cluster=cluster_policies(workloads=[AnnotatedObject("Deployment shop/web", WEB, marks)])
    )
    assert not policies.cluster.faults
    assert not policies.refused(WEB)
    assert policies.of(WEB).horizontal.min_replicas == int(stated["min-replicas"])
    assert policies.of(WEB).mode == stated.get("mode", "observe")


def test_mode_scale_without_bounds_is_left_out_with_what_it_needs() -> None:
    marks = {"forecaster.dev/mode": "scale"}
    policies = Policies(
        Policy(), cluster=cluster_policies(workloads=[AnnotatedObject("Deployment shop/web", WEB, marks)])
    )
    ((_, why),) = policies.refused(WEB)
    assert why.startswith("mode scale needs horizontal.min_replicas and horizontal.max_replicas")
    assert policies.of(WEB).mode == "observe"


def test_a_misspelt_one_is_told() -> None:
    assert policy_and_faults(qantile="0.9") == (
        None,
        ("HPA web: there is no annotation forecaster.dev/qantile; did you mean forecaster.dev/quantile?",),
    )


class TestAHostileOwner:
    def test_fills_no_cache_with_long_values_or_many_names(self) -> None:
        """An owner may write 256 KiB a time, and another value each second."""
        _annotated.cache_clear()
        for number in range(50):
            marks = {f"forecaster.dev/x{each}": "y" * 9000 for each in range(200)}
            marks |= {f"forecaster.dev/y{number}{each}": "" for each in range(200)}
            annotated(marks | {"forecaster.dev/watched": f"{number}" * 9000}, "HPA web")
        assert _annotated.cache_info().currsize == 1

    def test_hides_no_mode_behind_other_names(self) -> None:
        marks = {f"forecaster.dev/a{each}": "" for each in range(200)} | {"forecaster.dev/mode": "floor"}
        layer = annotated(marks, "HPA web").layer
        assert layer is not None
        assert layer.policy == {"mode": "floor"}

    @pytest.mark.parametrize(("name", "compared"), [("quantil", NAMES_COMPARED), ("x", 0)])
    def test_has_few_names_compared_with_the_known_ones(self, name: str, compared: int) -> None:
        marks = {f"forecaster.dev/{name}{each:02}": "" for each in range(30)}
        assert len(annotated(marks, "HPA web").faults) == compared

    def test_is_refused_a_value_of_any_length_in_one_short_line(self) -> None:
        (fault,) = annotated({"forecaster.dev/quantile": "9" * 200_000}, "HPA web").faults
        assert len(fault) < 300


class TestTogether:
    def test_an_hpa_stands_over_its_workload_and_a_pause_over_both(self) -> None:
        workload = AnnotatedObject(
            "Deployment shop/web", WEB, {"forecaster.dev/mode": "publish", "forecaster.dev/paused": "true"}
        )
        hpa = AnnotatedObject("HPA shop/web", WEB, {"forecaster.dev/mode": "floor"})
        layers = cluster_policies(workloads=[workload], hpas=[hpa]).own[WEB]
        assert [(layer.origin, layer.policy["mode"]) for layer in layers] == [
            ("annotations of Deployment shop/web", "publish"),
            ("annotations of HPA shop/web", "floor"),
            ("annotation forecaster.dev/paused of Deployment shop/web", "observe"),
        ]

    def test_a_pause_ends_with_its_annotation_or_by_false_and_holds_while_it_is_not_understood(self) -> None:
        def paused(text: str) -> tuple[bool, int]:
            hpa = AnnotatedObject("HPA shop/web", WEB, {"forecaster.dev/paused": text})
            policies = cluster_policies(hpas=[hpa])
            return WEB in policies.own, len(policies.faults)

        assert (paused("true"), paused("false"), paused("on")) == ((True, 0), (False, 0), (True, 1))
