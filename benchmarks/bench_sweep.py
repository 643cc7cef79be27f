"""The points of the sweep: targets of the HPA, and the price at which our policy would have spent as much.

The target is what a user states; which price costs the same pods depends on the series. It is found once, on the days
before the replayed ones, so that a point means about the same pod-hours whether the forecast acts or the HPA is alone.
It is alone where even the lowest price buys more than it spends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.replay.evidence import Setting, Strategies, bills

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.forecasting.backtest import PolicyBacktest

TARGETS = (2.8, 2.4, 2.0, 1.8, 1.6, 1.5, 1.4, 1.3, 1.2, 1.1, 1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3)
PRICES = (0.98, 0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.015)
SETTINGS = (*map(Setting, PRICES), *(Setting(0.01, share) for share in (0.8, 0.6, 0.4)))
SAFER = (Setting(0.01, 0.3), Setting(0.01, 0.2))
ALL = (*SETTINGS, *SAFER)
STATED = dict(zip(TARGETS, (*[SETTINGS[0]] * (len(TARGETS) - len(SETTINGS)), *SETTINGS), strict=True))
"""Where no days were replayed before: from lean to safe as they stand."""
SWEEP = Strategies(
    target=(*TARGETS, *[1.0] * len(ALL)),
    setting=(*[None] * len(TARGETS), *ALL),
    expects=(*["nothing"] * len(TARGETS), *["model"] * len(ALL)),
)


def calibrated(
    days: PolicyBacktest, levels: tuple[float, ...], policies: Sequence[HorizontalPolicy], start_ups: NDArray[np.int64]
) -> list[Mapping[float, Setting | None]]:
    """[series] for each target the setting that spends what the HPA does with it; None where ours cannot be as lean."""
    return [_settings(spent) for spent in bills(days, levels, SWEEP, policies, start_ups)[0].spent.T]


def _settings(spent: NDArray[np.float64]) -> Mapping[float, Setting | None]:
    budget, spending = spent[: len(TARGETS)], np.maximum.accumulate(spent[len(TARGETS) :])
    place = np.interp(budget, spending, np.arange(len(ALL)))
    price, share = (np.exp(np.interp(place, np.arange(len(ALL)), np.log(values))) for values in zip(*ALL, strict=True))
    return {
        target: Setting(float(price[i]), float(share[i])) if budget[i] >= spending[0] else None
        for i, target in enumerate(TARGETS)
    }
