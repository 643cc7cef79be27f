"""Origins of histories and inventories.

Belongs here: talking to Prometheus, its query language, its answers as `Block` and `Inventory`, recorded load. Does not
belong here: the meaning of the numbers. A source never fills a gap, never smooths, never decides.
"""
