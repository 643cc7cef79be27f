from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.publish.values import NotNamed
from forecaster.serving.answers import MetricRequest
from forecaster.serving.keda.service import Trigger, parse_trigger

CPU = {"signal": "cpu", "target": "500m"}


def trigger(**metadata: str) -> Trigger:
    parsed = parse_trigger("shop", "web", metadata)
    assert isinstance(parsed, Trigger), parsed
    return parsed


def test_demand_of_a_signal_is_divided_by_what_one_replica_carries() -> None:
    assert trigger(**CPU).request == MetricRequest("shop", "web", "", "forecaster_demand", "cpu", 0.5)


def test_the_workload_may_have_another_name_than_the_scaled_object_but_no_other_namespace() -> None:
    request = trigger(**CPU, workload="web-v2", kind="StatefulSet", namespace="bank").request
    assert (request.namespace, request.name, request.kind) == ("shop", "web-v2", "StatefulSet")


@pytest.mark.parametrize("metric", ["replicas", "forecaster_replicas"])
def test_counts_need_no_target(metric: str) -> None:
    parsed = trigger(metric=metric)
    assert (parsed.request.metric, parsed.request.target, parsed.metric_name) == (
        "forecaster_replicas",
        1.0,
        "forecaster-replicas",
    )


def test_what_keda_reads_itself_is_left_alone() -> None:
    assert trigger(**CPU, scalerAddress="forecaster:9090", enableTLS="true") == trigger(**CPU)


def test_activation_is_in_the_unit_of_the_signal() -> None:
    assert trigger(**CPU, activationTarget="50m").activation == 0.05


@pytest.mark.parametrize(
    ("metadata", "wrong"),
    [
        ({"metric": "demands"}, "'demands': use demand, floor, replicas"),
        ({}, "signal ''"),
        ({"signal": "-disk-", "target": "1"}, "signal '-disk-': say which demand"),
        ({"metric": "replicas", "signal": "cpu"}, "signal 'cpu': replicas is one number for all signals; leave it out"),
        ({"signal": "cpu"}, "target"),
        ({"signal": "cpu", "target": "0"}, "target"),
        ({"signal": "cpu", "target": "-1"}, "target"),
        ({"signal": "cpu", "target": "half"}, "target"),
        ({**CPU, "activationTarget": "some"}, "activationTarget"),
    ],
)
def test_a_trigger_that_says_too_little_is_told_what_to_say(metadata: dict[str, str], wrong: str) -> None:
    parsed = parse_trigger("shop", "web", metadata)
    assert isinstance(parsed, NotNamed)
    assert wrong in parsed.message


KEYS = st.sampled_from(["metric", "signal", "target", "activationTarget", "workload", "kind", "other"])
WORDS = st.one_of(st.text(max_size=40), st.sampled_from(["cpu", "demand", "replicas", "1", "1e99", "NaN", "inf"]))


@given(st.text(), st.text(), st.dictionaries(KEYS, WORDS))
def test_whatever_is_said_is_a_trigger_or_a_sentence(namespace: str, name: str, metadata: dict[str, str]) -> None:
    parsed = parse_trigger(namespace, name, metadata)
    if isinstance(parsed, Trigger):
        assert parsed.request.target > 0
        assert parsed.activation >= 0
    else:
        assert parsed.message.startswith("trigger ")
