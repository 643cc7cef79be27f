"""Any document at all is a spec or a list of faults (docs/hpa.md, section 12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from forecaster.hpa.manifest import RefusedManifest, read_manifest
from forecaster.hpa.observation import observe_totals
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.selectors import SelectorError, parse_selector
from forecaster.hpa.state import HpaState
from tests.property.hpa_strategies import NOW

if TYPE_CHECKING:
    from forecaster.hpa.spec import HpaSpec

scalars = st.none() | st.booleans() | st.integers(-5, 5000) | st.floats() | st.text(max_size=5)
junk: st.SearchStrategy[Any] = st.deferred(
    lambda: scalars | st.lists(junk, max_size=2) | st.dictionaries(st.text(max_size=5), junk, max_size=3)
)
words = st.sampled_from(
    [
        "",
        "cpu",
        "memory",
        "Deployment",
        "apps/v1",
        "Utilization",
        "Value",
        "AverageValue",
        "Max",
        "Min",
        "Disabled",
        "Pods",
        "Percent",
        "Resource",
        "ContainerResource",
        "Object",
        "External",
        "app",
        "500m",
        "1Gi",
        "0",
        "-1",
        "a/b",
    ]
)


def fields(**inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A mapping with some of these fields, sometimes holding something else."""
    return st.fixed_dictionaries({}, optional={key: value | junk for key, value in inner.items()}) | fixed(**inner)


def fixed(**inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(dict(inner))


numbers = st.integers(-2, 4000)
target = fields(type=words, value=words, averageValue=words, averageUtilization=numbers)
reference = fields(apiVersion=words, kind=words, name=words)
identifier = fields(name=words, selector=fields(matchLabels=st.dictionaries(words, words)))
metric = fields(
    type=words,
    resource=fields(name=words, target=target),
    containerResource=fields(name=words, container=words, target=target),
    pods=fields(metric=identifier, target=target),
    object=fields(describedObject=reference, metric=identifier, target=target),
    external=fields(metric=identifier, target=target),
)
scaling = fields(
    stabilizationWindowSeconds=numbers,
    selectPolicy=words,
    policies=st.lists(fields(type=words, value=numbers, periodSeconds=numbers), max_size=2),
    tolerance=words,
)
manifests = fields(
    apiVersion=st.sampled_from(["autoscaling/v1", "autoscaling/v2"]),
    kind=st.just("HorizontalPodAutoscaler"),
    metadata=fields(name=words, annotations=st.dictionaries(st.text(max_size=5), st.text(max_size=9))),
    spec=fields(
        scaleTargetRef=reference,
        minReplicas=numbers,
        maxReplicas=numbers,
        metrics=st.lists(metric, max_size=2),
        behavior=fields(scaleUp=scaling, scaleDown=scaling),
        targetCPUUtilizationPercentage=numbers,
    ),
)


@given(manifests | junk)
def test_any_document_is_a_spec_or_faults_with_paths(document: Any) -> None:
    read = read_manifest(document, scale_to_zero=True)
    if isinstance(read, RefusedManifest):
        assert read.faults
        assert all(fault.detail for fault in read.faults)
    else:
        check_that_it_runs(read)


def check_that_it_runs(spec: HpaSpec) -> None:
    totals = {metric.name: 12345 for metric in spec.metrics}
    observed = observe_totals(spec, 3, totals, {"cpu": 500, "memory": 500}, NOW)
    reconcile(spec, observed, HpaState(), NOW)


@given(st.text(max_size=20) | st.text("ab=!, ()in", max_size=20))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    try:
        selector = parse_selector(text)
    except SelectorError:
        return
    assert selector.matches({"a": "b"}) in {True, False}
