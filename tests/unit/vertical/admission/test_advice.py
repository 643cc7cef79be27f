from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecaster.domain.decision import Hold, Reason, Recommendation, Resize, Scale
from forecaster.domain.workload import ContainerSize, Prices, Resources, Workload, WorkloadId
from forecaster.vertical.admission.advice import (
    Advice,
    advise,
    file_name,
    kustomization,
    patch,
    patchable,
    rounded,
    sum_of,
)
from forecaster.vertical.admission.cluster import Cluster, split
from forecaster.vertical.admission.proof import prove
from forecaster.vertical.cluster_rules.pod import Container, Pod
from forecaster.vertical.recommenders.baselines import Severity, krr, vpa
from tests.support.cluster_rules import block, limits, quota
from tests.support.recommendations import GIB, NOON

MIB = 2.0**20
WEB = WorkloadId("shop", "Deployment", "web")
NOW = Resources(1.0, None, GIB, GIB)


def advice(recommended: Resources | None, cluster: Cluster | None = None, *, now: Resources = NOW) -> Advice:
    decided = Resize(recommended, Reason.SIZED, "sized") if recommended else Hold(Reason.NO_DATA, "nothing known")
    record = Recommendation(WEB, NOON, 3, Scale(4, Reason.REACTIVE, ""), now, decided)
    return advise(Workload(WEB, 3, 3, now), record, cluster or Cluster())


def two_containers() -> Cluster:
    containers = (Container("app", block("750m", "768Mi")), Container("proxy", block("250m", "256Mi")))
    return Cluster(templates={WEB: Pod(containers)})


def test_amounts_are_rounded_up_to_what_a_manifest_says() -> None:
    assert rounded(Resources(0.12341, None, 100 * MIB + 1, None)) == Resources(0.124, None, 101 * MIB, None)


def test_what_is_exact_already_stays() -> None:
    assert rounded(Resources(0.1 + 0.2, None, GIB, None)) == Resources(0.3, None, GIB, None)


@pytest.mark.parametrize(
    ("recommended", "severity"),
    [
        (Resources(1.05, None, GIB, GIB), Severity.GOOD),
        (Resources(0.85, None, GIB, GIB), Severity.OK),
        (Resources(1.3, None, GIB, GIB), Severity.WARNING),
        (Resources(1.0, None, 2 * GIB, 2 * GIB), Severity.CRITICAL),
    ],
    ids=["near", "a little too much", "a quarter core short", "a GiB short"],
)
def test_severity_is_how_far_off(recommended: Resources, severity: Severity) -> None:
    assert advice(recommended).severity is severity


def test_a_hold_has_no_values_and_no_severity() -> None:
    held = advice(None)
    assert (held.recommended, held.values, held.severity) == (None, None, Severity.UNKNOWN)


def test_a_pod_s_sum_is_split_by_what_its_containers_request_today() -> None:
    advised = advice(Resources(2.0, None, 2 * GIB, 2 * GIB), two_containers())
    assert advised.values is not None
    assert {name: values.requests["cpu"] for name, values in advised.values.items()} == {"app": 1500, "proxy": 500}
    assert advised.applied == Resources(2.0, None, 2 * GIB, 2 * GIB)


def test_containers_that_state_nothing_cannot_be_split() -> None:
    reason = split(Resources(1.0, None, GIB, None), Pod((Container("a"), Container("b"))))
    assert reason == "2 containers, none of which requests cpu or memory: no share to split by"


def test_containers_that_were_sized_one_by_one_are_taken_as_they_are() -> None:
    sizes = tuple(
        ContainerSize(name, NOW, Resources(cpu, None, GIB, GIB), None, None, "")
        for name, cpu in (("app", 1.2341), ("proxy", 0.1))
    )
    decided = Resize(Resources(1.3341, None, 2 * GIB, 2 * GIB), Reason.SIZED, "sized", sizes)
    record = Recommendation(WEB, NOON, 3, Scale(4, Reason.REACTIVE, ""), NOW, decided)
    advised = advise(Workload(WEB, 3, 3, NOW), record, Cluster())
    assert advised.values is not None
    assert {name: values.requests["cpu"] for name, values in advised.values.items()} == {"app": 1235, "proxy": 100}
    assert patchable(advised)


def test_a_container_that_is_injected_into_pods_is_no_part_of_their_template() -> None:
    """A mesh adds its proxy to every pod, so the proxy's size belongs neither to the app nor to the template."""
    sizes = tuple(
        ContainerSize(name, NOW, Resources(cpu, None, GIB, GIB), None, None, "")
        for name, cpu in (("app", 0.5), ("proxy", 0.1))
    )
    decided = Resize(Resources(0.6, None, 2 * GIB, 2 * GIB), Reason.SIZED, "sized", sizes)
    record = Recommendation(WEB, NOON, 3, Scale(4, Reason.REACTIVE, ""), NOW, decided)
    cluster = Cluster(templates={WEB: Pod((Container("app", block("1", "1Gi", limits=(None, "1Gi"))),))})
    advised = advise(Workload(WEB, 3, 3, NOW), record, cluster)
    assert advised.values == {"app": block("500m", "1Gi", limits=(None, "1Gi"))}


def test_a_resource_without_a_sum_keeps_what_the_containers_state() -> None:
    stated = Pod((Container("app", block("1", "1Gi", limits=("2", "1Gi"))),))
    assert split(Resources(None, None, 2 * GIB, None), stated) == {"app": block("1", "2Gi", limits=("2", None))}


