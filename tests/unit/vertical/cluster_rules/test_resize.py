"""An in-place resize may change cpu and memory, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements
from forecaster.vertical.cluster_rules.resize import resize
from tests.support.cluster_rules import block

if TYPE_CHECKING:
    from collections.abc import Mapping

RESTARTS = {"cpu": "RestartContainer"}
ON_THE_SPOT = {"cpu": "NotRequired", "memory": "NotRequired"}


def pod(resources: Requirements, policy: Mapping[str, str], *, init: tuple[Container, ...] = ()) -> Pod:
    return Pod((Container("app", resources, resize_policy=policy),), init)


def rules(old: Pod, new: Pod) -> list[str]:
    return [refusal.rule for refusal in resize(old, new).refusals]


@pytest.mark.parametrize(("before", "after"), [({}, RESTARTS), (RESTARTS, {}), (RESTARTS, ON_THE_SPOT)])
def test_a_resize_policy_is_immutable(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    resources = block("1", "1Gi")
    assert rules(pod(resources, before), pod(resources, after)) == ["resizePolicy"]
    assert rules(pod(resources, before), pod(block("2", "1Gi"), after)) == ["resizePolicy"]


def test_the_policy_is_looked_at_before_the_resource() -> None:
    old, new = (Requirements({"cpu": 1000, "ephemeral-storage": size}) for size in (1000, 2000))
    assert rules(pod(old, {}), pod(new, {})) == ["resource"]
    assert rules(pod(old, {}), pod(new, RESTARTS)) == ["resizePolicy"]


def test_a_policy_that_says_what_is_the_default_is_no_change() -> None:
    old, new = pod(block("1", "1Gi"), {}), pod(block("2", "1Gi"), ON_THE_SPOT)
    assert resize(old, new).allowed


def test_the_policy_of_an_init_container_is_immutable_too() -> None:
    init = Container("setup", block("1"))
    old, new = (pod(block("1"), {}, init=(container,)) for container in (init, replace(init, resize_policy=RESTARTS)))
    assert rules(old, new) == ["resizePolicy"]


def test_an_init_container_does_not_become_a_sidecar() -> None:
    init = Container("setup", block("1"))
    old, new = (pod(block("1"), {}, init=(container,)) for container in (init, replace(init, sidecar=True)))
    assert rules(old, new) == ["resource"]
