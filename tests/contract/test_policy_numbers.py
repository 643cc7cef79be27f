"""A number of a policy is declared once: everything that it appears in follows from its field.

Whoever adds a field with `Decides` to `HorizontalPolicy` has its column, annotation, schema, text, table, `--set` and
slider; a clamp that reads it, with its sentence, is all that is left to write.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from math import inf, isnan
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from forecaster.cli.explain import with_changes
from forecaster.config.settings import parse
from forecaster.config.text import explained_setting, setting_rows, settings_text
from forecaster.domain.amounts import duration_text
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.policy_numbers import PolicyNumber, policy_numbers, stated_numbers
from forecaster.horizontal.clamps import CLAMPS
from forecaster.horizontal.inputs import PolicyColumns
from forecaster.horizontal.terms import policy_columns, terms_of
from forecaster.replay.sliders import LEAD_TIME, sliders_of
from forecaster.resources.definitions import definitions
from forecaster.resources.objects import camel
from forecaster.sources.stated import annotated
from tests.support.builders import workload

if TYPE_CHECKING:
    from forecaster.config.text import SettingRow
    from forecaster.domain.workload import WorkloadId

NUMBERS = policy_numbers()
BEFORE_CLAMPS = {"desired replicas"}
WEB: WorkloadId = workload("web").id
every_number = pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)


def inside(number: PolicyNumber) -> float:
    """A number in its range that is not its default."""
    highest = min(number.highest, {float: 8.0, int: 60.0}.get(number.kind, 3600.0))
    return round((number.lowest + 2 * highest) / 3, 3) if number.kind is float else (number.lowest + highest) // 3


def spelt(number: PolicyNumber, value: float) -> Any:
    """The number as settings files have it."""
    native = number.value(value)
    return duration_text(native) if isinstance(native, timedelta) else native


def stated(number: PolicyNumber, value: float) -> Policy:
    """A policy that states it."""
    return parse({"policy": {"horizontal": {number.name: spelt(number, value)}}}, "test").policy


@every_number
def test_its_column_holds_what_the_policy_states(number: PolicyNumber) -> None:
    value = inside(number)
    columns = policy_columns([terms_of(workload("web"), stated(number, value).horizontal, ())])
    column = columns.numbers.get(number.name)
    assert float((getattr(columns, number.name) if column is None else column)[0]) == pytest.approx(value)


@pytest.mark.parametrize("name", stated_numbers())
def test_a_number_out_of_its_range_is_impossible_in_its_column(name: str) -> None:
    beyond = NUMBERS[name].highest + 1.0
    usual = PolicyColumns.usual(1)
    usual[name][0] = beyond
    assert usual.number_of(int(usual.impossible[0]), 0) == (name, beyond)


@every_number
def test_an_annotation_states_it(number: PolicyNumber) -> None:
    value = inside(number)
    name = f"forecaster.dev/{number.name.replace('_', '-')}"
    annotations = annotated({name: str(spelt(number, value))}, "HPA shop/web")
    assert annotations.faults == ()
    assert annotations.layer is not None
    policy = Policy.model_validate(annotations.layer.policy)
    assert getattr(policy.horizontal, number.name) == number.value(value)


@every_number
def test_the_api_server_knows_its_range(number: PolicyNumber) -> None:
    for definition in definitions():
        spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        schema = spec["properties"]["horizontal"]["properties"][camel(number.name)]
        assert schema["description"]
        bounds = {key for key in ("minimum", "maximum") if key in schema}
        assert bounds or schema["x-kubernetes-validations"]


@cache
def example() -> Any:
    """The settings that `forecaster settings` prints, as a mapping."""
    return yaml.safe_load(settings_text())


@cache
def reference() -> dict[str, SettingRow]:
    """Rows of the reference of settings, by path."""
    return {f"{row.section}.{row.name}": row for row in setting_rows()}


@every_number
def test_settings_and_docs_say_what_it_is(number: PolicyNumber) -> None:
    path = f"policy.horizontal.{number.name}"
    assert number.name in example()["policy"]["horizontal"]
    assert explained_setting(path).startswith(f"{path}:")
    row = reference()[path]
    assert row.meaning
    assert row.allowed


@every_number
def test_set_takes_it(number: PolicyNumber) -> None:
    value = inside(number)
    policies = with_changes(Policies(Policy()), [f"{number.name}={spelt(number, value)}"])
    assert getattr(policies.of(WEB).horizontal, number.name) == number.value(value)


@every_number
def test_a_slider_of_the_what_if_tries_it(number: PolicyNumber) -> None:
    sliders = sliders_of({number.name: inside(number)})
    assert number.name == LEAD_TIME or sliders[number.name].unit == number.unit


@every_number
def test_it_has_a_range_and_a_clamp_that_reads_it(number: PolicyNumber) -> None:
    assert -inf < number.lowest < number.highest < inf
    assert number.decides.clamp in {*(clamp.name for clamp in CLAMPS), *BEFORE_CLAMPS}
    assert isnan(number.default) or number.lowest <= number.default <= number.highest


@every_number
def test_what_tune_tries_is_in_its_range(number: PolicyNumber) -> None:
    assert all(number.lowest <= tried <= number.highest for tried in number.decides.tried)
