"""How often the garbage collector looks: as seldom as the records of a cycle allow."""

from __future__ import annotations

import gc

LEAST = 100_000
PER_WORKLOAD = 50
"""Records of a workload that are new in a cycle, with room to spare: a cycle that replaces them all starts no look."""


def expect_records(workloads: int) -> None:
    """Look once so many more records are there than at the last look.

    A cycle makes some hundred thousand small records that refer to each other in no circle and go when the next one
    replaces them. Looking for circles among them took a quarter of the CPU of a cycle over 10,000 workloads with the
    collector's own thresholds. What does lie in circles waits longer where there are more workloads, which have more
    memory, too.
    """
    gc.set_threshold(max(LEAST, PER_WORKLOAD * workloads), 20, 50)
