"""Containers and their risks survive the way through the table."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from forecaster.domain.decision import Reason, Resize
from forecaster.domain.workload import ContainerSize, Resources, Risk, Target, TargetType
from forecaster.publish.views import RecommendationView, recommendation_view
from forecaster.serving.read_back import recommendation_of
from tests.support.recommendations import GIB, recommendation

NOW, WANTED = Resources(1.0, None, GIB, GIB), Resources(0.5, None, GIB, GIB)


def test_sizes_of_containers_come_back_as_they_were() -> None:
    app = ContainerSize("app", NOW, WANTED, Risk(0.05, None, 1.5), None, "500m")
    target = Target("cpu", TargetType.UTILIZATION, 0.8)
    one = replace(recommendation(), resources=Resize(WANTED, Reason.SIZED, "app: 500m", (app,), (target,)))
    body = msgspec.json.encode(recommendation_view(one))
    again = recommendation_of(msgspec.json.decode(body, type=RecommendationView))
    assert again.resources == one.resources
