"""The demo decides as it always did: twelve hours of counts, minute by minute, held against a recorded reference.

A change that means to decide otherwise writes the reference anew and says so in its commit:
`FORECASTER_WRITE_REFERENCE=1 ./dev test tests/integration/demo/test_reference.py`.
"""

from __future__ import annotations

import os
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forecaster.app.demo import play, setups_of, staged
from forecaster.domain.decision import Scale

if TYPE_CHECKING:
    from forecaster.domain.decision import Recommendation

REFERENCE = Path(__file__).parents[2] / "data" / "demo-counts.txt"
HALF_A_DAY = timedelta(hours=12)


@pytest.mark.slow
def test_the_demo_gives_the_counts_of_the_reference_minute_by_minute() -> None:
    played = "".join(f"{workload} {counts}\n" for workload, counts in sorted(_played_counts().items()))
    if os.environ.get("FORECASTER_WRITE_REFERENCE"):
        REFERENCE.write_text(played, encoding="utf-8")
    assert played.splitlines() == REFERENCE.read_text(encoding="utf-8").splitlines()


def _played_counts() -> dict[str, str]:
    """For each workload its decisions in order, equal neighbours as `decision*minutes`."""
    decisions: dict[str, list[str]] = {}
    with staged() as stage:
        setups, _ = setups_of(stage)
        for moment in play(stage, setups, HALF_A_DAY):
            for recommendation in moment.outcome.recommendations:
                decisions.setdefault(str(recommendation.id), []).append(_decision(recommendation))
    return {workload: _run_lengths(row) for workload, row in decisions.items()}


def _decision(recommendation: Recommendation) -> str:
    """A count with its reason and what an HPA may read, or the reason for holding."""
    replicas = recommendation.replicas
    if isinstance(replicas, Scale):
        return f"{replicas.replicas}:{replicas.reason}:{recommendation.offered}"
    return f"hold:{replicas.reason}"


def _run_lengths(row: list[str]) -> str:
    return " ".join(f"{decision}*{len(list(minutes))}" for decision, minutes in groupby(row))
