"""Composition, schedule, cycle loop, supervision of the serving process, telemetry, clock.

Nothing below imports it; only here the clock is read.
"""
