"""Recommenders of other projects, restated on arrays: the baselines of every report.

VPA 1.8 and KRR 1.29. The VPA's own scalar rules are in tests/oracles, which the arrays are tested against.
Nothing here reads a clock or a cluster; our own rules are in `vertical.sizing`.
"""
