"""Sentences about values that settings do not take: our own words, with the right spelling."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from forecaster.domain.policy import Policy
from forecaster.domain.settings import sentences


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"mode": "Flor"}, "mode is 'Flor': must be one of observe, publish, floor, scale; did you mean floor?"),
        ({"horizontal": {"quantile": 95}}, "horizontal.quantile is '95': must be at most 0.99; for 95 % write 0.95"),
        ({"horizontal": {"quantile": 2}}, "horizontal.quantile is '2': must be at most 0.99"),
        ({"horizontal": {"lead_time": "4 minutes"}}, "like 90s, 5m, 1h30m or 14d; write 4m"),
        ({"horizontal": {"lead_time": "13h"}}, "horizontal.lead_time is '13h': must be at most 12h"),
        ({"horizontal": {"max_replicas": 2.5}}, "horizontal.max_replicas is '2.5': must be a whole number"),
        ({"horizontal": {"max_replicas": 10**400}}, "must be at most 100000"),
        ({"horizontal": {"max_replicas": "many"}}, "horizontal.max_replicas is 'many': must be a whole number"),
        ({"horizontal": {"scale_in_by_forecast": "perhaps"}}, "must be true or false"),
        ({"horizontal": 3}, "horizontal is '3': must be a section, with its settings below it"),
        ({"vertical": {"min_memory": "64MB"}}, "vertical.min_memory is '64MB': write 64M"),
        ({"vertical": {"min_cpu": -1}}, "vertical.min_cpu is '-1': must be above 0"),
        ({"colour": "red"}, "colour is 'red': no such setting"),
    ],
    ids=str,
)
def test_each_fault_names_setting_value_and_remedy(policy: dict[str, object], expected: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Policy.model_validate(policy)
    (sentence,) = sentences(caught.value)
    assert expected in sentence
    assert "Input" not in sentence
