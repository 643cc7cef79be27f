"""Promises that have to hold at every moment of the run, and their violations."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from forecaster.app.serve import table_path
from forecaster.kube.lease import WRITE_SECONDS
from forecaster.serving.options import Address
from tests.support.chaos.world import OWNERS, Place
from tests.support.control_plane.audit import audited
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.every_way import EveryWay
from tests.support.exporters import NAMESPACE as SHOP
from tests.support.played_day import MOST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.chaos.replica import Footprint, Replica
    from tests.support.chaos.world import World
    from tests.support.control_plane.audit import AuditedWrite
    from tests.support.every_way import IntegrationAnswer

LOOK_SECONDS = 1.0
SETTLED_SECONDS = 45.0
"""After its start a process has all that it keeps."""
GROWTH, SLACK_BYTES, SLACK_DESCRIPTORS = 1.25, 48 << 20, 30
NOTED_SECONDS = 10.0
"""Seconds from the line in the log to the write: two attempts with their timeouts."""


@dataclass
class Watch:
    """Reads every integration of both replicas in turn; `faults` are those that last."""

    world: World
    violations: list[str] = field(default_factory=list)
    answers: int = 0
    numbers: int = 0
    unanswered: Counter[str] = field(default_factory=Counter)
    faults: tuple[str, ...] = ()
    _ways: list[EveryWay] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make connections and rights while all is well."""
        for replica in self.world.replicas:
            place = Place(self.world.plane, table_path(replica.state), Address("127.0.0.1", replica.secure))
            self._ways.append(EveryWay(place, self.world.clock, self.world.prometheus.url))  # type: ignore[arg-type]

    def run(self) -> None:
        """Look until the world is stopped."""
        turn = 0
        while not self.world.stopped.wait(LOOK_SECONDS):
            self._look(turn % 2)
            turn += 1
        for way in self._ways:
            way.close()

    def _look(self, number: int) -> None:
        for workload in [workload for workload in self.world.scraped if workload.name in OWNERS]:
            try:
                for answer in self._ways[number].answers(workload):
                    self._judge(self.world.replicas[number], workload.name, answer)
            except Exception as error:  # noqa: BLE001  a server that is down gives no number
                self.unanswered[type(error).__name__] += 1

    def _judge(self, replica: Replica, name: str, answer: IntegrationAnswer) -> None:
        self.answers += 1
        if answer.count is None:
            return
        self.numbers += 1
        if not 1 <= answer.count <= MOST:
            self.note(f"{replica.name} published {answer} of {name}, outside 1 to {MOST}")

    def note(self, violation: str) -> None:
        """One more violation."""
        self.violations.append(
            f"{self.world.clock():%H:%M:%S} during {', '.join(self.faults) or 'no fault'}: {violation}"
        )


def floors(world: World) -> list[AuditedWrite]:
    """Writes to HPAs that were carried out."""
    return [write for write in audited(world.plane.folder, "horizontalpodautoscalers", SHOP) if write.status == 200]


def unfit_writes(world: World) -> Iterator[str]:
    """Writes outside of bounds, by a replica that does not lead, or that no line of the log was written before."""
    renewals = [write for write in audited(world.plane.folder, "leases", NAMESPACE) if write.status == 200]
    noted = sorted(_noted(world))
    for write in floors(world):
        described = f"{write.at:%H:%M:%S} {write.name} minReplicas {write.min_replicas} by {write.credential[-4:]}"
        if write.min_replicas is not None and not OWNERS[write.name] <= write.min_replicas <= MOST:
            yield f"{described}: outside {OWNERS[write.name]} to {MOST}"
        held = [each for each in renewals if each.at <= write.at]
        if not held or held[-1].credential != write.credential:
            yield f"{described}: the Lease was not its own"
        elif write.at - held[-1].at > timedelta(seconds=WRITE_SECONDS + NOTED_SECONDS):
            yield f"{described}: {write.at - held[-1].at} after the renewal"
        before = [at for at, name in noted if name == write.name and at <= write.at]
        if not before or write.at - before[-1] > timedelta(seconds=NOTED_SECONDS):
            yield f"{described}: no line of the log before it"


def _noted(world: World) -> Iterator[tuple[datetime, str]]:
    """Instant and name of each HPA that a log says is about to be written."""
    for replica in world.replicas:
        for line in replica.log():
            if line.get("event") == "cluster_write":
                yield datetime.fromisoformat(line["timestamp"]), str(line["object"]).rpartition("/")[2]


def growth(world: World) -> Iterator[str]:
    """Processes whose memory or descriptors grow: the last third against the first, once they have settled."""
    for replica in world.replicas:
        for (part, pid), footprints in _by_process(replica).items():
            third = len(footprints) // 3
            if third < 5:
                continue
            before, after = footprints[:third], footprints[-third:]
            memory = [median(footprint.resident_bytes for footprint in each) for each in (before, after)]
            if memory[1] > memory[0] * GROWTH + SLACK_BYTES:
                yield f"{replica.name} {part} {pid}: memory {memory[0] / 2**20:.0f} → {memory[1] / 2**20:.0f} MiB"
            files = [median(footprint.descriptors for footprint in each) for each in (before, after)]
            if files[1] > files[0] + SLACK_DESCRIPTORS:
                yield f"{replica.name} {part} {pid}: descriptors {files[0]:.0f} → {files[1]:.0f}"


def _by_process(replica: Replica) -> dict[tuple[str, int], list[Footprint]]:
    by_process: dict[tuple[str, int], list[Footprint]] = defaultdict(list)
    for footprint in replica.footprints:
        by_process[footprint.part, footprint.pid].append(footprint)
    return {
        key: [footprint for footprint in each if footprint.at > each[0].at + SETTLED_SECONDS]
        for key, each in by_process.items()
    }
