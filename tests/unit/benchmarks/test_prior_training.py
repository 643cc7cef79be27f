"""The prior is trained by gradients that are right, and the same each time."""

import numpy as np
import pytest

from benchmarks.prior_training import Examples, Recipe, examples, gradient, train
from models.forecast import StepWindow
from models.prior import TRAINING_LEVELS, Network, quantiles

RNG = np.random.default_rng(5)
WINDOWS = (StepWindow(1, 1), StepWindow(2, 4))


def lines(count: int = 400) -> Examples:
    """Targets that depend on one input and noise."""
    context = RNG.standard_normal((count, 3)).astype(np.float32)
    windows = RNG.standard_normal((count, 2, 2)).astype(np.float32)
    targets = context[:, :1] + 0.5 * RNG.standard_normal((count, 2)).astype(np.float32)
    return Examples(context, windows, targets.astype(np.float32))


def loss(network: Network, data: Examples) -> float:
    """Mean pinball loss with the same rounded kink as the gradient."""
    missing = data.targets[..., None] - quantiles(network, data.context, data.windows)
    level, near = np.asarray(TRAINING_LEVELS), 0.02
    size = np.where(np.abs(missing) < near, missing**2 / (2 * near), np.abs(missing) - near / 2)
    return float((np.where(missing > 0, level, 1 - level) * size).sum() / data.targets.size)


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    data = lines(50)
    network = train(data, Recipe(hidden=(8, 6), epochs=3, batch=10))
    network = Network(*(part.astype(np.float64) for part in network))
    network = network._replace(out_bias=network.out_bias + np.arange(len(TRAINING_LEVELS)))
    slopes = gradient(network, data)
    for name in ("context", "window", "hidden", "out", "bias", "out_bias"):
        weights = getattr(network, name)
        at = tuple(0 for _ in weights.shape)
        moved = []
        for step in (1e-4, -1e-4):
            other = weights.copy()
            other[at] += step
            moved.append(loss(network._replace(**{name: other}), data))
        np.testing.assert_allclose(slopes[name][at], (moved[0] - moved[1]) / 2e-4, rtol=2e-2, atol=2e-4)


def test_training_twice_gives_the_same_weights() -> None:
    data = lines()
    first, second = (train(data, Recipe(hidden=(8, 6), epochs=2, batch=50)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_training_learns_quantiles_that_cover() -> None:
    data = lines(4000)
    network = train(data, Recipe(hidden=(16, 8), epochs=20, batch=50))
    below = data.targets[..., None] <= quantiles(network, data.context, data.windows)
    np.testing.assert_allclose(below.mean(axis=(0, 1)), TRAINING_LEVELS, atol=0.04)


@pytest.mark.parametrize("similar", [False, True])
def test_examples_know_nothing_that_comes_after_the_origin(*, similar: bool) -> None:
    values = RNG.gamma(2.0, size=400)
    origins = np.array([100, 150])
    other = values.copy()
    other[151:] = 9 * other[151:]
    first, second = (
        examples(v / v[:100].mean(), origins, WINDOWS, 48, ahead=8, similar=similar) for v in (values, other)
    )
    np.testing.assert_allclose(first.context, second.context, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(first.windows, second.windows, rtol=1e-3, atol=1e-3)


def test_the_target_of_a_window_is_its_maximum() -> None:
    values = np.ones(200)
    values[103] = 5
    targets = examples(values, np.array([100]), WINDOWS, 48, ahead=8).targets
    assert targets[0, 0] == 0
    assert targets[0, 1] > 1
