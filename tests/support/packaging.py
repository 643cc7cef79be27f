"""What deploy/ is as objects: built by kustomize and rendered by Helm."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.generate.chart import CHART
from deploy.generate.conditional import camel
from deploy.generate.kustomized import built, key_of, without_hash
from tests.support.control_plane.binaries import find

if TYPE_CHECKING:
    from collections.abc import Mapping

Objects = dict[str, Any]
CONTROL_PLANE = "10.0.0.1/32"
OF_RELEASES = {
    *(f"app.kubernetes.io/{name}" for name in ("instance", "managed-by", "name", "part-of", "version")),
    "helm.sh/chart",
}
"""Labels that objects of a release have, and those of kustomizations in part."""


def tool(name: str) -> str:
    """A program that `.ci/packaging` or `.ci/control-plane` builds; the test is skipped where it is absent."""
    found = find(name)
    if found is None:
        pytest.skip(f"no {name}: run .ci/packaging and .ci/control-plane")
    return str(found)


def kustomized(*components: str) -> Objects:
    """Objects by kind, namespace and name."""
    tool("kubectl")
    return {key_of(one): alike(one) for one in built(*components)}


def rendered(*components: str, release_in: str = "forecaster", **values: Any) -> Objects:
    """The same of the chart, and as kustomize makes them."""
    return {key: alike(one) for key, one in released(*components, release_in=release_in, **values).items()}


def released(*components: str, release: str = "forecaster", release_in: str = "forecaster", **values: Any) -> Objects:
    """Objects of a release as they are, with every part of the base that values may leave out."""
    said = helm(
        "template", release, str(CHART), f"--namespace={release_in}", "-f-", given=values_of(*components) | values
    )
    assert said.returncode == 0, said.stderr
    documents = [one for one in yaml.safe_load_all(without_revision(without_hash(said.stdout))) if one]
    return {key_of(one): one for one in documents}


def values_of(*components: str) -> dict[str, Any]:
    """Values with which the chart has all objects that the base has, and those of components."""
    return {
        "image": {"tag": "latest"},
        "namespace": {"create": True},
        "apiService": {"create": True},
        "networkPolicy": {"enabled": True, "controlPlane": [CONTROL_PLANE]},
        "tests": {"enabled": False},
        "components": {camel(name): True for name in components},
    }


def alike(document: Any) -> Any:
    """An object without what differs between the two ways: order, labels of releases, and the address for examples."""
    return without_release(in_order(document))


def without_release(value: Any) -> Any:
    """A value without labels of releases, empty labels, and the group of volumes, which a chart states for all pods."""
    if isinstance(value, list):
        return [without_release(one) for one in value]
    if value == "192.0.2.0/24":
        return CONTROL_PLANE
    if not isinstance(value, dict):
        return value
    kept = {key: without_release(one) for key, one in value.items() if key not in OF_RELEASES | {"fsGroup"}}
    return {key: one for key, one in kept.items() if not (key == "labels" and one == {})}


def without_revision(text: str) -> str:
    """The Job of certificates has a name of its own in each revision of a release."""
    return text.replace("name: forecaster-certificates-1\n", "name: forecaster-certificates\n")


def helm(*arguments: str, given: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    """One call of Helm, with values at its standard input."""
    text = json.dumps(given or {})
    return subprocess.run([tool("helm"), *arguments], input=text, capture_output=True, text=True, check=False)


def in_order(value: Any) -> Any:
    """Lists of named things sorted by name: their order means nothing to an API server."""
    if isinstance(value, dict):
        return {key: in_order(one) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    ordered = [in_order(one) for one in value]
    if all(isinstance(one, dict) and "name" in one for one in ordered):
        return sorted(ordered, key=lambda one: str(one["name"]))
    return ordered


def namespaces_in(objects: Objects, namespace: str) -> list[str]:
    """Texts that name a namespace, in the ways in which manifests do."""
    named = re.compile(rf"(?:namespace: |(?<![\w./-]){namespace}/{namespace}|:{namespace}:|\.{namespace}\.svc)")
    spelt = yaml.safe_dump(list(objects.values()))
    return [line for line in spelt.splitlines() if named.search(line) and namespace in line]
