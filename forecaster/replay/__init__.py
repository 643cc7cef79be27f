"""What would have happened: recorded demand, pods that take time to start, and the exact HPA, as pure functions.

State and time go in, state comes out; what it cost and what was short is added up in `account`. Demand is open-loop: it
does not change with the pods that serve it.
"""
