"""Nodes ahead of time: what pods of a pool will request and use, how many nodes that takes, and which pods are at risk.

Pure: forecasts, nodes and pods go in as values. Quantiles of sums come from joint samples (`joint_samples`), so that
what is said about many workloads together says how they depend on each other. Scheduling rules are in `cluster_rules`.
"""
