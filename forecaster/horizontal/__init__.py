"""Desired replicas from measured demand and forecasts: the one implementation of every rule, on arrays over rows.

`decide` is the whole; `clamps` has every clamp in its order. What does not belong here: reading, forecasting, acting.
"""
