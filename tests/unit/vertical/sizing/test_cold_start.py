from __future__ import annotations

from forecaster.vertical.sizing.cold_start import Donor, Donors, donor_size

NEW = Donor("shop/web:2", "shop/web", "app")
SAME_IMAGE = Donor("shop/web:2", "shop/other", "main", cpu=0.5)
SAME_WORKLOAD = Donor("shop/web:1", "shop/web", "app", cpu=0.4)
OTHER = Donor("b/web:9", "b/web", "app", cpu=0.3)


def test_the_same_image_is_the_nearest_donor() -> None:
    assert Donors.of([OTHER, SAME_WORKLOAD, SAME_IMAGE]).nearest(NEW) == ([SAME_IMAGE], "image")


def test_then_the_same_container_of_a_workload_called_alike() -> None:
    assert Donors.of([OTHER, SAME_WORKLOAD]).nearest(NEW) == ([SAME_WORKLOAD], "workload")
    assert Donors.of([OTHER]).nearest(NEW) == ([], "")


def test_a_container_is_not_its_own_donor() -> None:
    assert Donors.of([NEW]).nearest(NEW) == ([], "")


def test_one_donor_says_little() -> None:
    one, many = donor_size([0.5], "image"), donor_size([0.5] * 20, "image")
    assert one is not None
    assert many is not None
    assert one.size > many.size > 0.5
    assert one.high / one.low > many.high / many.low


def test_donors_that_differ_say_less() -> None:
    alike, different = donor_size([0.5, 0.5, 0.5], "image"), donor_size([0.1, 0.5, 2.5], "image")
    assert alike is not None
    assert different is not None
    assert different.high / different.low > alike.high / alike.low


def test_without_sizes_nothing_is_invented() -> None:
    assert donor_size([], "image") is None
