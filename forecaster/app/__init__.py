"""Composition, schedule, cycle loop, supervision of the serving process, telemetry, clock. Nothing below may import it; only here the clock is read."""
