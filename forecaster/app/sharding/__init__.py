"""The cycle of a fleet that is too large for one process: one cycle a shard, wherever it runs, and one table of all."""
