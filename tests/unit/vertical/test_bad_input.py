"""Odd manifests, policies and histories each have a reason, and no invented number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from forecaster.domain.decision import Hold, Reason, Resize
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.window import FIVE_MINUTES
from forecaster.domain.workload import Resources
from forecaster.sources.cluster_objects import cluster_of
from forecaster.vertical.admission.checks import Verdict
from forecaster.vertical.admission.cluster import Cluster, split
from forecaster.vertical.admission.proof import prove
from forecaster.vertical.cluster_rules.pod import Pod, Requirements
from forecaster.vertical.sizing.containers import ContainerSizing, ContainerSpec, choose
from forecaster.vertical.sizing.pod import size
from tests.support import objects as given
from tests.support.builders import GIB, workload

DAYS = 3 * 288
RNG = np.random.default_rng(0)
CPU, MEMORY = RNG.gamma(4, 0.1, (1, DAYS)), RNG.gamma(50, 1e7, (1, DAYS))
WEB = workload("web", autoscaler=None)


def decided(now: Resources, cpu: np.ndarray = CPU, memory: np.ndarray = MEMORY, **policy: Any) -> Resize | Hold:
    chosen = VerticalPolicy.model_validate(policy)
    (row,) = choose(cpu, memory, FIVE_MINUTES, [ContainerSpec(now)], chosen)
    return size(WEB, (ContainerSizing("app", row.now, row.cpu, row.memory, row.days),), chosen)


def resources_of(decision: Resize | Hold) -> Resources:
    assert isinstance(decision, Resize), decision
    return decision.resources


class TestRequests:
    @pytest.mark.parametrize("now", [Resources(), Resources(0.0, 0.0, 0.0, 0.0), Resources(5e-9, None, 1.0, 1.0)])
    def test_that_are_missing_or_next_to_nothing_are_sized_from_usage(self, now: Resources) -> None:
        resources = resources_of(decided(now))
        assert resources.cpu_request == pytest.approx(0.82, abs=0.01)
        assert resources.memory_request == pytest.approx(1.01 * GIB, rel=0.01)

    def test_of_twelve_exabytes_are_sized_like_any_other(self) -> None:
        assert resources_of(decided(Resources(12e18, None, 12e18, 12e18))) == resources_of(decided(Resources()))

    def test_that_stay_do_not_keep_a_limit_that_the_policy_removes(self) -> None:
        now = Resources(1.0, 2.0, 1.05 * GIB, 1.05 * GIB)
        assert isinstance(decided(now), Hold)
        resources = resources_of(decided(now, cpu_limit="none", memory_limit="none"))
        assert (resources.cpu_request, resources.cpu_limit, resources.memory_limit) == (1.0, None, None)

    def test_of_whole_cores_get_the_limit_that_makes_them_exclusive(self) -> None:
        resources = resources_of(decided(Resources(1.0, None, GIB, GIB), static_cpus=True))
        assert (resources.cpu_request, resources.cpu_limit) == (1.0, 1.0)


class TestHistory:
    @pytest.mark.parametrize("points", [1, 60, 143])
    def test_of_less_than_a_day_is_held(self, points: int) -> None:
        """A job of thirty seconds has a single point."""
        short = [np.where(np.arange(DAYS) >= DAYS - points, values, np.nan) for values in (CPU, MEMORY)]
        decision = decided(Resources(1.0, None, GIB, GIB), *short)
        assert isinstance(decision, Hold)
        assert decision.reason is Reason.SHORT_HISTORY
        assert "a day is the least" in decision.message

    def test_of_nothing_is_no_number(self) -> None:
        decision = decided(Resources(), CPU * np.nan, MEMORY * np.nan)
        assert isinstance(decision, Hold)
        assert decision.reason is Reason.NO_DATA


@pytest.mark.parametrize(
    "policy",
    [{"cpu_limit": "none"}, {"memory_limit": "peak"}, {"memory_limit": "none"}],
    ids=str,
)
def test_policies_that_contradict_each_other_are_refused(policy: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="static_cpus"):
        VerticalPolicy.model_validate({"static_cpus": True, **policy})


class TestObjects:
    def known(self, *objects: dict[str, Any]) -> Cluster:
        items: dict[str, list[dict[str, Any]]] = {}
        for document in objects:
            items.setdefault(document["kind"], []).append(document)
        return cluster_of(items, None)

    def test_a_limit_range_that_nobody_understands_may_refuse_anything(self) -> None:
        known = self.known(given.limit_range("shop", max={"cpu": "many"}), given.limit_range("data", max={"cpu": "2"}))
        assert "'many'" in known.faults[0]
        assert known.limit_ranges is not None
        assert known.limit_ranges["shop"] is None
        assert known.limit_ranges["data"]
        context = known.context_of(workload("web", resources=Resources(1.0, None, GIB, GIB)), 3)
        (finding,) = (finding for finding in prove({}, context).findings if finding.rule == "LimitRange")
        assert finding.verdict is Verdict.UNKNOWN

    def test_a_template_without_containers_says_so(self) -> None:
        assert split(Resources(1.0, None, GIB, None), Pod(())) == "its template has no containers"

    def test_a_quota_that_is_used_up_is_a_finding_although_less_is_requested(self) -> None:
        known = self.known(given.quota("shop", {"requests.cpu": "0"}, {"requests.cpu": "3"}))
        context = known.context_of(workload("web", resources=Resources(1.0, None, GIB, None)), 3)
        proof = prove({"pod": Requirements({"cpu": 500}, {})}, context)
        assert any("used up: no new pod gets through" in str(finding) for finding in proof.findings)
