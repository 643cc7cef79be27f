"""Training of the shipped prior: examples from recorded series, pinball loss, Adam; deterministic for a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from models.prior import LEAK, TRAINING_LEVELS, Network, inputs, leaky, standard
from models.situation import situation_at, squash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.forecast import StepWindow
    from models.panel import Floats
    from models.trailing import Origins


class Examples(NamedTuple):
    """Context [origin, feature], windows [origin, window, feature], and squashed targets [origin, window]."""

    context: Floats
    windows: Floats
    targets: Floats


@dataclass(frozen=True)
class Recipe:
    """Recipe by which the network is trained; the defaults made the shipped prior."""

    hidden: tuple[int, int] = (192, 96)
    epochs: int = 12
    batch: int = 256
    rate: float = 2e-3
    decay: float = 0.01
    windows: int = 8
    seed: int = 0


def examples(
    values: Floats, origins: Origins, windows: Sequence[StepWindow], day: int, *, ahead: int, similar: bool = False
) -> Examples:
    """Examples of one gapless series [time]; every window is over `ahead` bins later, before the series ends.

    With `similar` they have the values that followed similar moments.
    """
    values = (values / (values.mean() or 1.0)).astype(np.float32)
    situation = situation_at(values[None], origins, day)
    target = np.stack([_maximum(values, origins, window) for window in windows], axis=-1)
    change = (target - situation.level[0][:, None]) / situation.scale[0][:, None]
    context, features = inputs(situation, windows, ahead, similar=similar)
    return Examples(context[0], features[0], squash(change).astype(np.float32))


def joined(parts: Sequence[Examples]) -> Examples:
    """All examples one below the other."""
    return Examples(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def train(data: Examples, recipe: Recipe) -> Network:
    """A network fitted to examples."""
    rng = np.random.default_rng(recipe.seed)
    network = _start(data, recipe, rng)
    batches = len(data.context) // recipe.batch
    adam = Adam(steps=recipe.epochs * batches, rate=recipe.rate, decay=recipe.decay)
    for _ in range(recipe.epochs):
        order = rng.permutation(len(data.context))
        for rows in order[: batches * recipe.batch].reshape(batches, recipe.batch):
            chosen = rng.choice(data.windows.shape[1], min(recipe.windows, data.windows.shape[1]), replace=False)
            batch = Examples(data.context[rows], data.windows[rows][:, chosen], data.targets[rows][:, chosen])
            network = adam.step(network, gradient(network, batch))
    return network


def gradient(network: Network, batch: Examples) -> dict[str, Floats]:
    """Gradient of the mean pinball loss by back-propagation."""
    context = standard(batch.context, network.context_mean, network.context_spread)
    windows = standard(batch.windows, network.window_mean, network.window_spread)
    shape = (*batch.targets.shape, len(network.bias))
    before = (context @ network.context + network.bias)[:, None, :] + windows @ network.window
    first = leaky(before).reshape(-1, shape[-1])
    middle = first @ network.hidden + network.hidden_bias
    second = leaky(middle)
    out = _pinball_slope(batch.targets, (second @ network.out + network.out_bias).reshape(*batch.targets.shape, -1))
    slope = (out @ network.out.T) * _leaky_slope(middle)
    deep = (slope @ network.hidden.T).reshape(shape) * _leaky_slope(before)
    shared = deep.sum(axis=1)
    return {
        "out": second.T @ out,
        "out_bias": out.sum(axis=0),
        "hidden": first.T @ slope,
        "hidden_bias": slope.sum(axis=0),
        "window": windows.reshape(-1, windows.shape[-1]).T @ deep.reshape(-1, shape[-1]),
        "context": context.T @ shared,
        "bias": shared.sum(axis=0),
    }


@dataclass
class Adam:
    """Adam with decoupled decay of weights and a cosine schedule; keeps the moments between steps."""

    steps: int
    rate: float
    decay: float
    done: int = 0
    first: dict[str, Floats] = field(default_factory=dict)
    second: dict[str, Floats] = field(default_factory=dict)

    def step(self, network: Network, slopes: dict[str, Floats]) -> Network:
        """The network one step further down."""
        rate = self.rate * 0.5 * (1 + np.cos(np.pi * self.done / self.steps)) * min(1.0, (self.done + 1) / 300)
        self.done += 1
        return network._replace(**{name: self._moved(network, name, slope, rate) for name, slope in slopes.items()})

    def _moved(self, network: Network, name: str, slope: Floats, rate: float) -> Floats:
        weights = getattr(network, name)
        first = self.first[name] = 0.9 * self.first.get(name, 0.0) + 0.1 * slope
        second = self.second[name] = 0.999 * self.second.get(name, 0.0) + 0.001 * slope**2
        move = first / (1 - 0.9**self.done) / (np.sqrt(second / (1 - 0.999**self.done)) + 1e-8)
        shrunk = 0.0 if name.endswith("bias") else self.decay * weights
        return np.asarray(weights - rate * (move + shrunk), dtype=np.float32)


def _start(data: Examples, recipe: Recipe, rng: np.random.Generator) -> Network:
    wide, deep = recipe.hidden
    context, window = data.context.shape[-1], data.windows.shape[-1]

    def drawn(rows: int, columns: int, size: float) -> Floats:
        return np.asarray(rng.standard_normal((rows, columns)) * size * np.sqrt(2 / rows), dtype=np.float32)

    flat = data.windows.reshape(-1, window)
    return Network(
        context=drawn(context, wide, 0.7),
        window=drawn(window, wide, 0.7),
        bias=np.zeros(wide, np.float32),
        hidden=drawn(wide, deep, 1.0),
        hidden_bias=np.zeros(deep, np.float32),
        out=drawn(deep, len(TRAINING_LEVELS), 0.1),
        out_bias=np.zeros(len(TRAINING_LEVELS), np.float32),
        context_mean=data.context.mean(axis=0),
        context_spread=data.context.std(axis=0) + np.float32(1e-3),
        window_mean=flat.mean(axis=0),
        window_spread=flat.std(axis=0) + np.float32(1e-3),
    )


def _pinball_slope(targets: Floats, forecasts: Floats) -> Floats:
    """Slope of the pinball loss, rounded within 0.02 of the kink so that constant series come to rest: [row, level]."""
    missing = targets[..., None] - forecasts
    level = np.asarray(TRAINING_LEVELS, dtype=np.float32)
    slope = -np.where(missing > 0, level, level - 1) * np.minimum(np.abs(missing) / 0.02, 1) / targets.size
    return np.asarray(slope.reshape(-1, len(TRAINING_LEVELS)), dtype=np.float32)


def _leaky_slope(value: Floats) -> Floats:
    return np.where(value > 0, np.float32(1), LEAK)


def _maximum(values: Floats, origins: Origins, window: StepWindow) -> Floats:
    return np.asarray(np.max([values[origins + step] for step in range(window.first, window.last + 1)], axis=0))
