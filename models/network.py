"""A small network from a situation and a window ahead to quantiles, in plain numpy.

hidden = leaky(context · C + window · W + b)        the context is multiplied once per origin, not per window
hidden = leaky(hidden · H + b)
quantiles = hidden · Q + b, sorted
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .panel import Floats

LEAK = np.float32(0.01)
# Inputs further out than this many standard deviations are alike; nothing extrapolates.
INPUT_REACH = np.float32(6)


class Network(NamedTuple):
    """Float32 weights, and the mean and spread of inputs."""

    context: Floats
    window: Floats
    bias: Floats
    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: Floats
    context_mean: Floats
    context_spread: Floats
    window_mean: Floats
    window_spread: Floats


def quantiles(network: Network, context: Floats, window: Floats) -> Floats:
    """[origin, window, level] for context [origin, feature] and windows [origin, window, feature].

    Sums are added in place: with a dozen windows new arrays would cost a third of the time.
    """
    first = standard(context, network.context_mean, network.context_spread) @ network.context + network.bias
    hidden = standard(window, network.window_mean, network.window_spread) @ network.window
    hidden += first[:, None, :]
    deep = leaky(hidden) @ network.hidden
    deep += network.hidden_bias
    found = leaky(deep) @ network.out
    found += network.out_bias
    found.sort(axis=-1)
    return found


def standard(inputs: Floats, mean: Floats, spread: Floats) -> Floats:
    """Centred, scaled and cut off inputs."""
    scaled = inputs - mean
    scaled /= spread
    return np.asarray(np.clip(scaled, -INPUT_REACH, INPUT_REACH, out=scaled))


def leaky(value: Floats) -> Floats:
    """The value, a hundredth of it below 0."""
    low = LEAK * value
    return np.asarray(np.maximum(value, low, out=low))
