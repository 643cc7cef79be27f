"""The bench: forecasts, scaling decisions and sizes on the recorded load in benchmarks/traces, `./dev bench`.

Reads nothing but this repository. Metrics with their formulas stand in docs/benchmark.md.
"""
