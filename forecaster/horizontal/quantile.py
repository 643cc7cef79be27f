"""Which quantile of the peak replicas are sized for: from a price, corrected by what was covered before."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecaster.domain.policy import HorizontalPolicy

PRICES = {"economy": 4.0, "standard": 9.0, "critical": 19.0}
"""Price of a missing pod in prices of an idle one, by class of availability."""
LOWEST, HIGHEST = 0.5, 0.99
ENOUGH = 200
"""Matured forecasts behind which an observed coverage counts in full: its standard error is then 2 % at p90."""


def newsvendor(price: float) -> float:
    """The quantile at which one more pod costs as much as it saves: p / (p + 1) (Arrow, Harris, Marschak 1951)."""
    return price / (price + 1.0)


def stated_quantile(policy: HorizontalPolicy) -> float:
    """What the policy states: a quantile, else a price, else a class."""
    if policy.quantile is not None:
        return policy.quantile
    return newsvendor(policy.price if policy.price is not None else PRICES[policy.availability])


def corrected(quantile: float, coverage: float, matured: int) -> float:
    """The level to ask a model for, so that `quantile` of the peaks stay below the answer.

    `coverage` is the share of `matured` forecasts of this level that held. Odds are scaled by the miss: a p90 that
    covered 80 % is asked for as what lies beyond. Few forecasts correct little.
    """
    if not matured:
        return quantile
    trust = min(1.0, matured / ENOUGH)
    seen = min(max(coverage, 0.5 / (matured + 1)), 1 - 0.5 / (matured + 1))
    odds = _odds(quantile) * math.pow(_odds(quantile) / _odds(seen), trust)
    return min(max(odds / (1 + odds), LOWEST), HIGHEST)


def _odds(share: float) -> float:
    return share / (1 - share)
