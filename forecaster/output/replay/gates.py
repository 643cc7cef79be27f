"""Where the gate let a forecast have its say, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.domain.window import MINUTE
from forecaster.replay.gated import acting_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.replay.comparison import Comparison
    from forecaster.replay.gated import Stood


def gate_sentence(whole: Comparison) -> str:
    """How often forecasts acted behind their gates, on all workloads together; empty when nobody was gated."""
    shares = [acting_share(stood, whole) for stood in whole.gates.values()]
    if not shares:
        return ""
    acted = sum(share > 0 for share in shares)
    return (
        f"Judged on the days before, the gate lets the forecast act on {acted} of {len(shares)} workload(s), "
        f"{sum(shares) / len(shares):.0%} of the time."
    )


def gate_details(whole: Comparison) -> list[str]:
    """Each workload: how often the forecast acted, where it stood in the end, and why."""
    return [
        f"{id_}: acts {acting_share(stood, whole):.0%} of the time; {_last(stood)}"
        for id_, stood in whole.gates.items()
    ]


def acting_share(stood: Sequence[Stood], whole: Comparison) -> float:
    """Share of the replayed time in which the forecast had its say."""
    return float(acting_of(stood, (whole.until - whole.begin) // MINUTE).mean())


def _last(stood: Sequence[Stood]) -> str:
    gate = stood[-1].gate
    return f"in the end {gate.standing}, {gate.why}"
