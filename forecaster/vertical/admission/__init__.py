"""Would the cluster accept these requests and limits, what would they change, and what is advised: pure.

`prove` passes a recommendation through every rule of `vertical.cluster_rules`; `advise` adds severity and costs to it.
How a size is chosen is in `vertical.sizing`.
"""
