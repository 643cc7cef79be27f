"""A model pooled over the fleet with scikit-learn: one regression learned from all series, shipped as plain numbers."""

# ruff: noqa: ARG002  (a rule has the arguments of its protocol)

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge

from models.clean import filled
from models.fitted import FittedRule
from models.panel import DAY
from models.spread import TABLE_LEVELS, error_table, read_table

STEPS, ORIGINS, DAYS = 12, 200, 3
FEATURES = ("last hour", "yesterday now", "change of yesterday", "mean of a day", "rise of a step", "one")
FARTHEST = 10.0


@dataclass(frozen=True)
class PooledRidge:
    """Regression that all series share: how far the coming value is from the latest, in usual changes of the series.

    Learned anew at every fit, or read from `weights`, a file beside this one that `trained` wrote. Further than twelve
    steps ahead the twelfth regression speaks.
    """

    weights: str = ""
    alpha: float = 1.0
    name: str = "pooled-ridge"
    pooled = True

    def fit(self, panel):
        """Learn from every series together, or read the weights of a file."""
        return FittedRule(self, panel, shipped(self.weights) if self.weights else learned(panel, self.alpha))

    def part(self, learned, rows):
        """Every series shares the learned coefficients."""
        return learned

    def stacked(self, learned, step):
        """Coefficients of two fleets cannot be combined."""
        return

    def paths(self, history, learned, steps, levels):
        """[series, quantile, step]; NaN where a series is younger than three days or has no load."""
        out = np.full((len(history), len(levels), steps), np.nan)
        day = history.bins(DAY)
        if learned is None or not day or history.length < DAYS * day:
            return out
        values = filled(history.values).astype(float)
        for step in range(1, steps + 1):
            features, unit = features_at(values, np.array([history.length - 1]), step, day)
            which = min(step, STEPS) - 1
            moved = features[:, 0] @ learned["coefficients"][which]
            spread = read_table(learned["errors"][which][None], levels)
            out[:, :, step - 1] = values[:, -1:] + (moved[:, None] + spread) * unit
        young = np.isnan(history.values[:, : history.length - DAYS * day + 1]).all(axis=1)
        out[young | ~(values > 0).any(axis=1)] = np.nan
        return out


def features_at(values, origins, step, day):
    """Features [series, origin, feature] at these bins for `step` steps ahead, and their unit [series, origin].

    The unit is the mean change over as many steps within the last day. It has no other series in it, and no calendar.
    """
    sums = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    back, hour = min(step, day - 1), max(1, day // 24)
    change = np.cumsum(np.pad(np.abs(values[:, back:] - values[:, :-back]), ((0, 0), (back + 1, 0))), axis=1)
    unit = (change[:, origins + 1] - change[:, origins + 1 - day + back]) / (day - back)
    unit = np.where(unit > 0, unit, 1.0)
    latest, then = values[:, origins], values[:, origins + step - day * -(-step // day)]
    recent = (sums[:, origins + 1] - sums[:, origins + 1 - hour]) / hour
    mean = (sums[:, origins + 1] - sums[:, origins + 1 - day]) / day
    before = values[:, origins - day]
    looks = (recent - latest, before - latest, then - before, mean - latest, latest - values[:, origins - 1])
    return np.stack([*(np.clip(look / unit, -FARTHEST, FARTHEST) for look in looks), np.ones_like(unit)], axis=-1), unit


def learned(panel, alpha):
    """Coefficients [step, feature] and quantiles of errors [step, level]; None where the history is too short."""
    day = panel.bins(DAY)
    if not day or panel.length < (DAYS * day) + STEPS or not len(panel):
        return None
    values = filled(panel.values).astype(float)
    origins = np.unique(np.linspace(day, panel.length - STEPS - 1, ORIGINS).astype(int))
    coefficients, errors = [], []
    for step in range(1, STEPS + 1):
        features, unit = features_at(values, origins, step, day)
        moved = (values[:, origins + step] - values[:, origins]) / unit
        x, y = features.reshape(-1, len(FEATURES)), np.clip(moved, -FARTHEST, FARTHEST).ravel()
        good = np.isfinite(panel.values[:, origins + step]).ravel()
        if good.sum() < len(FEATURES):
            return None
        model = Ridge(alpha=alpha, fit_intercept=False).fit(x[good], y[good])
        coefficients.append(model.coef_)
        errors.append(error_table((y[good] - x[good] @ model.coef_)[None])[0])
    return {"coefficients": np.array(coefficients), "errors": np.array(errors)}


def trained(panel, path, alpha=1.0, origin=""):
    """Learn, and write plain numbers with their provenance; no pickle, so that reading them runs no code."""
    numbers = learned(panel, alpha)
    if numbers is None:
        raise ValueError(
            f"{panel.end - panel.start} of history are too short to learn from; {DAYS} days and an hour are not"
        )
    provenance = {
        "features": FEATURES,
        "levels": TABLE_LEVELS,
        "alpha": alpha,
        "origin": origin,
        "series": len(panel),
        "from": panel.start.isoformat(),
        "until": panel.end.isoformat(),
        "step_seconds": panel.step.total_seconds(),
        "data_sha256": hashlib.sha256(panel.values.tobytes()).hexdigest()[:16],
    }
    np.savez(path, **numbers, provenance=np.array(json.dumps(provenance)))
    return provenance


@cache
def shipped(name):
    """Read the numbers of a file beside this one; refuse numbers that were learned of other features."""
    with np.load(Path(__file__).parent / name, allow_pickle=False) as arrays:
        provenance = json.loads(str(arrays["provenance"]))
        if tuple(provenance["features"]) != FEATURES:
            raise ValueError(f"{name} was learned of {provenance['features']}, and this is {FEATURES}; train it anew")
        return {key: arrays[key] for key in ("coefficients", "errors")}
