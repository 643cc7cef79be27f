"""Every model of the catalogue keeps the contract of models.checks."""

from collections.abc import Callable

import pytest

from models import CATALOGUE, Model, create
from models.checks import CHECKS

QUICK = {"boosting": "boosting(rows=2000)"}
"""A model that takes minutes to fit keeps the same contract on fewer examples."""


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CATALOGUE)
def test_keeps_the_contract(name: str, check: Callable[[Model], None]) -> None:
    check(create(QUICK.get(name, name)))


def test_names_in_the_catalogue_are_those_of_the_models_and_in_order() -> None:
    assert [create(name).name for name in CATALOGUE] == sorted(CATALOGUE)
