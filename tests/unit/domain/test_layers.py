"""Precedence of the layers of a policy, and the layers without which a policy is made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forecaster.domain.layers import ClusterPolicies, Layer, leaf_origins, origin_sentences
from forecaster.domain.policies import Policies, overlap
from forecaster.domain.policy import Policy, PolicySelector
from forecaster.domain.workload import WorkloadId

WEB = WorkloadId("shop", "Deployment", "web")
API = WorkloadId("shop", "Deployment", "api")
EVERY = PolicySelector()


def level(value: float) -> dict[str, object]:
    return {"horizontal": {"quantile": value}}


def stated(**own: dict[str, object]) -> ClusterPolicies:
    """By PredictivePolicy `defaults` for all, by others for `web`, in this order."""
    defaults = own.pop("defaults", None)
    selected = ((EVERY, Layer("PredictivePolicy all", defaults)),) if defaults else ()
    return ClusterPolicies(selected, {WEB: tuple(Layer(name, policy) for name, policy in own.items())} if own else {})


def policies(**own: dict[str, object]) -> Policies:
    layered = Policies(Policy(), ((PolicySelector(name="web"), level(0.7)),))
    layered.take_over(stated(**own))
    return layered


class TestPrecedence:
    """Annotations > PredictiveAutoscaler > overrides > PredictivePolicy > defaults."""

    def test_overrides_stand_over_predictive_policies_and_these_over_defaults(self) -> None:
        layered = policies(defaults=level(0.6))
        assert (layered.of(WEB).horizontal.quantile, layered.of(API).horizontal.quantile) == (0.7, 0.6)

    def test_an_autoscaler_stands_over_overrides_and_annotations_over_it_key_by_key(self) -> None:
        layered = policies(autoscaler={"mode": "publish", **level(0.8)}, annotations=level(0.9))
        assert (layered.of(WEB).horizontal.quantile, layered.of(WEB).mode) == (0.9, "publish")
        assert layered.of(API) == Policy()

    def test_what_is_gone_gives_the_policy_of_before_back(self) -> None:
        layered = policies()
        before = layered.of(WEB)
        layered.take_over(stated(autoscaler=level(0.95), defaults={"mode": "publish"}))
        assert (layered.of(WEB).horizontal.quantile, layered.of(API).mode) == (0.95, "publish")
        layered.take_over(ClusterPolicies())
        assert layered.of(WEB) is before
        assert layered.of(API).mode == "observe"

    def test_workloads_of_which_the_same_is_stated_share_a_policy(self) -> None:
        layered = Policies(Policy())
        layered.take_over(ClusterPolicies((), {id_: (Layer(str(id_), level(0.8)),) for id_ in (WEB, API)}))
        assert layered.of(WEB) is layered.of(API)

    def test_what_is_asked_about_on_trial_stands_over_all(self) -> None:
        layered = Policies(Policy(), changes=((EVERY, Layer("--set", level(0.99))),))
        layered.take_over(stated(annotations=level(0.9)))
        assert layered.of(WEB).horizontal.quantile == 0.99


class TestRefusal:
    def test_a_layer_that_contradicts_those_below_is_left_out_whole_and_told(self) -> None:
        bounds = {"mode": "publish", "horizontal": {"max_replicas": 2}}
        layered = policies(defaults={"horizontal": {"min_replicas": 5}}, autoscaler=bounds)
        assert (layered.of(WEB).mode, layered.of(WEB).horizontal.min_replicas) == ("observe", 5)
        ((layer, why),) = layered.refused(WEB)
        assert layer.origin == "autoscaler"
        assert why == "horizontal.max_replicas is '2': must not be below min_replicas 5"
        assert [layer.origin for layer in layered.effective_layers(WEB)] == ["PredictivePolicy all", "overrides[0]"]

    def test_of_a_layer_with_a_setting_that_there_is_not_as_a_newer_definition_has_nothing_counts(self) -> None:
        layered = policies(autoscaler={"mode": "publish", "colour": "red"})
        assert layered.of(WEB).mode == "observe"
        assert [why for _, why in layered.refused(WEB)] == [
            "colour is 'red': no such setting; see docs/configure.md for those there are"
        ]

    def test_nothing_is_refused_where_all_fits(self) -> None:
        assert policies(autoscaler=level(0.8)).refused(WEB) == []


class TestOrigins:
    def test_say_what_a_setting_stands_over(self) -> None:
        layered = policies(defaults={"mode": "publish"}, autoscaler=level(0.8), annotations={"mode": "floor"})
        assert origin_sentences(leaf_origins(layered.effective_layers(WEB))) == [
            "Policy: horizontal.quantile 0.8 by autoscaler, over 0.7 by overrides[0].",
            "Policy: mode floor by annotations, over publish by PredictivePolicy all.",
        ]

    def test_equal_values_are_no_conflict(self) -> None:
        (leaf,) = leaf_origins([Layer("a", level(0.9)), Layer("b", level(0.9))])
        assert (leaf.origin, leaf.over) == ("b", ())


class TestLabels:
    """Selectors find workloads by the labels that live facts tell."""

    TEAM = PolicySelector(labels={"team": "shop-*"})

    def labelled(self, labels: dict[WorkloadId, dict[str, str]], *, in_settings: bool = False) -> Policies:
        overrides = ((self.TEAM, level(0.8)),) if in_settings else ()
        selected = () if in_settings else ((self.TEAM, Layer("PredictivePolicy teams", level(0.8))),)
        layered = Policies(Policy(), overrides)
        layered.take_over(ClusterPolicies(selected, labels=labels))
        return layered

    @pytest.mark.parametrize("in_settings", [False, True], ids=["PredictivePolicy", "overrides"])
    def test_all_patterns_have_to_match(self, *, in_settings: bool) -> None:
        layered = self.labelled({WEB: {"team": "shop-a", "tier": "web"}, API: {"tier": "web"}}, in_settings=in_settings)
        assert (layered.of(WEB).horizontal.quantile, layered.of(API)) == (0.8, Policy())

    @pytest.mark.parametrize("in_settings", [False, True], ids=["PredictivePolicy", "overrides"])
    def test_another_label_counts_from_the_next_look_on(self, *, in_settings: bool) -> None:
        layered = self.labelled({WEB: {"team": "shop-a"}}, in_settings=in_settings)
        assert layered.of(WEB).horizontal.quantile == 0.8
        layered.take_over(replace(layered.cluster, labels={WEB: {"team": "billing"}}))
        assert layered.of(WEB) == Policy()
        layered.take_over(replace(layered.cluster, labels={WEB: {"team": "shop-b"}}))
        assert layered.of(WEB).horizontal.quantile == 0.8

    def test_without_live_facts_none_is_meant_and_that_is_told(self) -> None:
        layered = self.labelled({})
        assert layered.of(WEB) == Policy()
        stated = "PredictivePolicy teams matches no workload: labels {'team': 'shop-*'}"
        assert layered.without_a_workload([WEB]) == [f"{stated}; labels are not known without live facts"]

    def test_two_that_ask_one_label_for_different_values_mean_no_workload_in_common(self) -> None:
        web, api = (PolicySelector(labels={"tier": tier}) for tier in ("web", "api"))
        assert not overlap(web, api)
        assert overlap(web, self.TEAM)


def test_objects_that_mean_no_workload_are_told() -> None:
    layered = policies(autoscaler=level(0.8))
    layered.take_over(
        ClusterPolicies(((PolicySelector(namespace="shpo"), Layer("PredictivePolicy shop", {})),), layered.cluster.own)
    )
    assert layered.without_a_workload([API]) == [
        "PredictivePolicy shop matches no workload: namespace 'shpo'",
        "overrides[0] matches no workload: name 'web'",
        "autoscaler: its workload is not there",
    ]
    assert len(layered.without_a_workload([WEB])) == 1
