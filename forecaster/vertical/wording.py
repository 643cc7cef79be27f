"""Why a size is what it is, in a clause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.domain.amounts import amount, duration_text
from forecaster.vertical.choice.mechanism import Mechanism

if TYPE_CHECKING:
    from datetime import timedelta

LEAST_TOLD = 0.05
_BECAUSE = {
    Mechanism.STEADY: "",
    Mechanism.LEAK: ", its lows rise day by day since the last restart",
    Mechanism.CACHE: ", it fills its limit without being killed: a cache, whose need usage does not tell",
    Mechanism.LOAD: ", it follows the load",
}


def clause(
    metric: str,
    request: float,
    over_request: float | None,
    over_limit: float | None,
    mechanism: Mechanism,
    horizon: timedelta,
) -> str:
    """`400m, 4 % of the coming 24h above it`, or the chance of a peak for memory."""
    ahead = duration_text(horizon)
    if metric == "cpu":
        return f"{amount(request, metric)}, {_share(over_request)} of the coming {ahead} above it"
    bound = over_request if over_limit is None else over_limit
    what = "it" if over_limit is None or over_limit == over_request else "its limit"
    risk = f"a {_share(bound)} chance that a peak of the coming {ahead} passes {what}"
    return f"{amount(request, metric)}, {risk}{_BECAUSE[mechanism]}"


def load_clause(ratio: float) -> str:
    """What a forecast has changed; nothing where it is about as the days were."""
    if abs(ratio - 1) < LEAST_TOLD:
        return ""
    return f", for the load of a pod is forecast {ratio:.2g} times that of the days it was learned from"


def _share(share: float | None) -> str:
    if share is None:
        return "no known share"
    return f"{share * 100:.0f} %" if share >= 0.1 else f"{share * 100:.2g} %"  # noqa: PLR2004  two digits either way
