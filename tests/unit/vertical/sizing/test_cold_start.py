from __future__ import annotations

from dataclasses import replace

import pytest

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import ContainerFacts, ContainerId, Resources, WorkloadId
from forecaster.vertical.sizing.cold_start import Donor, Donors, donor_size, with_donors
from forecaster.vertical.sizing.containers import ChosenSize, ContainerSizing

NEW = Donor("shop", "web:2", "web", "app")
SAME_IMAGE = Donor("shop", "web:2", "other", "main", cpu=0.5)
SAME_WORKLOAD = Donor("shop", "web:1", "web", "app", cpu=0.4)
OTHER = Donor("shop", "web:9", "else", "app", cpu=0.3)
ELSEWHERE = [replace(SAME_IMAGE, namespace=f"team-{number}", cpu=0.3) for number in range(4)]
TENANT = [replace(SAME_IMAGE, namespace="tenant", cpu=500.0, workload=f"w{number}") for number in range(9)]
"""A tenant runs a popular image in nine huge pods."""


def lent(*donors: Donor) -> tuple[float, str]:
    """Cores that these donors lend to the new container, and the kind of the donors."""
    loan = Donors.of(donors).sizes(NEW).get("cpu")
    return (loan.size, loan.by) if loan else (0.0, "")


def test_the_same_image_is_the_nearest_donor() -> None:
    assert lent(OTHER, SAME_WORKLOAD, SAME_IMAGE)[1] == "image"


def test_then_the_same_container_of_a_workload_called_alike() -> None:
    assert lent(OTHER, SAME_WORKLOAD)[1] == "workload"
    assert lent(OTHER) == (0.0, "")


def test_then_the_same_image_in_other_namespaces() -> None:
    cores, by = lent(*ELSEWHERE)
    assert (0.3 < cores < 0.6, by) == (True, "others")


def test_no_tenant_sizes_the_pods_of_another_one() -> None:
    assert lent(*TENANT) == (0.0, "")
    assert lent(*TENANT, *ELSEWHERE)[0] < 0.6
    assert lent(replace(SAME_WORKLOAD, namespace="tenant", cpu=500.0)) == (0.0, "")


def test_a_container_without_a_size_lends_none() -> None:
    assert lent(NEW) == (0.0, "")


def test_a_single_donor_is_weak_evidence() -> None:
    single, many = donor_size([0.5], "image"), donor_size([0.5] * 20, "image")
    assert single is not None
    assert many is not None
    assert single.size > many.size > 0.5
    assert single.high / single.low > many.high / many.low


def test_donors_that_differ_are_weaker_evidence() -> None:
    alike, different = donor_size([0.5, 0.5, 0.5], "image"), donor_size([0.1, 0.5, 2.5], "image")
    assert alike is not None
    assert different is not None
    assert different.high / different.low > alike.high / alike.low


@pytest.mark.parametrize("sizes", [[0.01, 1.0], [0.1, 0.1, 0.1, 1.0]], ids=["two", "one of four"])
def test_donors_that_differ_much_lend_no_more_than_the_largest_alone(sizes: list[float]) -> None:
    """For donors of 10m and one core, the quantile of the fitted distribution would be 16 cores."""
    chosen, largest = donor_size(sizes, "image"), donor_size([1.0], "image")
    assert chosen is not None
    assert largest is not None
    assert chosen.size < largest.size + 1e-9 < 2


def test_without_sizes_nothing_is_invented() -> None:
    assert donor_size([], "image") is None


@pytest.mark.parametrize(("now", "limit"), [(4e9, 4e9), (1e9, 2e9), (None, 2e9)], ids=["above", "below", "none"])
def test_donors_never_lower_a_memory_limit(now: float | None, limit: float) -> None:
    """The limit is the peak by default, and a cold start has none: what is larger today stays."""
    new, like = (WorkloadId("shop", "Deployment", name) for name in ("new", "like"))
    lent = ChosenSize(2e9, 2e9, None, None, 0.0)
    fresh = {new: (ContainerSizing("app", Resources(None, None, 1e9, now), days=0.1),)}
    known = {like: (ContainerSizing("app", Resources(), memory=lent, days=9.0),)}
    facts = ContainerFacts(dict.fromkeys((ContainerId(new, "app"), ContainerId(like, "app")), "web"))
    memory = with_donors(fresh, known, facts, Policies(Policy()), lambda id_: id_.name)[new][0].memory
    assert memory is not None
    assert memory.request >= 2e9
    assert memory.limit == max(limit, memory.request)


def test_only_containers_that_may_lend_to_a_new_one_are_looked_at() -> None:
    """Making donors of all 200,000 containers of a fleet took two seconds in each cycle."""
    new, like, other = (WorkloadId(name, "Deployment", name) for name in ("new", "like", "other"))
    images = {ContainerId(new, "app"): "web", ContainerId(like, "main"): "web", ContainerId(other, "app"): "db"}
    half = ChosenSize(0.5, None, None, None, 0.0)
    queried: list[str] = []

    def alike(id_: WorkloadId) -> str:
        queried.append(id_.name)
        return id_.name

    fresh = {new: (ContainerSizing("app", Resources(), days=0.1),)}
    known = {
        id_: (ContainerSizing(name, Resources(), half, days=1.0),) for id_, name in ((like, "main"), (other, "app"))
    }
    assert with_donors(fresh, known, ContainerFacts(images), Policies(Policy()), alike) == fresh
    assert queried == ["new", "like"]
