"""Requests and limits that the VPA's webhook, or its in-place update, writes into one container."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.vertical.reference.vpa.lists import Container, Recommended, Requirements, ResourceList
from forecaster.vertical.reference.vpa.policy import REQUESTS_AND_LIMITS, ContainerPolicy, controlled_values
from forecaster.vertical.reference.vpa.proportional import proportional_limits
from forecaster.vertical.reference.vpa.recommend import BOTH

if TYPE_CHECKING:
    from collections.abc import Sequence


class Written(NamedTuple):
    """What is written, and remarks about limits."""

    resources: Requirements
    remarks: list[str]


def container_resources(
    container: Container,
    recommendation: Recommended | None,
    policies: Sequence[ContainerPolicy],
    *,
    default_limits: ResourceList,
    list_all: bool,
) -> Written:
    """Recommended requests with limits in today's ratio.

    `list_all`, for an update in place, keeps today's values for every resource that has no recommendation.
    """
    has = container.has
    if recommendation is None and not list_all:
        return Written(Requirements(), [])
    requests = has.requests if recommendation is None else recommendation.target or {}
    limits: ResourceList = {}
    remarks: list[str] = []
    if controlled_values(container.name, policies) == REQUESTS_AND_LIMITS:
        limits, remarks = proportional_limits(has, requests, default_limits)
    kept = has if list_all else Requirements()
    return Written(Requirements(_filled(requests, kept.requests), _filled(limits, kept.limits)), remarks)


def _filled(values: ResourceList, present: ResourceList) -> ResourceList:
    """The values, and what is present of CPU and memory that they leave out."""
    return {**values, **{name: present[name] for name in BOTH if name in present and name not in values}}
