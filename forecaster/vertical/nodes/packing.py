"""How many more nodes a pool needs for more pods: they are placed one by one under the scheduler's filters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forecaster.vertical.cluster_rules.node import Occupancy, Resident
from forecaster.vertical.cluster_rules.node_fit import fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from forecaster.vertical.cluster_rules.server import Server
    from forecaster.vertical.nodes.members import Member
    from forecaster.vertical.nodes.pools import Pool

MOST_NEW_NODES = 1000


@dataclass(frozen=True, slots=True)
class Packing:
    """What adding pods to a pool takes."""

    new_nodes: int
    homeless: int = 0
    """Pods that not even a new node takes."""


def pack(pool: Pool, growth: Iterable[tuple[Member, int]], residents: Sequence[Resident], server: Server) -> Packing:
    """Nodes to add for so many more pods of each member, the largest pods first.

    New nodes are like the pool's template, with the daemons of that node on them.
    """
    floor = _Floor(pool, residents, server)
    homeless = 0
    for member, more in sorted(growth, key=lambda one: (-one[0].cpu, -one[0].memory, one[0].workload)):
        homeless += floor.place(member, more)
    return Packing(floor.added, homeless)


class _Floor:
    """The pool while it grows."""

    def __init__(self, pool: Pool, residents: Iterable[Resident], server: Server) -> None:
        self.pool = pool
        self.server = server
        self.here = Occupancy(pool.nodes, residents)
        self.added = 0
        self.daemons = self.here.daemons(pool.template.name)

    def place(self, member: Member, count: int) -> int:
        """Place so many pods; how many find no node, however many are added."""
        left = count - self._fitted(member, count)
        while left > 0 and self.added < MOST_NEW_NODES:
            node = self.pool.another(self.added + 1)
            self.here.add_node(node)
            for daemon in self.daemons:
                self.here.add(replace(daemon, node=node.name))
            placed = self._fitted(member, left)
            if not placed:
                self.here.remove_node(node)
                break
            self.added += 1
            left -= placed
        return left

    def _fitted(self, member: Member, count: int) -> int:
        found = fit(member.pod, count, self.here, self.server)
        one = replace(Resident.of(member.pod, "", self.server), workload=member.workload)
        for name, pods in found.placed.items():
            for _ in range(pods):
                self.here.add(replace(one, node=name))
        return found.count
