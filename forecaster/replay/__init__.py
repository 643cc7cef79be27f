"""Replay: recorded demand, pods that take time to start, the exact HPA, and the service's decisions.

State and time go in, state comes out; what it cost and what was short is added up in `account`. Demand is open-loop: it
does not change with the pods that serve it. In a notebook:

    from forecaster.app import traces
    from forecaster.replay.compare import compare
    outcome = compare(traces.recorded())                        # a Comparison
    outcome.frontier(), outcome.trajectory("shop/search")       # rows for a data frame

Nothing of a decision is written here: `engine` calls `horizontal.decide`, as the service does.
"""
