"""The limit-to-request ratio near the 64-bit edge: the VPA holds a value there and says so."""

from __future__ import annotations

from typing import Any

import pytest

from forecaster.domain.quantity import parse_quantity
from tests.oracles.vpa_admission import boosted
from tests.oracles.vpa_capping import StartupBoost
from tests.oracles.vpa_limit_range import LimitRange, scale_together
from tests.oracles.vpa_resources import LARGEST, ZERO, Container, Limit, Requirements, milli, proportional_limit

MOST = "9223372036854775807"


def limit(resource: str, **given: str) -> Limit:
    amounts: dict[str, Any] = {name: parse_quantity(text) for name, text in given.items()}
    return proportional_limit(resource, **amounts, default_limit=ZERO)


@pytest.mark.parametrize(
    ("has", "request_", "recommended"),
    [(MOST, "1", "2"), ("10E", "1m", "10G"), ("9E", "1", "2"), ("10G", "1", MOST), ("1", "1m", MOST)],
)
def test_cpu_beyond_64_bits_is_held_at_the_last_millicore(has: str, request_: str, recommended: str) -> None:
    """Millicores of these amounts do not fit into 64 bits; wrapped around, the limit came out negative."""
    limited = limit("cpu", limit=has, request=request_, recommended=recommended)
    assert limited.value is not None
    assert str(limited.value) == "9223372036854775807m"
    assert limited.remark == "cpu: failed to keep limit to request ratio; capping limit to int64"


def test_memory_beyond_64_bits_is_held_at_the_last_byte() -> None:
    limited = limit("memory", limit=MOST, request="3", recommended="10G")
    assert limited.value is not None
    assert limited.value.nano == LARGEST * 10**9
    assert limited.remark.startswith("memory: failed")


def test_a_large_ratio_whose_result_fits_is_kept() -> None:
    """The product of limit and recommended request exceeds 64 bits; the quotient does not."""
    limited = limit("cpu", limit=MOST, request=MOST, recommended="3")
    assert (str(limited.value), limited.remark) == ("3", "")
    limited = limit("cpu", limit="1", request=MOST, recommended="10E")
    assert (str(limited.value), limited.remark) == ("1", "")


def test_amounts_that_wrap_to_the_same_are_not_equal() -> None:
    """2^64 thousandths more: the same lower 64 bits, and another amount."""
    request = parse_quantity("1")
    larger = parse_quantity("18446744073709552616m")
    assert request.milli == larger.milli
    assert milli(request) != milli(larger)
    limited = limit("cpu", limit="18446744073709552616m", request="1", recommended="2")
    assert limited.remark.startswith("cpu: failed")


def test_a_pod_minimum_beyond_64_bits_is_held_too() -> None:
    container = Container("a", Requirements({"cpu": parse_quantity("1")}, {"cpu": parse_quantity("1")}))
    item = LimitRange(least={"cpu": parse_quantity(MOST)})
    scaled = scale_together("cpu", {"a": {"cpu": parse_quantity("1")}}, [container], item)
    assert str(scaled["a"]) == "9223372036854775807m"


def test_a_boost_beyond_64_bits_is_held_too() -> None:
    container = Container("a", Requirements({"cpu": parse_quantity("9E")}))
    boost = StartupBoost("Quantity", quantity=parse_quantity("9E"))
    boosted_container = boosted(container, Requirements({"cpu": parse_quantity("9E")}), boost, [])
    assert str(boosted_container.resources.requests["cpu"]) == "9223372036854775807m"


def test_memory_cut_to_nothing_by_a_maximum_of_the_pod_is_minus_one() -> None:
    """The VPA's own code answers -1, too, for a missing amount beside another container above the maximum."""
    recommended = {"idle": {}, "busy": {"memory": parse_quantity("2Gi")}}
    equal = {"memory": parse_quantity("1Gi")}
    pods = [Container(name, Requirements(equal, equal)) for name in recommended]
    fitted = scale_together("memory", recommended, pods, LimitRange(most={"memory": parse_quantity("1Gi")}))
    assert {name: str(value) for name, value in fitted.items()} == {"idle": "-1", "busy": "1Gi"}
