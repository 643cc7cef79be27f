"""A cycle reads objects before it writes; a namespace of thousands or a slow API server keeps none out for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forecaster.actuators.limits import MAX_WORKLOADS
from forecaster.actuators.queue import BUDGET_SECONDS, MAX_TROUBLE
from forecaster.kube.client import ApiError
from tests.support.fake_api_server import FakeApiServer
from tests.support.hands import WISHED, Hands, object_of, path_of, value_of

if TYPE_CHECKING:
    from forecaster.kube.connections import RawRequest

REFUSED = {
    "scale": {"ownerReferences": [{"kind": "Shop", "name": "a", "controller": True}]},
    "resize": {"annotations": {"vpaObservedContainers": "app"}},
}


@pytest.mark.parametrize(("mode", "apart"), [("scale", False), ("scale", True), ("resize", False)])
def test_workloads_that_are_refused_in_each_cycle_keep_no_other_from_its_turn(mode: str, *, apart: bool) -> None:
    server = FakeApiServer()
    for number in range(MAX_WORKLOADS + 100):
        name = f"a{number:03}"
        document = object_of(mode, name)
        document["metadata"] |= REFUSED[mode]
        server.add(path_of(mode, name if apart else "a", name), document)
    server.add(path_of(mode, "shop"), object_of(mode))
    Hands(server, mode).cycles(2)
    assert value_of(server.objects[path_of(mode, "shop")]) == WISHED[mode]


@pytest.mark.parametrize("mode", REFUSED)
def test_an_api_server_that_answers_slowly_holds_no_cycle_up_for_long(mode: str) -> None:
    server, spent = FakeApiServer(), [0.0]
    for number in range(100):
        server.add(path_of(mode, "shop", f"w{number:02}"), object_of(mode, f"w{number:02}"))

    def slow(_: RawRequest) -> None:
        spent[0] += 1.0

    server.fault = slow
    effected = Hands(server, mode, seconds=lambda: spent[0]).cycle()
    assert spent[0] < 3 * BUDGET_SECONDS
    assert effected.failures[0] == "shop/w21: w21 and 78 more are not read in this cycle, the API server is slow"


@pytest.mark.parametrize("mode", REFUSED)
def test_an_api_server_that_throttles_is_asked_a_few_times_and_no_object_is_called_unreadable(mode: str) -> None:
    server, targets = FakeApiServer(), list[str]()
    for number in range(100):
        server.add(path_of(mode, "shop", f"w{number:02}"), object_of(mode, f"w{number:02}"))

    def throttled(request: RawRequest) -> int:
        if request.method != "GET" or "/namespaces/shop/" not in request.target:
            return 0
        targets.append(request.target)
        return 429

    server.fault = throttled
    with pytest.raises(ApiError, match="429"):
        Hands(server, mode).cycle()
    assert len(targets) == MAX_TROUBLE
