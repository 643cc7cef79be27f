"""Whether the cluster would accept requests and limits, their effect, and the advice: pure.

`prove` passes a recommendation through every rule of `vertical.cluster_rules`; `advise` adds severity and costs to it.
How a size is chosen is in `vertical.sizing`.
"""