def test_what_the_cluster_refuses_is_replaced_by_the_nearest() -> None:
    cluster = replace(two_containers(), limit_ranges={"shop": (limits(max={"cpu": "1", "memory": "4Gi"}),)})
    advised = advice(Resources(2.0, None, 2 * GIB, 2 * GIB), cluster)
    assert advised.refused
    assert advised.values is not None
    assert advised.values["app"].requests["cpu"] == 1000


@pytest.mark.parametrize(("kind", "refused"), [("Deployment", True), ("StatefulSet", False), ("DaemonSet", False)])
def test_pods_that_are_replaced_one_by_one_need_no_quota_for_a_surge(kind: str, *, refused: bool) -> None:
    cluster = Cluster(quotas={"shop": (quota({"requests.cpu": "4"}, {"requests.cpu": "3"}),)})
    facts = cluster.context_of(Workload(WorkloadId("shop", kind, "web"), 3, 3, NOW), 3, None, {"app": NOW})
    assert bool(prove({"app": block("1200m", "1Gi", limits=(None, "1Gi"))}, facts).refusals) is refused


def test_the_sum_has_a_limit_only_if_every_container_has_one() -> None:
    assert sum_of({"a": block("1", "1Gi", limits=("2", None)), "b": block("1", "1Gi")}).cpu_limit is None


def test_prices_are_for_requests_of_all_pods() -> None:
    assert Prices(0.03, 0.004).a_month(Resources(1.0, None, 2 * GIB, None), 3) == pytest.approx(
        (0.03 + 0.008) * 3 * 730
    )


def test_no_request_no_price() -> None:
    assert Prices(0.03, 0.004).a_month(Resources(1.0, None, None, None), 3) is None


class TestPatches:
    def test_a_patch_is_a_file_of_its_folder(self) -> None:
        """A series that a tenant exports may name any workload."""
        advised = replace(advice(None), id=WorkloadId("shop", "Deployment", "../../../etc/cron.d/x"))
        assert "/" not in file_name(advised)

    def test_no_two_workloads_share_a_file(self) -> None:
        """Namespaces and names have dashes, and a tenant chooses both."""
        ids = [("a", "b-deployment-c"), ("a-deployment-b", "c")]
        names = {file_name(replace(advice(None), id=WorkloadId(space, "Deployment", name))) for space, name in ids}
        assert len(names) == 2

    def test_a_patch_changes_requests_and_limits_only(self) -> None:
        (container, proxy) = patch(advice(Resources(2.0, None, 2 * GIB, 2 * GIB), two_containers()))["spec"][
            "template"
        ]["spec"]["containers"]
        assert container["resources"] == {
            "requests": {"cpu": "1500m", "memory": "1536Mi"},
            "limits": {"cpu": None, "memory": "1536Mi"},
        }
        assert proxy["name"] == "proxy"

    def test_a_sidecar_is_patched_where_the_template_has_it(self) -> None:
        """The API server would refuse it under `containers`: a second name without an image."""
        pod = Pod(
            (Container("app", block("750m", "768Mi")),), (Container("mesh", block("250m", "256Mi"), sidecar=True),)
        )
        sizes = tuple(
            ContainerSize(name, NOW, Resources(cpu, None, GIB, GIB), None, None, "")
            for name, cpu in (("app", 1.5), ("mesh", 0.1))
        )
        decided = Resize(Resources(1.6, None, 2 * GIB, 2 * GIB), Reason.SIZED, "sized", sizes)
        record = Recommendation(WEB, NOON, 3, Scale(4, Reason.REACTIVE, ""), NOW, decided)
        spec = patch(advise(Workload(WEB, 3, 3, NOW), record, Cluster(templates={WEB: pod})))["spec"]["template"][
            "spec"
        ]
        assert [(container["name"], container["resources"]["requests"]["cpu"]) for container in spec["containers"]] == [
            ("app", "1500m")
        ]
        assert [
            (container["name"], container["resources"]["requests"]["cpu"]) for container in spec["initContainers"]
        ] == [("mesh", "100m")]

    def test_containers_whose_names_nobody_knows_have_no_patch(self) -> None:
        assert not patchable(advice(Resources(2.0, None, 2 * GIB, 2 * GIB)))

    def test_the_overlay_names_every_patch(self) -> None:
        overlay = kustomization([advice(Resources(2.0, None, GIB, GIB), two_containers())])
        assert overlay["patches"] == [{"path": "shop.deployment.web.yaml"}]


class TestBaselines:
    def test_vpa_on_a_constant_day(self) -> None:
        """The VPA's specification has this example: 0.25 cores and 300 MB for a day, a sample a minute."""
        instants = 1_700_000_000 + 60 * np.arange(1441, dtype=np.int64)
        (size,) = vpa(np.full((1, 1441), 0.25), np.full((1, 1441), 3e8), instants)
        assert size == Resources(0.296, None, 351198544.0, None)

    def test_krr_takes_the_95th_percentile_and_the_peak(self) -> None:
        cores = np.arange(1.0, 201.0)[None, :] / 100
        (size,) = krr(cores, np.full((1, 200), 1000 * MIB), [frozenset()])
        assert size == Resources(1.901, None, 1150 * MIB, 1150 * MIB)

    def test_krr_recommends_nothing_for_a_resource_that_an_hpa_targets(self) -> None:
        (size,) = krr(np.full((1, 200), 1.0), np.full((1, 200), 1000 * MIB), [frozenset({"cpu"})])
        assert size is not None
        assert (size.cpu_request, size.memory_request) == (None, 1150 * MIB)

    def test_without_usage_nothing_is_recommended(self) -> None:
        unseen = np.full((1, 200), np.nan)
        assert vpa(unseen, unseen, np.arange(200, dtype=np.int64) + 1) == [None]
        assert krr(unseen, unseen, [frozenset()]) == [None]
