"""Forecast of nodes: requests and usage of a pool's pods, the number of nodes for them, and the pods at risk.

Pure: forecasts, nodes and pods go in as values. Quantiles of sums come from joint samples (`joint_samples`), so that
sums over many workloads respect how these depend on each other. Scheduling rules are in `cluster_rules`.
"""
