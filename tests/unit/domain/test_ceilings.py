"""Limits of the platform on what owners of namespaces may state."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from forecaster.config.settings import parse
from forecaster.domain.layers import ClusterPolicies, Layer, OwnerCeiling
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy, PolicySelector
from forecaster.domain.workload import WorkloadId

WEB = WorkloadId("team-a", "Deployment", "web")
OTHER = WorkloadId("platform", "Deployment", "web")
TEAMS = OwnerCeiling(namespace="team-*", modes=("observe", "publish"), replicas=50, events=1, quantile=0.9, evict=False)
OBJECT = "PredictiveAutoscaler team-a/web"
EVENT = {"name": "sale", "replicas": 10, "cron": "0 8 * * *", "duration": "1h"}


def stated(layer: dict[str, Any], *, below: dict[str, Any] | None = None, id_: WorkloadId = WEB) -> Policies:
    """The policies of a platform that bounds its teams, where the owner of one workload states this."""
    own = ClusterPolicies(own=MappingProxyType({id_: (Layer(OBJECT, layer),)}))
    overrides = ((PolicySelector(), below),) if below else ()
    return Policies(Policy(), overrides, ceilings=(TEAMS,), cluster=own)


def refusal(policies: Policies) -> str:
    ((layer, why),) = policies.refused(WEB)
    assert layer.origin == OBJECT
    return why


SCALE = {"mode": "scale", "horizontal": {"min_replicas": 500, "max_replicas": 100_000}}
BEYOND = {
    "mode": ({"mode": "floor"}, "mode floor is not one that owners may state: observe, publish"),
    "most": ({"horizontal": {"max_replicas": 51}}, "51 replicas are more than the 50 that owners may state"),
    "least": ({"horizontal": {"min_replicas": 60}}, "60 replicas are more than the 50"),
    "event": ({"horizontal": {"events": [{**EVENT, "replicas": 70}]}}, "70 replicas are more than the 50"),
    "events": ({"horizontal": {"events": [EVENT, EVENT]}}, "2 events are more than the 1 that owners may state"),
    "quantile": ({"horizontal": {"quantile": 0.99}}, "a quantile of 0.99 is above the 0.9 that owners may state"),
    "eviction": ({"vertical": {"mode": "in-place", "evict": True}}, "evict: true is not for owners to state"),
}


@pytest.mark.parametrize(("layer", "why"), BEYOND.values(), ids=BEYOND)
def test_what_goes_beyond_is_left_out_with_a_sentence(layer: dict[str, Any], why: str) -> None:
    policies = stated(layer)
    assert policies.stated(WEB) == Policy()
    assert why in refusal(policies)
    assert "resources.owners of 'team-*'" in refusal(policies)


def test_an_owners_object_turns_publish_into_nothing_that_the_platform_did_not_allow() -> None:
    below = {"mode": "publish", "horizontal": {"max_replicas": 20}}
    policies = stated(SCALE, below=below)
    assert policies.stated(WEB) == Policy.model_validate(below)


@pytest.mark.parametrize(
    "layer", [{"mode": "publish"}, {"horizontal": {"max_replicas": 50, "quantile": 0.9, "events": [EVENT]}}], ids=str
)
def test_what_stays_within_counts(layer: dict[str, Any]) -> None:
    policies = stated(layer)
    assert policies.stated(WEB) == Policy.model_validate(layer)
    assert policies.refused(WEB) == []


def test_what_the_platform_itself_states_is_not_bounded() -> None:
    policies = stated({"publish": {"abstain": "hold"}}, below=SCALE)
    assert policies.stated(WEB) == Policy.model_validate({**SCALE, "publish": {"abstain": "hold"}})


@pytest.mark.parametrize("layer", [{"min_replicas": 900}, {"events": [{**EVENT, "replicas": 900}]}], ids=str)
def test_a_high_maximum_of_the_platform_opens_no_other_count(layer: dict[str, Any]) -> None:
    below = {"horizontal": {"max_replicas": 1000}}
    policies = stated({"horizontal": layer}, below=below)
    assert "900 replicas are more than the 50 that owners may state" in refusal(policies)
    assert policies.stated(WEB) == Policy.model_validate(below)


def test_what_the_platform_states_may_be_stated_once_more() -> None:
    below = {"horizontal": {"max_replicas": 1000, "events": [{**EVENT, "replicas": 70}]}}
    assert stated(below, below=below).refused(WEB) == []


def test_namespaces_that_no_ceiling_means_are_free() -> None:
    assert stated(SCALE, id_=OTHER).stated(OTHER) == Policy.model_validate(SCALE)


def test_an_annotated_mode_is_bounded_too() -> None:
    policies = Policies(Policy(), ceilings=(TEAMS,), modes={WEB: "floor", OTHER: "floor"})
    assert (policies.stated(WEB).mode, policies.stated(OTHER).mode) == ("observe", "floor")


def test_ceilings_come_from_the_settings() -> None:
    owners = [{"namespace": "team-*", "modes": ["observe"]}]
    settings = parse(
        {"prometheus": {"url": "http://prometheus:9090"}, "resources": {"owners": owners}}, "settings.yaml"
    )
    assert settings.policies.ceilings == (OwnerCeiling(namespace="team-*", modes=("observe",)),)
