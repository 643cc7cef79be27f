"""Pictures of the concepts, on the recorded load: python docs/.site/pictures.py."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import matplotlib as mpl

from forecaster.app import traces
from forecaster.app.notebook import recorded
from forecaster.config.settings import parse
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.compare import compare
from forecaster.replay.strategies import strategies_with
from forecaster.report import plots
from models import create

PICTURES = Path(__file__).parents[1] / "pictures"
SHARES = (1.4, 1.2, 1.0, 0.9, 0.8, 0.7)


def draw() -> None:
    """The pictures of the concepts, on recorded load."""
    mpl.rcParams["svg.hashsalt"] = "forecaster"
    panel, origin = recorded("cpu"), datetime(2021, 10, 19, 21, 30, tzinfo=UTC)
    fitted = create("adaptive").fit(panel.until(origin)["shop/checkout"])
    pictures = {"concept-band": fitted.forecast(24, (0.1, 0.5, 0.9)).plot(panel["shop/checkout"])}
    load = traces.recorded()
    load = load.take([i for i, one in enumerate(load.workloads) if one.id.name in {"checkout", "recommendations"}])
    policies = parse({"policy": {"horizontal": {"requests_metric": traces.REQUESTS_METRIC}}}, "pictures").policies
    assumed = Assumptions(start_ups=(timedelta(minutes=3),), every=10, shares=SHARES)
    begin = load.end - timedelta(hours=24)
    outcome = compare(load, policies, strategies_with("adaptive"), begin=begin, assumed=assumed)
    pictures["concept-pods"] = plots.trajectory(outcome, "shop/recommendations", load)
    pictures["concept-frontier"] = plots.frontier(outcome)
    for name, figure in pictures.items():
        figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    draw()
