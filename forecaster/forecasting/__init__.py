"""From history to forecasts of the coming peak, for all workloads at once: fit in rotation, update every cycle.

The only room of the service that calls `models`. No IO and no clock; what it remembers are fitted models.
"""
