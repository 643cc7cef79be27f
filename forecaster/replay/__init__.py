"""What would have happened: recorded demand, pods that take time to start, and the exact HPA, as pure functions.

State and time go in, state comes out; what it cost and what was short is added up in `account`. Demand is open-loop: it
does not change with the pods that serve it. In a notebook:

    from forecaster import replay, traces
    outcome = replay.compare(traces.recorded())                 # a Comparison
    outcome.frontier(), outcome.trajectory("shop/search")       # rows for a data frame

`scalar` plays one lane with `decide` and the exact HPA; `fast` plays thousands on arrays and is held to it.
"""

from __future__ import annotations

from forecaster.replay.compare import compare
from forecaster.replay.comparison import Compared, Comparison, Curve
from forecaster.replay.contestants import Contestant, line_up
from forecaster.replay.setup import Capacity
from forecaster.replay.terms import Prices, Terms
from forecaster.replay.timing import Timing
from forecaster.replay.traces import Traces

__all__ = [
    "Capacity",
    "Compared",
    "Comparison",
    "Contestant",
    "Curve",
    "Prices",
    "Terms",
    "Timing",
    "Traces",
    "compare",
    "line_up",
]
