"""Sizes in a VPA's status: any JSON is read, and a missing size is not known."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.workload import Resources
from forecaster.vertical.recommenders.baselines import vpa_sizes

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2)
)
RECOMMENDATIONS = st.fixed_dictionaries(
    {"containerName": st.sampled_from(["app", "proxy", "", None])},
    optional={"target": st.dictionaries(st.sampled_from(["cpu", "memory"]), JSON) | JSON, "upperBound": JSON},
)


@given(
    RECOMMENDATIONS.map(lambda recommendation: {"recommendation": {"containerRecommendations": [recommendation]}})
    | JSON
)
def test_a_status_of_any_form_fails_nothing(status: Any) -> None:
    sizes = vpa_sizes("web", "Off", status)
    assert str(sizes).startswith("VPA web (updateMode Off) recommends ")
    assert sizes.pod(["app", "another"]) is None


@given(st.integers(1, 10**6), st.integers(1, 10**15), st.booleans())
def test_a_pod_is_the_sum_of_its_containers_and_unknown_where_one_is(milli: int, size: int, known: bool) -> None:  # noqa: FBT001
    recommendations = [
        {"containerName": "app", "target": {"cpu": f"{milli}m", "memory": str(size)}},
        {"containerName": "proxy", "target": {"cpu": f"{milli}m"} | ({"memory": str(size)} if known else {})},
    ]
    pod = vpa_sizes("web", "Off", {"recommendation": {"containerRecommendations": recommendations}}).pod(
        ["app", "proxy"]
    )
    assert pod is not None
    assert pod.cpu_request is not None
    assert round(pod.cpu_request * 1000) == 2 * milli
    assert pod.memory_request == (2 * size if known else None)


def test_a_container_that_is_gone_is_no_part_of_the_pod() -> None:
    """A VPA still recommends for a container that is gone."""
    recommendations = [{"containerName": name, "target": {"cpu": "1", "memory": "1Gi"}} for name in ("app", "gone")]
    sizes = vpa_sizes("web", "Off", {"recommendation": {"containerRecommendations": recommendations}})
    assert sizes.pod(["app"]) == Resources(1.0, None, 2.0**30, None)
