"""The model of the third notebook is served by the service through configuration alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from forecaster.app.compose import single_cycle
from forecaster.app.demo import staged
from forecaster.config.settings import parse

if TYPE_CHECKING:
    import pytest

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"


def test_a_model_named_by_its_import_path_makes_the_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(NOTEBOOKS)
    with staged() as stage:
        settings = parse(
            {
                "prometheus": {"url": stage.url},
                "forecast": {"model": "median_of_days:MedianOfDays"},
                "policy": {"horizontal": {"gate": False}},
            },
            "the test",
        )
        outcome = single_cycle(settings, stage.begin).run(stage.begin)
    views = [view for recommendation in outcome.recommendations for view in recommendation.signals if view.forecast]
    assert len(views) >= 10
    assert {view.forecast.model for view in views if view.forecast} == {"median-of-days"}
