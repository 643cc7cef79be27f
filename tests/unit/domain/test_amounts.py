from __future__ import annotations

import pytest

from forecaster.domain.amounts import amount, cores, memory, pods_change
from forecaster.domain.workload import Resources
from tests.support.builders import GIB


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0m"),
        (0.25, "250m"),
        (2.0, "2000m"),
        (9.9996, "10000m"),
        (10.0, "10"),
        (999.7, "1000"),
        (12_345.6, "12346"),
    ],
)
def test_cpu_is_written_in_millicores_below_ten_cores(value: float, text: str) -> None:
    assert cores(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1023.0, "1023"),
        (1024.0, "1Ki"),
        (0.5 * GIB, "512Mi"),
        (1.5 * GIB, "1.5Gi"),
        (1010 * GIB, "1010Gi"),
        (2048 * GIB, "2Ti"),
        (2.0**73, "8388608Pi"),
    ],
)
def test_memory_is_written_with_the_binary_suffix_that_leaves_a_small_number(value: float, text: str) -> None:
    assert memory(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.5, "cores", "500m"),
        (10.0, "cores", "10 cores"),
        (GIB, "bytes", "1Gi"),
        (1234.4, "requests/s", "1234/s"),
        (56789.0, "requests/s", "56789/s"),
        (12.0, "messages", "12 messages"),
        (None, "cores", "–"),
    ],
)
def test_an_amount_is_written_in_the_unit_of_its_signal(value: float | None, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_a_pod_shows_request_and_limit_and_a_dash_for_what_is_not_set() -> None:
    stated = Resources(0.5, None, GIB, 2 * GIB)
    assert pods_change(stated, stated) == "cpu 500m/–, memory 1Gi/2Gi"


def test_a_limit_equal_to_the_request_is_not_repeated() -> None:
    stated = Resources(None, None, GIB, GIB)
    assert pods_change(stated, stated) == "cpu –, memory 1Gi"
