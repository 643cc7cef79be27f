"""Objects of deploy/, built by kustomize and rendered by Helm."""

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
"""Labels that all objects of a release have, and some of those of kustomizations."""


def tool(name: str) -> str:
    """A program that `.ci/packaging` or `.ci/control-plane` builds; the test is skipped where it is absent."""
    path = find(name)
    if path is None:
        pytest.skip(f"no {name}: run .ci/packaging and .ci/control-plane")
    return str(path)


def kustomized(*components: str) -> Objects:
    """Objects by kind, namespace and name."""
    tool("kubectl")
    return {key_of(document): alike(document) for document in built(*components)}


def rendered(*components: str, release_in: str = "forecaster", **values: Any) -> Objects:
    """Objects of the chart in the form that kustomize gives them."""
    return {key: alike(document) for key, document in released(*components, release_in=release_in, **values).items()}


def released(*components: str, release: str = "forecaster", release_in: str = "forecaster", **values: Any) -> Objects:
    """Objects of a release as they are, with every part of the base that values may leave out."""
    output = helm(
        "template", release, str(CHART), f"--namespace={release_in}", "-f-", given=values_of(*components) | values
    )
    assert output.returncode == 0, output.stderr
    documents = [document for document in yaml.safe_load_all(without_revision(without_hash(output.stdout))) if document]
    return {key_of(document): document for document in documents}


def values_of(*components: str) -> dict[str, Any]:
    """Values with which the chart has all objects of the base, and those of components."""
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
        return [without_release(item) for item in value]
    if value == "192.0.2.0/24":
        return CONTROL_PLANE
    if not isinstance(value, dict):
        return value
    fields = {key: without_release(item) for key, item in value.items() if key not in OF_RELEASES | {"fsGroup"}}
    return {key: item for key, item in fields.items() if not (key == "labels" and item == {})}


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
        return {key: in_order(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    ordered = [in_order(item) for item in value]
    if all(isinstance(item, dict) and "name" in item for item in ordered):
        return sorted(ordered, key=lambda item: str(item["name"]))
    return ordered


def namespaces_in(objects: Objects, namespace: str) -> list[str]:
    """Texts that name a namespace, in the ways in which manifests do."""
    named = re.compile(rf"(?:namespace: |(?<![\w./-]){namespace}/{namespace}|:{namespace}:|\.{namespace}\.svc)")
    spelt = yaml.safe_dump(list(objects.values()))
    return [line for line in spelt.splitlines() if named.search(line) and namespace in line]
