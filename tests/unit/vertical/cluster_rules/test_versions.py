"""Rules that differ between 1.36, 1.37 and older servers; the vectors are about 1.37."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forecaster.vertical.cluster_rules.pod import (
    Container,
    ContainerStatus,
    Pod,
    PodStatus,
    Requirements,
    pod_limits,
    pod_requests,
)
from forecaster.vertical.cluster_rules.qos import QosClass, computed_qos
from forecaster.vertical.cluster_rules.resize import resize
from forecaster.vertical.cluster_rules.server import Server
from forecaster.vertical.cluster_rules.validation import defaulted
from tests.support.cluster_rules import block, guaranteed, pod

V1_32, V1_33, V1_35, V1_36, V1_37 = (Server(1, minor) for minor in (32, 33, 35, 36, 37))


@pytest.mark.parametrize(
    ("text", "server"),
    [("1.36", V1_36), ("v1.37.1", V1_37), ("v1.33.5-gke.100", V1_33)],
)
def test_versions_are_read_as_servers_write_them(text: str, server: Server) -> None:
    assert Server.parse(text) == server


def test_a_version_without_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="a server version is written like"):
        Server.parse("latest")


class TestPodLevelDefaults:
    LEVEL = Requirements({"cpu": 2000}, {})

    def test_since_1_37_a_missing_limit_follows_where_every_container_has_one(self) -> None:
        with_level = replace(pod(guaranteed("1", "1Gi")), pod_level=self.LEVEL)
        level = defaulted(with_level, V1_37).pod_level
        assert level is not None
        assert level.limits == {"cpu": 2000, "memory": 2**30 * 1000}
        assert level.requests == {"cpu": 2000, "memory": 2**30 * 1000}

    def test_until_1_36_a_block_without_limits_is_left_alone(self) -> None:
        with_level = replace(pod(guaranteed("1", "1Gi")), pod_level=self.LEVEL)
        assert defaulted(with_level, V1_36).pod_level == self.LEVEL

    def test_until_1_36_requests_follow_the_containers_and_then_the_limits(self) -> None:
        limited = Requirements({}, {"cpu": 4000, "memory": 2**31 * 1000})
        level = defaulted(replace(pod(block("1")), pod_level=limited), V1_36).pod_level
        assert level is not None
        assert level.requests == {"cpu": 1000, "memory": 2**31 * 1000}

    def test_servers_that_do_not_know_the_block_ignore_it(self) -> None:
        with_level = replace(pod(block("1")), pod_level=self.LEVEL)
        assert pod_requests(with_level, V1_33) == {"cpu": 1000}


def test_an_empty_pod_level_block_made_a_pod_best_effort_until_1_36() -> None:
    empty_level = replace(pod(guaranteed("1", "1Gi")), pod_level=Requirements())
    assert computed_qos(empty_level, V1_36) is QosClass.BEST_EFFORT
    assert computed_qos(empty_level, V1_37) is QosClass.GUARANTEED


class TestResizedPods:
    """A pod of two containers, each allocated the request of the other one."""

    def pod(self, **status: str) -> Pod:
        containers = (Container("a", block("1")), Container("b", block("2")))
        reported = {
            name: ContainerStatus({"cpu": milli}, {"cpu": milli}, {"cpu": milli}, has_resources=True)
            for name, milli in (("a", 2000), ("b", 1000))
        }
        return Pod(containers, status=PodStatus(reported, **status))

    def test_since_1_37_the_largest_of_sums_counts(self) -> None:
        assert pod_requests(self.pod(), V1_37, status=True) == {"cpu": 3000}

    def test_until_1_36_the_sum_of_the_largest(self) -> None:
        assert pod_requests(self.pod(), V1_36, status=True) == {"cpu": 4000}
        assert pod_limits(self.pod(), V1_36, status=True) == {"cpu": 3000}

    def test_what_can_never_be_granted_does_not_count(self) -> None:
        infeasible = self.pod(resize_pending="Infeasible")
        assert pod_requests(infeasible, V1_36, status=True) == {"cpu": 3000}
        assert pod_requests(infeasible, V1_37, status=True) == {"cpu": 3000}

    def test_until_1_36_the_status_of_an_ordinary_init_container_does_not_count(self) -> None:
        reported = {"i": ContainerStatus({"cpu": 5000}, None, {"cpu": 5000}, has_resources=True)}
        pod = Pod((Container("a", block("1")),), (Container("i", block("2")),), status=PodStatus(reported))
        assert pod_requests(pod, V1_36, status=True) == {"cpu": 2000}
        assert pod_requests(pod, V1_37, status=True) == {"cpu": 5000}


class TestResizes:
    LEVEL = Requirements({"cpu": 4000}, {"cpu": 4000})

    def test_no_server_before_1_33_resizes(self) -> None:
        assert [refusal.rule for refusal in resize(pod(), pod(block("1", "1Gi")), V1_32).refusals] == ["version"]

    def test_pods_with_a_block_of_their_own_since_1_36(self) -> None:
        old, new = (replace(pod(block(cpu, "1Gi")), pod_level=self.LEVEL) for cpu in ("1", "2"))
        assert not resize(old, new, V1_35).allowed
        assert resize(old, new, V1_36).allowed

    def test_a_client_that_does_not_know_the_block_cannot_lose_it_since_1_37(self) -> None:
        old = replace(pod(block("1", "1Gi")), pod_level=self.LEVEL)
        assert [refusal.rule for refusal in resize(old, pod(block("2", "1Gi")), V1_36).refusals][:1] == ["removal"]
        assert resize(old, pod(block("2", "1Gi")), V1_37).allowed

    def test_ordinary_init_containers_since_1_36(self) -> None:
        old, new = (Pod(pod().containers, (Container("i", block(cpu)),)) for cpu in ("1", "2"))
        assert not resize(old, new, V1_35).allowed
        assert resize(old, new, V1_36).allowed

    def test_static_pods_never(self) -> None:
        old = replace(pod(), static=True)
        assert [
            refusal.rule for refusal in resize(old, replace(pod(block("1", "1Gi")), static=True), V1_37).refusals
        ] == ["static"]

    def test_containers_stay_who_they_are(self) -> None:
        assert [refusal.rule for refusal in resize(pod(), pod(name="other"), V1_37).refusals] == ["containers"]
