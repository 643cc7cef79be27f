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
# Windows looked at together: a layer of as many is half a megabyte.
ROWS_AT_ONCE = 768


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

    Block by block of origins: what lies between the layers stays near the processor, in half of the time.
    """
    first = standard(context, network.context_mean, network.context_spread) @ network.context + network.bias
    found = np.empty((*window.shape[:2], len(network.out_bias)), np.result_type(first, window))
    origins = max(1, ROWS_AT_ONCE // max(1, window.shape[1]))
    for block in (slice(i, i + origins) for i in range(0, len(window), origins)):
        found[block] = _further(network, first[block], window[block])
    return found


def _further(network: Network, first: Floats, window: Floats) -> Floats:
    """What the layers make of a few origins; sums are added in place, as new arrays would cost time."""
    hidden = standard(window, network.window_mean, network.window_spread) @ network.window
    hidden += first[:, None, :]
    deep = leaky(hidden) @ network.hidden
    deep += network.hidden_bias
    found = leaky(deep) @ network.out
    found += network.out_bias
    found.sort(axis=-1)
    return np.asarray(found)


def standard(inputs: Floats, mean: Floats, spread: Floats) -> Floats:
    """Centred, scaled and cut off inputs."""
    scaled = inputs - mean
    scaled /= spread
    return np.asarray(np.clip(scaled, -INPUT_REACH, INPUT_REACH, out=scaled))


def leaky(value: Floats) -> Floats:
    """The value, a hundredth of it below 0."""
    low = LEAK * value
    return np.asarray(np.maximum(value, low, out=low))
