"""Objects of the API server in which anything stands anywhere: the others go on, and no pod is kept from being made."""

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
"""Of these the API server itself sees that they are texts."""


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
    """Something else at one or two places of what was good."""
    found = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, 2))):
        *above, last = draw(st.sampled_from(list(places(found))))
        at: Any = found
        for key in above:
            at = at[key]
        at[last] = draw(ANYTHING | AMOUNTS)
    return found


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
    watch = next(one for one in cluster.watches if one.path.endswith(kind))
    played(watch, page(good, broken))
    assert ("shop", "good") in watch.objects
    assert ("shop", "odd") not in watch.objects or ("shop", "odd") not in watch.misread
    played(watch, [event("MODIFIED", broken) + event("MODIFIED", good)])
    assert (("shop", "good") in watch.objects, watch.health.fault) == (True, "")
    assert any("odd is left out" in one for one in cluster.faults()) == bool(watch.misread)


@given(data=st.data())
@settings(max_examples=150)
def test_hpas_are_known_all_together_or_nothing_is_decided_by_them(data: st.DataObject) -> None:
    """One that were left out would be none: its workload would be anybody's to scale."""
    cluster = LiveCluster(clock=NOON.timestamp)
    played(cluster.hpas, page(hpa(name="good", of="good"), data.draw(odd(hpa(name="odd", of="odd")))))
    known = cluster.autoscalers()
    assert known is None or len(known) == 2


@pytest.fixture
def admitting(tmp_path: Path) -> Admitting:
    return admitting_in(tmp_path)


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_pod_is_made_whatever_stands_in_it(admitting: Admitting, data: st.DataObject) -> None:
    """The patch can be applied to the very object that was sent, and changes sizes and our marks alone."""
    admitting.cycle(sized())
    sent = data.draw(odd(web()))
    found = admitting.made(sent)
    assert found == sent or without_ours(found) == without_ours(sent)


def without_ours(sized_pod: Document) -> Document:
    """A pod that was understood, without what may be written."""
    rest: Document = copy.deepcopy(sized_pod)
    for name in ("labels", "annotations"):
        marks = rest["metadata"].pop(name, None) or {}
        rest["metadata"][name] = {key: mark for key, mark in marks.items() if "forecaster.dev/" not in key}
    for one in rest["spec"]["containers"]:
        for kind in ("requests", "limits"):
            amounts = (one.get("resources") or {}).pop(kind, None) or {}
            one[kind] = {name: amount for name, amount in amounts.items() if name not in {"cpu", "memory"}}
        one["resources"] = one.get("resources") or {}
    return rest
