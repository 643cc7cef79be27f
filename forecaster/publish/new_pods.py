"""Sizes of new pods in a file beside the table: all that the admission of a pod is answered by. No numpy.

It is replaced as a whole in every cycle. From `NewPods.ends` on it says nothing, and new pods keep their own sizes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError

Document = dict[str, Any]
INTERVALS = 3
"""Cycles after which a file is too old to be answered by, as with a table."""


class LearnedBoost(msgspec.Struct, frozen=True):
    """A factor on the CPU limit of one container until it has started, and the starts that were measured with it."""

    factor: float = 1.0
    since: datetime | None = None
    """When the factor came into force; None for the 1 of the beginning."""
    starts: int = 0
    throttled: int = 0
    """Number of these starts that the CPU limit slowed down."""


class NewPodSize(msgspec.Struct, frozen=True):
    """Size that new pods of a workload get."""

    containers: dict[str, Document]
    """`resources` by container."""
    replicas: int
    """Number of pods that must all fit into the quotas, which are as old as the cycle."""
    why: str
    boost: float = 1.0
    """Factor on CPU limits until the pod has started."""
    boost_seconds: float = 0.0
    """Shortest time of the boost."""
    boosts: dict[str, LearnedBoost] = {}
    """Learned boosts by container, instead of `boost`; the next process continues from them."""
    boost_why: str = ""
    """Description of the learned boost."""


class NewPods(msgspec.Struct, frozen=True):
    """Sizes for pods created from now on, by one cycle."""

    at: datetime
    interval_seconds: float
    server: str
    """Version of the API server."""
    sizes: dict[str, dict[str, dict[str, NewPodSize]]] = {}
    """Sizes by namespace, kind and name of the workload."""
    limit_ranges: dict[str, list[Document]] = {}
    quotas: dict[str, list[Document]] = {}
    """Quotas by namespace, as the API server has them."""
    nodes: list[Document] = []
    """One of each kind that takes pods, as the API server has them but for what DaemonSets take."""

    @property
    def ends(self) -> datetime:
        """Return when the offer of sizes expires."""
        return self.at + timedelta(seconds=INTERVALS * self.interval_seconds)

    def by_workload(self) -> dict[WorkloadId, NewPodSize]:
        """Return the sizes by workload."""
        return {
            WorkloadId(namespace, kind, name): size
            for namespace, kinds in self.sizes.items()
            for kind, names in kinds.items()
            for name, size in names.items()
        }


def new_pods_path(table: Path) -> Path:
    """The file beside a table."""
    return table.with_suffix(".new-pods")


class PauseMark:
    """An empty file beside that of new pods, there while writing is paused: a pause does not wait for a cycle."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_suffix(".paused")

    @property
    def there(self) -> bool:
        """Whether writing is paused."""
        return self._path.exists()

    def put(self, *, paused: bool) -> None:
        """Put it there, or take it away. Raises OSError."""
        if paused and not self.there:
            self._path.touch()
        elif not paused:
            self._path.unlink(missing_ok=True)


def write_new_pods(path: Path, new_pods: NewPods) -> None:
    """Replace the file as a whole. Raises StoreError."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_bytes(msgspec.json.encode(new_pods))
        temporary.replace(path)
    except OSError as error:
        raise StoreError(f"sizes of new pods, {path}: {error.strerror}; new pods keep their own sizes") from error


class NewPodsFile:
    """Latest valid content of the file, read when it is needed."""

    def __init__(self, path: Path) -> None:
        self._path, self._stamp = path, (0, 0, 0)
        self._known: NewPods | None = None
        self._mark = PauseMark(path)

    @property
    def paused(self) -> bool:
        """Whether nothing is to be given, whatever the file says."""
        return self._mark.there

    def latest(self) -> NewPods | None:
        """Return the content; None where there is none that can be read."""
        try:
            status = self._path.stat()
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            if stamp != self._stamp:
                self._known, self._stamp = msgspec.json.decode(self._path.read_bytes(), type=NewPods), stamp
        except (OSError, ValueError, msgspec.DecodeError):
            return None
        return self._known
