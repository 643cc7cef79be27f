"""Common values: signals, workloads, histories, policies, decisions.

Frozen values without behaviour beyond their own arithmetic. Nothing here does IO, and nothing here knows a library
of the edge. CPU is in cores, memory in bytes, rates per second, shares are ratios 0–1, instants are aware UTC.
"""
