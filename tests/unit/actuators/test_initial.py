"""Sizes that the webhook gives new pods, pods that keep their template's, and the answer to the API server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.actuators.resize.pods import BEFORE, LABEL, SIZE
from forecaster.actuators.settings import ActingSettings
from forecaster.domain.decision import Hold, Reason
from forecaster.domain.workload import Resources
from forecaster.publish.new_pods import NewPodsFile
from forecaster.resources.neighbours import Neighbours, VpaNeighbour
from forecaster.serving.new_pods import NewPodAdmission
from tests.support.admitting import (
    FITS,
    MIB,
    WEB,
    Admitting,
    Document,
    FakeRules,
    admitting_in,
    sized,
    web,
)
from tests.support.builders import NOON

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def admitting(tmp_path: Path) -> Admitting:
    return admitting_in(tmp_path)


def cpu(pod: Document) -> str:
    return str(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def test_other_fields_of_a_pod_stay(admitting: Admitting) -> None:
    admitting.cycle(sized())
    pod = admitting.made()
    assert pod["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "300m", "memory": "128Mi", "ephemeral-storage": "1Gi"},
        "claims": [{"name": "one"}],
    }
    assert pod["metadata"]["labels"] == {"pod-template-hash": "abc", LABEL: "watched"}
    assert json.loads(pod["metadata"]["annotations"][BEFORE])["new"] is True


def test_asked_once_more_the_answer_is_the_same(admitting: Admitting) -> None:
    """Another webhook put a container into the pod between the two requests."""
    admitting.cycle(sized())
    once = admitting.made()
    once["spec"]["containers"].append({"name": "proxy", "resources": {"requests": {"cpu": "10m"}}})
    twice = admitting.made(once)
    before = json.loads(twice["metadata"]["annotations"][BEFORE])["containers"]
    assert (cpu(twice), before["app"]["requests"]["cpu"], before["proxy"]["requests"]["cpu"]) == ("300m", "100m", "10m")


@pytest.mark.parametrize(
    ("pod", "size"),
    [
        (web(), "300m"),
        (web(labels={"rollouts-pod-template-hash": "abc"}), "100m"),
        (web(hashed="other"), "100m"),
        (web("web-1", kind="Job"), "100m"),
        (web("web", kind="StatefulSet"), "100m"),
        (web(annotations={"vpaObservedContainers": "app"}), "100m"),
        (web(annotations={BEFORE: "what"}), "100m"),
        (web(ownerReferences=[]), "100m"),
        ({"metadata": {}, "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "?"}}}]}}, "?"),
    ],
    ids=["ours", "rollout", "hash", "job", "stateful", "vpa", "marked", "no-owner", "unreadable"],
)
def test_only_pods_of_the_workload_that_are_understood_are_sized(
    admitting: Admitting, pod: Document, size: str
) -> None:
    admitting.cycle(sized())
    assert cpu(admitting.made(pod)) == size


@pytest.mark.parametrize(("minutes", "size"), [(2.9, "300m"), (3.0, "100m"), (-5.0, "100m")])
def test_an_old_cycle_sizes_no_new_pod(admitting: Admitting, minutes: float, size: str) -> None:
    admitting.cycle(sized())
    assert cpu(admitting.made(minutes=minutes)) == size


def test_while_a_given_size_fits_the_running_pods_it_is_given_on(admitting: Admitting) -> None:
    """Pods of a given size fit, so nothing new is decided; withdrawing it would make sizes alternate."""
    given = Resources(cpu_request=0.3, memory_request=128 * MIB)
    admitting.cycle(sized())
    assert admitting.cycle(FITS, minutes=1, now=given) == {"offered": 1, "owned": 0, "rolled-back": 0}
    assert cpu(admitting.made(minutes=1)) == "300m"
    admitting.actuator.given = None  # another process, which finds the file
    assert admitting.cycle(FITS, minutes=2, now=given)["offered"] == 1
    assert admitting.cycle(FITS, minutes=3, now=Resources(0.1, memory_request=64 * MIB))["offered"] == 0
    held = Hold(Reason.NO_DATA, "nothing is known")
    assert admitting.cycle(held, minutes=4, now=given)["offered"] == 0


def test_sizes_of_workloads_that_are_gone_are_not_kept(admitting: Admitting) -> None:
    admitting.cycle(sized())
    gone = WEB._replace(name="preview-1")
    assert admitting.actuator.given is not None
    admitting.actuator.given[gone] = admitting.actuator.given[WEB]
    admitting.cycle(sized(0.4), minutes=1)
    assert admitting.actuator.given.keys() == {WEB}


@pytest.mark.parametrize("given", [{"paused": True}, {"dry_run": True}], ids=str)
def test_paused_or_tried_out_new_pods_keep_their_sizes(admitting: Admitting, given: dict[str, bool]) -> None:
    admitting.actuator.acting = ActingSettings.model_validate(given)
    admitting.cycle(sized())
    assert cpu(admitting.made()) == "100m"


def test_a_size_stays_within_a_limit_range(admitting: Admitting) -> None:
    limits = {"metadata": {"name": "small"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "200m"}}]}}
    admitting.actuator.cluster = FakeRules({"shop": [limits]})
    admitting.cycle(sized())
    assert cpu(admitting.made()) == "200m"


def test_a_new_pod_that_states_its_resources_as_a_whole_needs_a_size_of_each_container(admitting: Admitting) -> None:
    admitting.cycle(sized())
    pod = web()
    pod["spec"] = {"containers": [{"name": "app"}], "resources": {"requests": {"cpu": "200m"}}}
    made = admitting.made(pod)
    assert made["spec"]["resources"] == {"requests": {"cpu": "300m"}}
    assert "resources" not in made["spec"]["containers"][0]
    pod["spec"]["containers"].append({"name": "proxy"})
    assert admitting.made(pod) == pod


@given(
    body=st.one_of(
        st.binary(max_size=64),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "request",
                            "uid",
                            "object",
                            "operation",
                            "namespace",
                            "metadata",
                            "spec",
                            "containers",
                            "labels",
                        ]
                    ),
                    inner,
                    max_size=4,
                )
            ),
        ).map(lambda document: json.dumps(document).encode()),
    )
)
def test_whatever_is_sent_there_is_an_answer(tmp_path_factory: pytest.TempPathFactory, body: bytes) -> None:
    admission = NewPodAdmission(NewPodsFile(tmp_path_factory.getbasetemp() / "none"), lambda: NOON)
    assert admission.answer("POST", body).status in {200, 400}


def node(name: str, cpu: str, **spec: object) -> Document:
    allocatable = {"cpu": cpu, "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "pool": name}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": allocatable}}


class TestRoomOfNodes:
    @pytest.fixture(autouse=True)
    def nodes(self, admitting: Admitting) -> None:
        rules = admitting.actuator.cluster
        assert isinstance(rules, FakeRules)
        taint = {"key": "gpu", "value": "", "effect": "NoSchedule"}
        rules.of_nodes = [
            node("small", "1"),
            node("large", "2"),
            node("cordoned", "16", unschedulable=True),
            node("tainted", "32", taints=[taint]),
        ]
        admitting.actuator.daemons = lambda: {"large": [Resources(0.2), Resources(0.3)]}

    def test_a_size_is_brought_to_what_the_roomiest_node_has_beside_its_daemons(self, admitting: Admitting) -> None:
        admitting.cycle(sized(3.0))
        pod = admitting.made()
        assert cpu(pod) == "1500m"
        assert "cpu 3, memory 128Mi; no node takes one even when empty" in pod["metadata"]["annotations"][SIZE]

    def test_a_size_that_fits_stays(self, admitting: Admitting) -> None:
        admitting.cycle(sized(1.5))
        assert cpu(admitting.made()) == "1500m"

    def test_a_node_counts_for_a_pod_that_may_run_there(self, admitting: Admitting) -> None:
        admitting.cycle(sized(20.0))
        pod = web()
        pod["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
        assert cpu(admitting.made(pod)) == "20"
        pod["spec"] |= {"tolerations": [], "nodeSelector": {"pool": "small"}}
        assert cpu(admitting.made(pod)) == "1"

    def test_where_no_node_is_known_nothing_bounds_it(self, admitting: Admitting) -> None:
        admitting.actuator.cluster.of_nodes = []  # type: ignore[attr-defined]
        admitting.cycle(sized(64.0))
        assert cpu(admitting.made()) == "64"


@pytest.mark.parametrize("mode", ["Auto", "Initial", "Off"])
def test_beside_a_vpa_the_rule_is_that_of_running_pods_and_its_reason_is_reported(
    admitting: Admitting, mode: str
) -> None:
    beside = Neighbours(vpas=[VpaNeighbour("web", WEB, mode, {})])
    admitting.actuator.neighbours = lambda _: beside
    states = admitting.cycle(sized())
    owned = mode != "Off"
    assert states["owned"] == owned
    assert [refusal.message for refusal in admitting.actuator.lasting.values()] == [beside.writes_sizes(WEB)] * owned
    assert cpu(admitting.made()) == ("100m" if owned else "300m")
