"""The definitions are made of the settings of a policy, and say what its validators say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from forecaster.domain.event import NAMESPACE_EVENTS, ScheduledEvent
from forecaster.domain.policies import Policies
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.resources.definitions import definitions, definitions_text
from forecaster.resources.objects import CustomResource, autoscaler_of_resource, camel, in_settings, snake
from forecaster.resources.schema import CEL_RULES, schema_of
from forecaster.sources.stated import cluster_policies
from tests.support.api_objects import in_objects, metadata

FILE = Path(__file__).parents[3] / "deploy" / "chart" / "definitions" / "definitions.yaml"
AUTOSCALER, DEFAULTS = definitions()


def spec_of(definition: dict[str, Any]) -> dict[str, Any]:
    (version,) = definition["spec"]["versions"]
    spec: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def settings_of(model: type[BaseModel], before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    paths = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            paths += settings_of(inner, (*before, name))
        else:
            paths.append((*before, name))
    return paths


def test_the_file_is_what_is_made_now() -> None:
    assert FILE.read_text(encoding="utf-8") == definitions_text(), "run `./dev run python -m deploy.generate`"
    assert list(yaml.safe_load_all(definitions_text())) == [AUTOSCALER, DEFAULTS]


@pytest.mark.parametrize("path", settings_of(Policy), ids=".".join)
def test_every_setting_of_a_policy_is_in_both_and_has_no_default_that_would_stand_over_other_layers(
    path: tuple[str, ...],
) -> None:
    for definition in (AUTOSCALER, DEFAULTS):
        place = spec_of(definition)
        for name in path:
            place = place["properties"][camel(name)]
            assert "default" not in place
        assert place["description"]
        assert {"type", "x-kubernetes-int-or-string"} & place.keys()


def test_names_come_back() -> None:
    assert [snake(camel(name)) for path in settings_of(Policy) for name in path] == [
        name for path in settings_of(Policy) for name in path
    ]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["lead_time", "mode", "min_cpu", "oom_price"]), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_values_come_back_at_every_depth(value: object) -> None:
    assert in_settings(in_objects(value)) == value


def test_target_and_selector_have_defaults_that_the_api_server_fills_in() -> None:
    target = spec_of(AUTOSCALER)["properties"]["scaleTargetRef"]["properties"]
    assert (target["kind"]["default"], target["apiVersion"]["default"]) == ("Deployment", "apps/v1")
    match = spec_of(DEFAULTS)["properties"]["match"]
    assert match["default"] == {}
    assert {name: field["default"] for name, field in match["properties"].items()} == {
        "namespace": "*",
        "kind": "*",
        "name": "*",
        "labels": {},
    }


def test_bounds_of_durations_and_numbers_are_told_in_words() -> None:
    horizontal = schema_of(HorizontalPolicy)["properties"]

    def messages(name: str) -> list[str]:
        return [rule["message"] for rule in horizontal[name]["x-kubernetes-validations"]]

    assert messages("quantile") == ["must be at least 0.01", "must be at most 0.99"]
    assert messages("leadTime")[1:] == ["must be longer than 0s", "must be at most 12h, in h, m, s or ms"]
    assert messages("requestsPerPod")[1:] == ["must be at least 0.001", "must be at most 1000000000000000"]
    assert messages("tolerance")[1:] == ["must be below 1"]


CONTRADICTIONS = [
    (HorizontalPolicy, {"min_replicas": 5, "max_replicas": 4}),
    (HorizontalPolicy, {"min_replicas": 0, "sizing": "quantile"}),
    (VerticalPolicy, {"static_cpus": True, "cpu_limit": "none"}),
    (VerticalPolicy, {"static_cpus": True, "memory_limit": "none"}),
    (ScheduledEvent, {"name": "a", "replicas": 2, "start": "2026-01-01T00:00:00Z"}),
    (ScheduledEvent, {"name": "a", "replicas": 2}),
    (ScheduledEvent, {"name": "a", "replicas": 2, "start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}),
    (ScheduledEvent, {"name": "a", "cron": "0 8 * * *", "duration": "1h"}),
    (ScheduledEvent, {"name": "a", "cron": "0 8 * * *", "duration": "1h", "replicas": 3, "max_replicas": 2}),
    (ScheduledEvent, {"name": "a", "cron": "0 8 * * *", "duration": "1h", "replicas": 3, "over_measured": True}),
]
"""One for each rule in its order; tests/cluster asks a real API server about the same ones."""


def test_there_is_a_contradiction_for_each_rule_and_validators_know_it() -> None:
    assert [model for model, _ in CONTRADICTIONS] == [model for model, rules in CEL_RULES.items() for _ in rules]
    for model, stated in CONTRADICTIONS:
        with pytest.raises(ValueError, match="validation error"):
            model.model_validate(stated)


class TestObjects:
    def test_a_spec_becomes_a_layer_in_the_names_of_the_settings(self) -> None:
        spec = b'{"scaleTargetRef": {"kind": "StatefulSet", "name": "db"}, "horizontal": {"leadTime": "4m"}}'
        autoscaler = autoscaler_of_resource(resource(spec))
        assert (autoscaler.target.kind, autoscaler.target.name, autoscaler.target.namespace) == (
            "StatefulSet",
            "db",
            "shop",
        )
        assert (autoscaler.layer.origin, autoscaler.layer.policy) == (
            "PredictiveAutoscaler shop/web",
            {"horizontal": {"lead_time": "4m"}},
        )

    def test_what_is_not_in_force_is_not_read(self) -> None:
        """Hundreds of objects may be written anew each minute."""
        spec = b'{"mode": "observe", "horizontal": {"events": [%s]}}'
        first, second = (autoscaler_of_resource(resource(spec % events)).layer for events in (b"{}, {}", b"{}"))
        assert (first.observes, first.events, second.events, first == second) == (True, 2, 1, False)
        assert not any("read" in vars(layer.policy) for layer in (first, second))
        assert first.policy == {"mode": "observe", "horizontal": {"events": [{}, {}]}}

    @pytest.mark.parametrize("events", [2, NAMESPACE_EVENTS + 1])
    def test_a_number_that_is_none_is_refused_by_name_and_harms_nobody_else(self, events: int) -> None:
        listed = b",".join([b"{}"] * events)
        web = autoscaler_of_resource(resource(b'{"horizontal": {"quantile": 1e999, "events": [%s]}}' % listed))
        policies = Policies(Policy())
        policies.take_over(cluster_policies(autoscalers=[web]))
        assert policies.of(web.target) == Policy()
        layer, why = policies.refused(web.target)[0]
        assert (layer.origin, "is not understood: Number out of range" in why) == (web.layer.origin, True)

    @pytest.mark.parametrize("spec", [b"[]", b'{"scaleTargetRef": {"name": 3}}', b'"x"'])
    def test_one_of_another_version_states_nothing_and_says_so(self, spec: bytes) -> None:
        autoscaler = autoscaler_of_resource(resource(spec))
        assert autoscaler.layer.policy == {}
        assert autoscaler.fault.startswith("PredictiveAutoscaler shop/web: its spec is not understood: ")


def resource(spec: bytes) -> CustomResource:
    meta = msgspec.json.encode(metadata("web"))
    return msgspec.json.decode(b'{"metadata":' + meta + b',"spec":' + spec + b"}", type=CustomResource)
