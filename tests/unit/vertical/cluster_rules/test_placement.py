from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.vertical.cluster_rules.manifest import ManifestError, limit_range_of, node_of, pod_of, quota_of
from forecaster.vertical.cluster_rules.node import Occupancy
from forecaster.vertical.cluster_rules.node_filters import tolerates
from forecaster.vertical.cluster_rules.node_fit import fit, preemptions
from forecaster.vertical.cluster_rules.placement import LabelCondition, Taint, Toleration, selector_of
from forecaster.vertical.cluster_rules.quota import matches
from forecaster.vertical.cluster_rules.server import LATEST_SERVER
from tests.support.cluster_rules import block, node, pod, quota, resident

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.vertical.cluster_rules.node import Resident
    from forecaster.vertical.cluster_rules.pod import Pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SAME_APP = {"matchLabels": {"app": "web"}}


def term(**more: Any) -> dict[str, Any]:
    return {"topologyKey": "host", "labelSelector": SAME_APP, **more}


def hosts(count: int, **more: Any) -> list[Any]:
    return [node(f"n{i}", labels={"host": f"n{i}"}, **more) for i in range(count)]


class TestSelectors:
    def test_an_absent_selector_matches_nothing_and_an_empty_one_everything(self) -> None:
        assert not selector_of(None).matches({"app": "web"})
        assert selector_of({}).matches({"app": "web"})

    @pytest.mark.parametrize(
        ("operator", "values", "expected"),
        [
            ("In", ["web"], (True, False)),
            ("NotIn", ["web"], (False, True)),
            ("Exists", [], (True, False)),
            ("DoesNotExist", [], (False, True)),
            ("Near", ["web"], (False, False)),
        ],
    )
    def test_operators_with_and_without_the_label(
        self, operator: str, values: list[str], expected: tuple[bool, bool]
    ) -> None:
        selector = selector_of({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]})
        assert (selector.matches({"app": "web"}), selector.matches({})) == expected

    @pytest.mark.parametrize(("size", "larger"), [("600", True), ("400", False), ("1_000", False), ("٦٠٠", False)])
    def test_sizes_are_compared_where_the_scheduler_reads_a_number(self, size: str, larger: bool) -> None:  # noqa: FBT001
        assert LabelCondition("gib", "Gt", ("500",)).holds({"gib": size}) is larger


class TestTolerations:
    @pytest.mark.parametrize(
        ("toleration", "tolerated"),
        [
            (Toleration("spot", "Exists"), True),
            (Toleration("", "Exists"), True),
            (Toleration("spot", "Equal", "yes"), True),
            (Toleration("spot", "Equal", "no"), False),
            (Toleration("spot", "Exists", effect="NoExecute"), False),
            (Toleration("", "Equal", "yes"), False),
        ],
        ids=["key", "everything", "value", "another value", "another effect", "no key needs Exists"],
    )
    def test_of_a_spot_node(self, toleration: Toleration, tolerated: bool) -> None:  # noqa: FBT001
        assert tolerates(toleration, Taint("spot", "yes")) is tolerated


