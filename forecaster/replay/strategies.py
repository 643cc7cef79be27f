"""The strategies of a comparison: the HPA alone, seasonal naive, models, our policy, learned ones, a perfect one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import reduce

import numpy as np

from forecaster.domain.policy import Policy
from forecaster.domain.window import MINUTE
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.replay.account import Account
from forecaster.replay.forecasts import ReplayForecasts
from forecaster.replay.learned import Advisor
from forecaster.replay.setup import Setup
from forecaster.replay.traces import Measurements

NAIVE = "seasonal-naive-day"
SERVICE_MODEL = "adaptive"
"""The service's default model."""
STEEP = 6
"""Half the target is as safe as some sixty times the price: both run from a policy that is lean to one that is safe."""
LEANEST, SAFEST = 0.01, 0.99


class ForecastSource(StrEnum):
    """Source of the forecasts of a strategy."""

    NOTHING = "nothing"
    MODEL = "model"
    TRUTH = "truth"
    RECORD = "record"
    """No forecast is made: the counts were decided, or measured, before."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to scale: its name in reports, and where its forecasts come from."""

    name: str
    title: str
    source: ForecastSource
    model: str = ""
    advisor: Advisor | None = None
    """Speaks in the model's place, having its forecasts."""
    gated: bool = False

    def policy_of(self, policy: Policy) -> Policy | None:
        """Return the workload's policy as this strategy follows it; None for the HPA alone.

        What knows the truth may scale in by it, too. Only the strategy that shows the gate is gated: elsewhere it would
        hide what is to be judged.
        """
        if self.source is ForecastSource.NOTHING:
            return None
        changed: dict[str, object] = {"gate": self.gated}
        if self.advisor is not None:
            changed["sizing"] = "quantile"
        if self.source is ForecastSource.TRUTH:
            changed |= {"scale_in_by_forecast": True, "sizing": "quantile"}
        return with_horizontal(policy, changed)


def with_horizontal(policy: Policy, changed: Mapping[str, object]) -> Policy:
    """Return the policy with other, already checked values in its horizontal part."""
    return policy.model_copy(update={"horizontal": policy.horizontal.model_copy(update=changed)})


def at_share(policy: Policy, share: float) -> Policy:
    """The policy where targets are at this share: sized by newsvendor they have no say, and the price moves instead."""
    horizontal = policy.horizontal
    if horizontal.sizing != "newsvendor" or share == 1.0:
        return policy
    quantile = horizontal.quantile
    price = quantile / (1.0 - quantile) * share**-STEEP
    return with_horizontal(policy, {"quantile": min(max(price / (1.0 + price), LEANEST), SAFEST)})


HPA = Strategy("hpa", "the HPA alone", ForecastSource.NOTHING)
PERFECT = Strategy("perfect", "perfect foresight", ForecastSource.TRUTH)
DECIDED = Strategy("decided", "forecaster, as decided", ForecastSource.RECORD)
MEASURED = Strategy("measured", "the pods that there were", ForecastSource.RECORD)
FORECASTER_STRATEGIES = (DECIDED.name, "gated", "policy")
"""Names of the strategies that stand for forecaster; of several, the first counts."""


def forecaster_of(names: Iterable[str]) -> str:
    """Name of the strategy that is compared with the HPA alone: what forecaster decided, or would decide."""
    there = set(names)
    return next((name for name in FORECASTER_STRATEGIES if name in there), FORECASTER_STRATEGIES[-1])


def policy_with(model: str) -> Strategy:
    """Our policy with the model that the service uses."""
    return Strategy("policy", "forecaster, ungated", ForecastSource.MODEL, model)


def gated_with(model: str) -> Strategy:
    """Our policy behind its gate."""
    return Strategy("gated", "forecaster (gated)", ForecastSource.MODEL, model, gated=True)


def looking_back(model: str) -> tuple[Strategy, ...]:
    """Return the strategies of a look back: the HPA alone, seasonal naive, and our policy as the service follows it."""
    return (HPA, Strategy(NAIVE, _title(NAIVE), ForecastSource.MODEL, NAIVE), gated_with(model))


def strategies_with(
    model: str, others: Iterable[str] = (), *, learned: Mapping[str, Advisor] | None = None, gated: bool = False
) -> tuple[Strategy, ...]:
    """All of them, each model once; `learned` are learned policies by kind, `gated` adds our policy behind its gate."""
    models = dict.fromkeys(name for name in (NAIVE, *others) if name != model)
    named = tuple(Strategy(name, _title(name), ForecastSource.MODEL, name) for name in models)
    advised = tuple(
        Strategy(f"learned-{kind}", f"learned policy, {kind}", ForecastSource.MODEL, model, advisor)
        for kind, advisor in (learned or {}).items()
    )
    return (HPA, *named, policy_with(model), *((gated_with(model),) if gated else ()), *advised, PERFECT)


def _title(model: str) -> str:
    return "seasonal naive" if model == NAIVE else f"policy with {model}"


PERFECT_NAME = "perfect-foresight"
PERFECT_LEVELS = (0.5,)


def needed_span(setup: Setup) -> PeakSpan:
    """Return the span until the pods serve that the next decision asks for: nothing later has to be known now."""
    latest = MINUTE + setup.timing.first_floored * setup.timing.sync + setup.start_up.longest
    return PeakSpan(timedelta(), math.ceil(latest / MINUTE) * MINUTE)


def perfect(measurements: Measurements, span: PeakSpan) -> ReplayForecasts:
    """The true maximum over `span` after every minute; unmeasured minutes are left out."""
    count = span.length // MINUTE
    values = {}
    for signal in measurements.latest:
        coming = measurements.past(signal, 1, measurements.minutes + count - 1)
        largest = reduce(np.fmax, (coming[i : i + measurements.minutes] for i in range(count)))
        values[signal] = largest[:, None]
    return ReplayForecasts(PERFECT_NAME, span, PERFECT_LEVELS, values)


def bound(setup: Setup, measurements: Measurements, series: int) -> Account:
    """Return the least cost of the demand, minute by minute, within the HPA's bounds and with pods that start at once.

    No policy avoids all shortage at a lower cost. Without a measurement the last need continues.
    """
    demand = measurements.of(setup.capacity.signal, 1, series)
    bounds, known = setup.bounds, ~np.isnan(demand)
    needed = np.where(known, np.ceil(np.nan_to_num(demand) / setup.capacity.amount), 0)
    latest = np.maximum.accumulate(np.where(known, np.arange(len(needed)), 0))
    pods = np.clip(needed[latest], bounds.min_replicas, bounds.max_replicas)
    return Account.by_minutes(pods, demand, setup.capacity.amount)
