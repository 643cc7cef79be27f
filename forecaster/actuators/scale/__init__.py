"""Counts of workloads without another autoscaler: a plan, and the requests that carry it out."""
