"""Where histories and inventories come from.

Belongs here: talking to Prometheus, its query language, its answers as `Block` and `Inventory`, recorded load.
Does not belong here: what the numbers mean. A source never fills a gap, never smooths, never decides.
"""