class TestNodeAffinity:
    @pytest.mark.parametrize(
        ("condition", "holds"),
        [
            (LabelCondition("gen", "Gt", ("4",)), True),
            (LabelCondition("gen", "Lt", ("5",)), False),
            (LabelCondition("gen", "Gt", ("four",)), False),
            (LabelCondition("zone", "Gt", ("1",)), False),
            (LabelCondition("zone", "NotIn", ("a",)), True),
        ],
        ids=["greater", "not less", "no integer", "no label", "not in without the label"],
    )
    def test_conditions_on_labels(self, condition: LabelCondition, holds: bool) -> None:  # noqa: FBT001
        assert condition.holds({"gen": "5"}) is holds

    def test_a_term_may_name_the_node(self) -> None:
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
        bound = pod(spec={"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}})
        assert dict(fit(bound, 9, Occupancy(hosts(3), [])).placed) == {"n1": 8}


class TestNeighbours:
    def test_anti_affinity_of_others_counts_as_well(self) -> None:
        repelling = pod(spec={"affinity": {"podAntiAffinity": {REQUIRED: [term()]}}}).placement
        assert dict(fit(pod(), 9, Occupancy(hosts(2), [resident("n0", placement=repelling)])).placed) == {"n1": 8}

    def test_the_first_of_a_group_starts_it_and_the_others_join(self) -> None:
        friendly = pod(spec={"affinity": {"podAffinity": {REQUIRED: [term()]}}})
        result = fit(friendly, 9, Occupancy(hosts(2), []))
        assert dict(result.placed) == {"n0": 8}
        assert result.refused["pod affinity"] == 1

    def test_affinity_to_a_pod_that_does_not_run_finds_no_node(self) -> None:
        lonely = pod(
            spec={"affinity": {"podAffinity": {REQUIRED: [term(labelSelector={"matchLabels": {"app": "db"}})]}}}
        )
        assert fit(lonely, 1, Occupancy(hosts(2), [])).count == 0

    def test_a_node_without_the_topology_key_separates_no_pods(self) -> None:
        repelling = pod(spec={"affinity": {"podAntiAffinity": {REQUIRED: [term()]}}})
        assert fit(repelling, 3, Occupancy([node("bare")], [])).count == 3

    def test_other_namespaces_are_not_meant_unless_named(self) -> None:
        repelling = pod(spec={"affinity": {"podAntiAffinity": {REQUIRED: [term()]}}})
        far = pod_of({"metadata": {"namespace": "data", "labels": {"app": "web"}}, "spec": {}}).placement
        everywhere = pod(spec={"affinity": {"podAntiAffinity": {REQUIRED: [term(namespaceSelector={})]}}})
        assert fit(repelling, 1, Occupancy(hosts(1), [resident("n0", placement=far)])).count == 1
        assert fit(everywhere, 1, Occupancy(hosts(1), [resident("n0", placement=far)])).count == 0

    @pytest.mark.parametrize(("namespaces", "placed"), [(["shop"], 0), (["till"], 1), (None, 1)])
    def test_pods_of_other_namespaces_repel_where_they_name_this_one(
        self, namespaces: list[str] | None, placed: int
    ) -> None:
        spec = {"affinity": {"podAntiAffinity": {REQUIRED: [term(namespaces=namespaces)]}}}
        far = pod_of({"metadata": {"namespace": "data"}, "spec": spec}).placement
        assert fit(pod(), 1, Occupancy(hosts(1), [resident("n0", placement=far)])).count == placed

    def test_a_fleet_in_which_each_workload_spreads_its_pods_is_placed_in_a_moment(self) -> None:
        """Comparing each pod with the pods of every namespace took 2.4 s for this many."""
        spec = {"affinity": {"podAntiAffinity": {REQUIRED: [term()]}}, "containers": [{"name": "a"}]}
        fleet = [
            pod_of({"metadata": {"namespace": f"t{i}", "labels": {"app": "web"}}, "spec": spec}) for i in range(200)
        ]
        there = [resident(f"n{i % 300}", "1m", placement=fleet[i % 200].placement) for i in range(3_000)]
        occupancy = Occupancy(hosts(300, pods="500"), there)
        began = process_time()
        assert all(fit(template, 3, occupancy).count == 3 for template in fleet)
        assert process_time() - began < 1

    def test_a_workload_that_spreads_over_a_thousand_nodes_is_placed_in_a_moment(self) -> None:
        """Counting all domains for each node before a pod's own took 12 s for this many."""
        rule = {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SAME_APP}
        occupancy = Occupancy(hosts(1_000), [])
        began = process_time()
        assert fit(pod(spec={"topologySpreadConstraints": [rule]}), 1_000, occupancy).count == 1_000
        assert process_time() - began < 3


REQUEST = {"cpu": 2000, "memory": 2**30}


class TestPreemption:
    def victims(self, newcomer: Pod, *residents: Resident, count: int = 1) -> list[list[str]]:
        """Names of the pods that are preempted on two nodes, for each of `count` new pods."""
        there = [(each, [pod for pod in residents if pod.node == each.name]) for each in hosts(2)]
        return [[victim.name for victim in each.victims] for each in preemptions(newcomer, REQUEST, there, count)]

    def test_nobody_of_the_same_priority_goes(self) -> None:
        assert self.victims(pod(priority=5), resident("n0", cpu="4", priority=5)) == []

    def test_who_may_not_preempt_does_not(self) -> None:
        assert self.victims(pod(priority=100, preempts=False), resident("n0", cpu="4")) == []

    def test_pods_that_still_fit_are_spared(self) -> None:
        low = [resident("n0", cpu="2", priority=i, name=f"p{i}") for i in (1, 2)]
        assert self.victims(pod(priority=100), *low) == [["p1"]]

    def test_the_node_whose_victims_matter_least(self) -> None:
        full = [resident("n0", cpu="4", priority=9, name="p9"), resident("n1", cpu="4", priority=3, name="p3")]
        assert self.victims(pod(priority=100), *full) == [["p3"]]

    def test_one_after_the_other_until_no_pod_of_lower_priority_is_left(self) -> None:
        """Two new pods take the place of a pod of four cores, which is preempted once."""
        full = [resident("n0", cpu="4", priority=9, name="p9"), resident("n1", cpu="2", name="a")]
        low = resident("n1", cpu="2", name="b")
        assert self.victims(pod(priority=100), *full, low, count=9) == [["b"], ["a"], ["p9"]]

    def test_of_a_large_cluster_only_the_node_that_has_changed_is_looked_at_again(self) -> None:
        """Reading every node with all of its pods for each preemption took 7 s."""
        there = [(host, [resident(host.name, "100m", name=str(i)) for i in range(40)]) for host in hosts(500)]
        began = process_time()
        assert len(preemptions(pod(priority=100), REQUEST, there, 20)) == 20
        assert process_time() - began < 2


class TestManifests:
    def test_an_amount_that_is_none_is_named(self) -> None:
        wire = {
            "metadata": {"namespace": "shop", "name": "web"},
            "spec": {"containers": [{"resources": {"requests": {"cpu": "1x"}}}]},
        }
        with pytest.raises(ManifestError, match=r"pod shop/web: .*unable to parse quantity's suffix 'x'"):
            pod_of(wire)

    @pytest.mark.parametrize(
        ("read", "part"),
        [
            (node_of, {"status": {"allocatable": "4 CPUs"}}),
            (limit_range_of, {"spec": {"limits": [None]}}),
            (limit_range_of, {"spec": {"limits": [{"max": ["1"]}]}}),
            (quota_of, {"spec": {"hard": "much"}}),
        ],
    )
    def test_an_object_of_another_form_is_named(self, read: Callable[[dict[str, Any]], Any], part: Any) -> None:
        """A file of objects may be written by hand; an odd object is left out and named."""
        with pytest.raises(ManifestError, match="odd"):
            read({"metadata": {"name": "odd"}, **part})

    def test_a_node_without_a_name_is_refused(self) -> None:
        with pytest.raises(ManifestError, match="not a node as the API writes it"):
            node_of({"status": {}})

    def test_amounts_finer_than_a_thousandth_are_rounded_up(self) -> None:
        spec = {"containers": [{"name": "a", "resources": {"requests": {"cpu": "100u", "memory": "1m"}}}]}
        assert pod_of({"spec": spec}).containers[0].resources.requests == {"cpu": 1, "memory": 1}

    def test_the_largest_amount_there_is(self) -> None:
        spec = {"containers": [{"name": "a", "resources": {"requests": {"memory": "12E"}}}]}
        assert pod_of({"spec": spec}).containers[0].resources.requests == {"memory": (2**63 - 1) * 1000}


class TestQuotaScopes:
    @pytest.mark.parametrize(
        ("scope", "expected"),
        [
            ({"scopes": ["BestEffort"]}, False),
            ({"scopes": ["NotBestEffort"]}, True),
            ({"scopes": ["NotTerminating"]}, True),
            ({"scopes": ["Tomorrow"]}, False),
            (
                {
                    "scopeSelector": {
                        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                    }
                },
                True,
            ),
        ],
        ids=["best effort", "not best effort", "not terminating", "not known", "priority class"],
    )
    def test_which_pods_a_quota_is_about(self, scope: dict[str, Any], expected: bool) -> None:  # noqa: FBT001
        limited = quota_of({"spec": {"hard": {"pods": "1"}, **scope}, "status": {"used": {"pods": "0"}}})
        assert matches(limited, pod(priority_class="high"), LATEST_SERVER) is expected

    @pytest.mark.parametrize(
        ("resource", "tracked"),
        [("services", False), ("nvidia.com/gpu", False), ("requests.nvidia.com/gpu", True), ("hugepages-2Mi", True)],
    )
    def test_only_a_quota_that_tracks_something_of_pods_is_about_them(self, resource: str, *, tracked: bool) -> None:
        assert matches(quota({resource: "5"}), pod(block("1")), LATEST_SERVER) is tracked
