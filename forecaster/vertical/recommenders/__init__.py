"""Recommenders of other projects, restated on arrays: selectable by policy, and the baselines of every report.

VPA 1.8, KRR 1.29 and crane 0.11. The VPA's own scalar rules are in tests/oracles, which the arrays are tested against.
Nothing here reads a clock or a cluster; our own rules are in `vertical.sizing`.
"""
