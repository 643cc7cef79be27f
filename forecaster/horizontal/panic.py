"""Panic windows: the latest demand over a shorter window than that of rates counts where it is more.

As the panic window of Knative's autoscaler it only raises; unlike there it needs no threshold, since scaling down waits
for stabilization anyway. What is not measured otherwise is not known by it either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from forecaster.horizontal.codes import LARGEST

if TYPE_CHECKING:
    from forecaster.horizontal.inputs import Inputs
    from forecaster.horizontal.numbers import Flags


def with_panic(inputs: Inputs) -> Inputs:
    """The inputs with measured demand raised to that of the panic window, where both are amounts."""
    if inputs.panic is None:
        return inputs
    more = (inputs.measured >= 0.0) & (inputs.panic > inputs.measured) & (inputs.panic <= LARGEST)
    return replace(inputs, measured=np.where(more, inputs.panic, inputs.measured))


def in_panic(inputs: Inputs, target: int) -> Flags:
    """[row] whether the measured demand of a target is that of the panic window."""
    if inputs.panic is None:
        return np.zeros(inputs.rows, np.bool_)
    return np.asarray(inputs.panic[target] == inputs.measured[target])
