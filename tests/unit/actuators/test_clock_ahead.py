"""Instants that were written while a clock was a year ahead do not count once the clock is right."""

from __future__ import annotations

from datetime import timedelta

import pytest

from forecaster.actuators.resize.learned_boost import CALM_STARTS, learned
from forecaster.actuators.resize.pods import LABEL, SETTLED
from forecaster.actuators.resize.sized_pod import Resized
from forecaster.publish.new_pods import LearnedBoost
from tests.support.hands import WISHED, Hands, owner_sets, path_of, raised, server_of, value_of
from tests.support.recommendations import NOON

YEAR = timedelta(days=365)


@pytest.mark.parametrize("mode", ["floor", "scale"])
def test_a_back_off(mode: str) -> None:
    server, now = raised(mode)
    owner_sets(server, mode, "shop", 4)
    Hands(server, mode, now + YEAR).cycle()
    Hands(server, mode, now).cycles(2)
    assert value_of(server.objects[path_of(mode, "shop")]) == WISHED[mode]


def test_the_watch_over_a_resized_pod() -> None:
    server = server_of("resize")
    Hands(server, "resize", NOON + YEAR).cycle()
    Hands(server, "resize").cycles(2)
    assert server.objects[path_of("resize", "shop")]["metadata"]["labels"] == {LABEL: SETTLED}


def test_a_boost_and_its_learned_factor() -> None:
    boosted = Resized({}, NOON + YEAR, 0, new=True, boosted_until=NOON + YEAR + timedelta(minutes=1))
    assert boosted.age(NOON) > boosted.boosted_for
    before = LearnedBoost(2.25, NOON + YEAR)
    assert learned(before, [0.0] * CALM_STARTS, NOON, 3.0).factor == 1.5
