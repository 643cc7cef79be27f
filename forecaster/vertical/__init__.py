"""Requests and limits of one pod, and the nodes for many: sizing, recommenders, cluster_rules, admission, nodes.

Pure arithmetic over values; nothing here reads a clock, a file or a cluster. Counts of pods are in `horizontal`.
"""
