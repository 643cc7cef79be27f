"""Floors: `minReplicas` of HPAs, raised ahead of need and given back: a plan, its objects, and their requests."""
