"""What nobody should write and somebody does: a reason each, and nothing invented."""

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


def resources_of(found: Resize | Hold) -> Resources:
    assert isinstance(found, Resize), found
    return found.resources


class TestRequests:
    @pytest.mark.parametrize("now", [Resources(), Resources(0.0, 0.0, 0.0, 0.0), Resources(5e-9, None, 1.0, 1.0)])
    def test_that_are_missing_or_next_to_nothing_are_sized_from_usage(self, now: Resources) -> None:
        found = resources_of(decided(now))
        assert found.cpu_request == pytest.approx(0.82, abs=0.01)
        assert found.memory_request == pytest.approx(1.01 * GIB, rel=0.01)

    def test_of_twelve_exabytes_are_sized_like_any_other(self) -> None:
        assert resources_of(decided(Resources(12e18, None, 12e18, 12e18))) == resources_of(decided(Resources()))

    def test_that_stay_do_not_keep_a_limit_that_the_policy_wants_gone(self) -> None:
        now = Resources(1.0, 2.0, 1.05 * GIB, 1.05 * GIB)
        assert isinstance(decided(now), Hold)
        found = resources_of(decided(now, cpu_limit="none", memory_limit="none"))
        assert (found.cpu_request, found.cpu_limit, found.memory_limit) == (1.0, None, None)

    def test_of_whole_cores_get_the_limit_that_makes_them_exclusive(self) -> None:
        found = resources_of(decided(Resources(1.0, None, GIB, GIB), static_cpus=True))
        assert (found.cpu_request, found.cpu_limit) == (1.0, 1.0)


class TestHistory:
    @pytest.mark.parametrize("points", [1, 60, 143])
    def test_of_less_than_a_day_is_held(self, points: int) -> None:
        """One point is a job of thirty seconds."""
        short = [np.where(np.arange(DAYS) >= DAYS - points, values, np.nan) for values in (CPU, MEMORY)]
        found = decided(Resources(1.0, None, GIB, GIB), *short)
        assert isinstance(found, Hold)
        assert found.reason is Reason.SHORT_HISTORY
        assert "a day is the least" in found.message

    def test_of_nothing_is_no_number(self) -> None:
        found = decided(Resources(), CPU * np.nan, MEMORY * np.nan)
        assert isinstance(found, Hold)
        assert found.reason is Reason.NO_DATA


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
        for one in objects:
            items.setdefault(one["kind"], []).append(one)
        return cluster_of(items, None)

    def test_a_limit_range_that_nobody_understands_may_refuse_anything(self) -> None:
        known = self.known(given.limit_range("shop", max={"cpu": "many"}), given.limit_range("data", max={"cpu": "2"}))
        assert "'many'" in known.faults[0]
        assert known.limit_ranges is not None
        assert known.limit_ranges["shop"] is None
        assert known.limit_ranges["data"]
        context = known.context_of(workload("web", resources=Resources(1.0, None, GIB, GIB)), 3)
        (finding,) = (one for one in prove({}, context).findings if one.rule == "LimitRange")
        assert finding.verdict is Verdict.UNKNOWN

    def test_a_template_without_containers_says_so(self) -> None:
        assert split(Resources(1.0, None, GIB, None), Pod(())) == "its template has no containers"

    def test_a_quota_that_is_used_up_is_told_although_less_is_asked(self) -> None:
        known = self.known(given.quota("shop", {"requests.cpu": "0"}, {"requests.cpu": "3"}))
        context = known.context_of(workload("web", resources=Resources(1.0, None, GIB, None)), 3)
        proof = prove({"pod": Requirements({"cpu": 500}, {})}, context)
        assert any("used up: no new pod gets through" in str(one) for one in proof.findings)
