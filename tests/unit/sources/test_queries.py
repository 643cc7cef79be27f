from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from forecaster.domain.signal import CPU, REQUESTS
from forecaster.sources.presets import PREFERRED, PRESETS
from forecaster.sources.queries import Queries

MINUTE = timedelta(minutes=1)


def test_every_field_explains_itself() -> None:
    assert [name for name, field in Queries.model_fields.items() if not field.description] == []


def test_one_minute_points_use_the_short_window() -> None:
    assert "[2m]" in Queries().signal(CPU, MINUTE)


def test_coarser_points_cover_their_own_distance() -> None:
    assert "[5m]" in Queries().signal(CPU, 5 * MINUTE)


def test_no_placeholder_is_left() -> None:
    for preset in ("raw", "recorded"):
        for origin in PRESETS:
            texts = Queries(preset=preset, requests_from=origin).all_queries().values()
            assert not [text for text in texts if "$" in text.replace('"$1"', "")]


def test_every_query_is_visible_as_it_is_asked() -> None:
    assert Queries(requests_from="istio").all_queries().keys() == {
        "cpu",
        "cpu_pods",
        "memory",
        "requests",
        "replicas",
        "ready_replicas",
        "pod_requests",
        "pod_limits",
        "hpa_scale_targets",
        "hpa_min_replicas",
        "hpa_max_replicas",
        "hpa_metric_targets",
        "hpa_containers",
        "identity",
        "state_metrics",
    }


def test_a_query_of_ones_own_replaces_the_default_and_may_use_placeholders() -> None:
    queries = Queries(cpu='sum by (x) (rate(busy{namespace=~"$namespaces"$labels}[$window]))', namespaces="a|b")
    assert queries.signal(CPU, MINUTE) == 'sum by (x) (rate(busy{namespace=~"a|b"}[2m]))'


def test_a_request_query_of_ones_own_needs_no_detection() -> None:
    assert not Queries(requests="sum(x)").detects_requests


def test_none_asks_for_no_request_rates() -> None:
    queries = Queries(requests_from="none")
    assert not queries.detects_requests
    assert not queries.signal(REQUESTS, MINUTE)


def test_labels_reach_every_selector() -> None:
    """Two selectors of the same text would be told apart by nothing else on a server with several clusters."""
    for origin in PRESETS:
        for name, text in Queries(labels={"cluster": "c1"}, requests_from=origin).all_queries().items():
            assert text.count("{") == text.count('cluster="c1"'), name


def test_recorded_series_carry_their_window_in_their_name() -> None:
    recorded = Queries(preset="recorded")
    assert recorded.signal(CPU, MINUTE).startswith("forecaster:workload_cpu_cores:rate2m{")
    assert recorded.signal(CPU, 5 * MINUTE).startswith("forecaster:workload_cpu_cores:rate5m{")


@pytest.mark.parametrize(
    "given",
    [
        {"requests_from": "carrier pigeon"},
        {"preset": "cooked"},
        {"kinds": []},
        {"kinds": ["Deploy.*"]},
        {"labels": {"not a label": "x"}},
        {"namespaces": "team-(a"},
        {"rate_window": "1s"},
        {"cpus": "typo"},
    ],
)
def test_what_cannot_work_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Queries.model_validate(given)


def test_every_preset_has_a_rank_and_the_same_output_labels() -> None:
    assert set(PREFERRED) == PRESETS.keys()
    for name, preset in PRESETS.items():
        by_workload = preset.query.startswith("sum by (namespace, workload_kind, workload) (")
        assert by_workload or name == "recorded", name


class TestAbout:
    """One workload costs one workload: its namespace and name stand in the selectors."""

    def test_a_namespace_and_a_name_stand_in_every_selector_that_can_hold_them(self) -> None:
        text = Queries().about("shop", "web").signal(CPU, MINUTE)
        assert 'container_cpu_usage_seconds_total{pod=~"(web)-.+",' in text
        assert 'namespace=~".+"' not in text
        assert 'kube_replicaset_owner{replicaset=~"(web)(-.+)?",' in text
        inventory = Queries().about("shop", "web").inventory()
        assert 'kube_deployment_spec_replicas{deployment=~"web",namespace=~"shop"}' in inventory["replicas"]
        assert 'kube_horizontalpodautoscaler_info{scaletargetref_name=~"web",' in inventory["hpa_scale_targets"]

    def test_recorded_series_carry_the_name_of_the_workload(self) -> None:
        text = Queries(preset="recorded").about("shop", "w*").signal(CPU, MINUTE)
        assert text == 'forecaster:workload_cpu_cores:rate2m{workload=~"w.*",namespace=~"shop"}'

    @pytest.mark.parametrize(
        ("settings", "namespace", "expected"),
        [
            (".+", "team-*", "team-.*"),
            ("shop|team-.*", "shop", "shop"),
            ("shop|team-.*", "jobs", "shop|team-.*"),
            ("shop|team-.*", "team-*", "shop|team-.*"),
            (".+", "*", ".+"),
        ],
    )
    def test_the_namespaces_of_the_settings_still_hold(self, settings: str, namespace: str, expected: str) -> None:
        assert Queries(namespaces=settings).about(namespace, "*").namespaces == expected

    def test_names_of_pods_are_not_guessed_for_kinds_of_others_or_long_names(self) -> None:
        assert "web" not in Queries(kinds=("CloneSet",)).about("*", "web").signal(CPU, MINUTE)
        assert "pod=~" not in Queries().about("*", "w" * 41).signal(CPU, MINUTE)
