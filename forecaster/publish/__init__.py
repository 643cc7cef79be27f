"""The offer, and its ways out of the computing process: the table file, gauges and remote write.

`offer` makes the numbers that others may read of what was decided, once a cycle; every integration reads them through
`values` and computes none of its own. What answers requests belongs to `serving`, which reads the table and no more.
"""
