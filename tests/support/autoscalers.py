"""HPAs without an API server: versions, field managers and the marks of a floor, as server-side apply treats them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from forecaster.actuators.floor.values import LiveAutoscaler, Write
from forecaster.actuators.writes import MANAGER, Change
from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

OWNER = "kubectl-client-side-apply"


def live_hpa(name: str = "web", lowest: int = 2, highest: int = 20, *, replicas: int = 4) -> LiveAutoscaler:
    """An HPA of the Deployment of that name, as its owner applied it."""
    return LiveAutoscaler(
        namespace="shop",
        name=name,
        uid=f"uid-{name}",
        version="1",
        target=WorkloadId("shop", "Deployment", name),
        min_replicas=lowest,
        max_replicas=highest,
        replicas=replicas,
        writers=frozenset({OWNER}),
    )


@dataclass
class FakeAutoscalers:
    """`Autoscalers`; `fails` are raised by the next writes, one each, `dies` between the steps of a restoring."""

    hpas: dict[tuple[str, str], LiveAutoscaler]
    fails: list[ApiError | None] = field(default_factory=list)
    dies: bool = False
    mute: bool = False
    """Whether writes get no answer."""
    refuses: dict[str, ApiError] = field(default_factory=dict)
    """By namespace, what every write in it is answered."""
    before_write: Callable[[], None] | None = None
    written: list[Write] = field(default_factory=list)
    recorded: list[Write] = field(default_factory=list)

    @classmethod
    def of(cls, *hpas: LiveAutoscaler) -> FakeAutoscalers:
        return cls({hpa.key: hpa for hpa in hpas})

    def listed(self, *, marked: bool = False) -> list[LiveAutoscaler]:
        return [hpa for hpa in self.hpas.values() if hpa.marked or not marked]

    def again(self, hpa: LiveAutoscaler) -> LiveAutoscaler:
        if hpa.key not in self.hpas:
            raise ApiError("horizontalpodautoscalers not found", 404)
        return self.hpas[hpa.key]

    def delete(self, name: str = "web") -> None:
        """The HPA goes."""
        del self.hpas["shop", name]

    def only(self) -> LiveAutoscaler:
        (hpa,) = self.hpas.values()
        return hpa

    def change(self, name: str = "web", namespace: str = "shop", **fields: object) -> None:
        """A change by another client: a new version."""
        hpa = self.hpas[namespace, name]
        self.hpas[hpa.key] = replace(hpa, version=str(int(hpa.version) + 1), **fields)  # type: ignore[arg-type]

    def owner_sets(self, count: int, name: str = "web", *, manager: str = OWNER) -> None:
        """The owner, or a tool of theirs, writes minReplicas; the value that is there already claims nothing."""
        hpa = self.hpas["shop", name]
        if hpa.min_replicas != count:
            self.change(name, min_replicas=count, writers=frozenset({manager}))

    def replaced(self, manifest: LiveAutoscaler) -> None:
        """Put the HPA as `kubectl replace` does: it has the manifest's fields, and no others."""
        self.hpas[manifest.key] = replace(manifest, version=str(int(self.hpas[manifest.key].version) + 1))

    def write(self, write: Write) -> None:
        interruption, self.before_write = self.before_write, None
        if interruption:
            interruption()
        failure = self.fails.pop(0) if self.fails else None
        if failure or (failure := self.refuses.get(write.subject.namespace)):
            raise failure
        hpa = self.hpas.get(write.subject.key)
        if hpa is None:
            raise ApiError("uid mismatch: no existing object was found", 409)
        if (write.subject.uid, write.subject.version) != (hpa.uid, hpa.version):
            raise ApiError("the object has been modified", 409)
        if write.min_replicas > hpa.max_replicas:
            raise ApiError("maxReplicas must be greater than or equal to minReplicas", 422)
        self.written.append(write)
        self.change(hpa.name, hpa.namespace, **_after(write, hpa, dies=self.dies))
        if self.mute:
            raise UnreachableError("no answer")

    def record(self, write: Write, at: datetime) -> None:
        self.recorded.append(write)


def _after(write: Write, hpa: LiveAutoscaler, *, dies: bool) -> dict[str, object]:
    """The fields that a write leaves."""
    marks: dict[str, object] = {
        "floor": write.floor,
        "backed_off_until": write.backed_off_until,
        "watch": write.watch,
    }
    if write.change in {Change.YIELD, Change.FORGET}:
        others = hpa.writers - {MANAGER}
        return marks | {"writers": others, "marked": write.change == Change.YIELD}
    if write.change == Change.ROLL_BACK:
        writers = frozenset({MANAGER}) if dies else frozenset[str]()
        return marks | {"min_replicas": write.min_replicas, "marked": True, "writers": writers}
    if write.change == Change.RESTORE:
        writers = frozenset({MANAGER}) if dies else frozenset[str]()
        return marks | {"min_replicas": write.min_replicas, "marked": dies, "writers": writers}
    return marks | {"min_replicas": write.min_replicas, "marked": True, "writers": frozenset({MANAGER})}
