"""Objects of the API server with anything at any place: other objects stay readable, and every pod is created."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecaster.sources.live import LiveCluster
from tests.support.admitting import Admitting, admitting_in, sized, web
from tests.support.api_objects import container, deployment, event, hpa, page, played, pod
from tests.support.builders import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.api_objects import Document

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
AMOUNTS = st.sampled_from(["500m", "-1", "1e309", "1Ei", "9" * 400, "0x10", "∞", ""])
META = ("name", "namespace", "resourceVersion")
"""Fields that the API server itself holds to be texts."""


def places(document: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a document at which something stands."""
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inner:
        if not (path == ("metadata",) and key in META) and (path or key != "metadata"):
            yield (*path, key)
        yield from places(value, (*path, key))


@st.composite
def odd(draw: st.DrawFn, good: Document) -> Document:
    """Put something else at one or two places of a good object."""
    changed = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, 2))):
        *above, last = draw(st.sampled_from(list(places(changed))))
        at: Any = changed
        for key in above:
            at = at[key]
        at[last] = draw(ANYTHING | AMOUNTS)
    return changed


SIDECAR = container("proxy", restartPolicy="Always")
KINDS: dict[str, tuple[Document, Document]] = {
    "deployments": (deployment("odd", initContainers=[SIDECAR]), deployment("good")),
    "statefulsets": (deployment("odd"), deployment("good")),
    "pods": (pod("odd", ("ReplicaSet", "web-1")), pod("good", ("ReplicaSet", "web-1"))),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=150)
def test_one_odd_object_costs_no_other_its_facts(kind: str, data: st.DataObject) -> None:
    broken, good = data.draw(odd(KINDS[kind][0])), KINDS[kind][1]
    cluster = LiveCluster(clock=NOON.timestamp)
    watch = next(each for each in cluster.watches if each.path.endswith(kind))
    played(watch, page(good, broken))
    assert ("shop", "good") in watch.objects
    assert ("shop", "odd") not in watch.objects or ("shop", "odd") not in watch.progress.misread
    played(watch, [event("MODIFIED", broken) + event("MODIFIED", good)])
    assert (("shop", "good") in watch.objects, watch.health.fault) == (True, "")
    assert any("odd is left out" in fault for fault in cluster.left_out()) == bool(watch.progress.misread)


@given(data=st.data())
@settings(max_examples=150)
def test_hpas_are_known_all_together_or_nothing_is_decided_by_them(data: st.DataObject) -> None:
    """One that were left out would be none: its workload would be anybody's to scale."""
    cluster = LiveCluster(clock=NOON.timestamp)
    played(cluster.hpas, page(hpa(name="good", workload="good"), data.draw(odd(hpa(name="odd", workload="odd")))))
    known = cluster.autoscalers()
    assert known is None or len(known) == 2


@pytest.fixture
def admitting(tmp_path: Path) -> Admitting:
    return admitting_in(tmp_path)


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_pod_is_made_whatever_stands_in_it(admitting: Admitting, data: st.DataObject) -> None:
    """The patch can be applied to the sent object, and changes only its sizes and our marks."""
    admitting.cycle(sized())
    sent = data.draw(odd(web()))
    created = admitting.made(sent)
    assert created == sent or without_ours(created) == without_ours(sent)


def without_ours(sized_pod: Document) -> Document:
    """An understood pod, without the fields that may be written."""
    rest: Document = copy.deepcopy(sized_pod)
    for name in ("labels", "annotations"):
        marks = rest["metadata"].pop(name, None) or {}
        rest["metadata"][name] = {key: mark for key, mark in marks.items() if "forecaster.dev/" not in key}
    for sized_container in rest["spec"]["containers"]:
        for kind in ("requests", "limits"):
            amounts = (sized_container.get("resources") or {}).pop(kind, None) or {}
            sized_container[kind] = {name: amount for name, amount in amounts.items() if name not in {"cpu", "memory"}}
        sized_container["resources"] = sized_container.get("resources") or {}
    return rest
