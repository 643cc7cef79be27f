"""Watches of the custom resources that state policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forecaster.kube.watch import Collection, Watch
from forecaster.resources.objects import (
    AUTOSCALERS,
    DEFAULT_POLICIES,
    CustomResource,
    autoscaler_of_resource,
    path_of_all,
    policy_of_resource,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.resources.objects import AutoscalerResource, PolicyResource


class StatedPolicies:
    """PredictiveAutoscalers and PredictivePolicies, as they were known last.

    A cluster without their definitions, or without the right to list them, has none; the state of each watch says why.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        kinds = (Collection(path_of_all(one), CustomResource) for one in (AUTOSCALERS, DEFAULT_POLICIES))
        autoscalers, policies = kinds
        self.autoscalers = Watch(autoscalers, autoscaler_of_resource, clock=clock)
        self.policies = Watch(policies, policy_of_resource, clock=clock)

    @property
    def watches(self) -> tuple[Watch[Any, Any], ...]:
        """Both."""
        return self.autoscalers, self.policies

    def resources(self) -> tuple[list[PolicyResource], list[AutoscalerResource]]:
        """All of them."""
        return list(self.policies.objects.values()), list(self.autoscalers.objects.values())
