"""What would have happened: recorded demand, pods that take time to start, the exact HPA, and the service's decisions.

State and time go in, state comes out; what it cost and what was short is added up in `account`. Demand is open-loop: it
does not change with the pods that serve it. In a notebook:

    from forecaster import replay
    from forecaster.app import traces
    outcome = replay.compare(traces.recorded())                 # a Comparison
    outcome.frontier(), outcome.trajectory("shop/search")       # rows for a data frame

Nothing of a decision is written here: `engine` calls `horizontal.decide`, as the service does.
"""

from __future__ import annotations

from forecaster.replay.assumptions import Assumptions, Prices, Timing
from forecaster.replay.compare import compare
from forecaster.replay.comparison import Comparison, Curve, WorkloadComparison
from forecaster.replay.feedback import Feedback
from forecaster.replay.setup import Capacity
from forecaster.replay.strategies import Strategy, strategies_with
from forecaster.replay.traces import Traces

__all__ = [
    "Assumptions",
    "Capacity",
    "Comparison",
    "Curve",
    "Feedback",
    "Prices",
    "Strategy",
    "Timing",
    "Traces",
    "WorkloadComparison",
    "compare",
    "strategies_with",
]
