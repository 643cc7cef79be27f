"""Nodes ahead of time: what pools will be asked for and use, how many nodes that takes, and who would be evicted.

Pure: forecasts, nodes and pods go in as values. Quantiles of sums come from joint samples (`joint`), so that what is
said about many workloads together says how they depend on each other.
"""
