"""The outcome of a replay for people and machines: a table, JSON, and a page with pictures that needs nothing else."""
