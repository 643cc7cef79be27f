"""Counts of workloads that nothing else scales: a plan, and the requests that carry it out."""
