"""A tape of a running service: everything that its source answered, and what it decided, to be played again.

    magic, 8 bytes | frames: size of the head, 4 | size of the body, 8 | head, JSON | body, zlib

Plain numbers and JSON: playing one runs no code. What comes back from a tape is the same to the last digit.
"""

from __future__ import annotations

import struct
import zlib
from contextlib import contextmanager
from datetime import datetime  # noqa: TC003  msgspec resolves the annotations
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from forecaster.domain.layers import ClusterPolicies, Layer
from forecaster.domain.policy import PolicySelector
from forecaster.domain.window import Block, Inventory
from forecaster.domain.workload import ContainerBlock, ContainerFacts, ContainerId, Resources, Workload, WorkloadId
from forecaster.errors import SourceError, StoreError
from forecaster.ports import ContainerSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.report import ForecastScore
    from forecaster.domain.signal import Signal
    from forecaster.ports import Changes, Ledger, Source

TAPE_MAGIC = b"fcTape03"
FRAME_SIZES = struct.Struct("<IQ")
TAPE_FLOAT = np.dtype("<f8")


class Head(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a frame is: a question with its answer, the decisions of a cycle, or what the tape begins with."""

    kind: str
    """`begin`, `inventory`, `latest`, `history`, `containers`, `container_usage`, `more`, `stop` or
    `decided`."""
    at: datetime | None = None
    signal: str = ""
    start: datetime | None = None
    end: datetime | None = None
    step_seconds: float = 0.0
    failure: str = ""
    """Class and text of the error that came in place of an answer."""
    columns: int = 0
    ids: list[tuple[str, ...]] = []
    warnings: list[str] = []
    partial: str = ""
    rated: bool = False
    moved: list[tuple[tuple[str, ...], str]] = []
    layers: int = 1
    """Arrays of [row, column] in the body: the values, and those of `domain.window.PodSamples` where they are known."""
    tells_containers: bool = False
    """Whether the source distinguishes containers; part of the beginning."""


class ToldPolicies(msgspec.Struct, frozen=True):
    """What objects of the cluster state of policies, in types that can be read back; a layer is origin and policy."""

    defaults: list[tuple[tuple[str, str, str], tuple[str, dict[str, Any]]]]
    """Layers by namespace, kind and name of a selector."""
    own: list[tuple[tuple[str, str, str], list[tuple[str, dict[str, Any]]]]]
    selected: list[dict[str, str]] = []
    """The label patterns of `defaults`, in their order."""
    labels: list[tuple[tuple[str, str, str], dict[str, str]]] = []
    """Labels of workloads."""

    @classmethod
    def of(cls, stated: ClusterPolicies) -> ToldPolicies:
        """Encode the policies for the tape."""
        defaults = [((by.namespace, by.kind, by.name), (one.origin, dict(one.policy))) for by, one in stated.defaults]
        own = [
            ((id_.namespace, id_.kind, id_.name), [(one.origin, dict(one.policy)) for one in layers])
            for id_, layers in stated.own.items()
        ]
        labels = [((id_.namespace, id_.kind, id_.name), dict(one)) for id_, one in stated.labels.items()]
        return cls(defaults, own, [by.labels for by, _ in stated.defaults], labels)

    def policies(self) -> ClusterPolicies:
        """Decode the policies."""
        by_labels = self.selected or [{} for _ in self.defaults]
        defaults = tuple(
            (PolicySelector(namespace=namespace, kind=kind, name=name, labels=labels), Layer(*layer))
            for ((namespace, kind, name), layer), labels in zip(self.defaults, by_labels, strict=True)
        )
        own = {WorkloadId(*id_): tuple(Layer(*layer) for layer in layers) for id_, layers in self.own}
        return ClusterPolicies(defaults, own, {WorkloadId(*id_): one for id_, one in self.labels})


class Inventoried(msgspec.Struct, frozen=True):
    """An inventory, in types that can be read back."""

    at: datetime
    workloads: tuple[Workload, ...]
    faults: tuple[str, ...]
    partly: list[tuple[tuple[str, str, str], str]] = []
    whole: list[str] = []
    policies: ToldPolicies | None = None
    started: list[tuple[tuple[str, str, str], list[float]]] = []
    """Seconds of each pod, and below the pools that they are on, which tapes of before do not have."""
    images: list[tuple[tuple[str, str, str], str]] = []
    started_on: list[tuple[tuple[str, str, str], list[str]]] = []
    partial: str = ""


class ToldContainers(msgspec.Struct, frozen=True):
    """Facts about containers, in types that can be read back; a container is namespace, kind, workload, name."""

    images: list[tuple[tuple[str, ...], str]]
    init: list[tuple[str, ...]]
    resources: list[tuple[tuple[str, ...], Resources]]
    oom_limits: list[tuple[tuple[str, ...], float]]
    held_back: list[tuple[tuple[str, ...], float]]
    unread: tuple[str, ...] = ()


class Tape:
    """A tape that is being recorded. When it cannot be continued it ends there, says so, and nothing else stops."""

    def __init__(self, path: Path, beginning: bytes, source: Source | None = None) -> None:
        """Begin one of this source; `beginning` is what the service knew already: its settings and its history.

        Raises:
            StoreError: the file cannot be written.
        """
        self._path = path
        self.failure = ""
        try:
            self._file = path.open("wb")
            self._file.write(TAPE_MAGIC)
        except OSError as error:
            raise StoreError(f"tape {path}: {error.strerror}; name a file that this user may write") from error
        self.write(Head(kind="begin", tells_containers=isinstance(source, ContainerSource)), beginning)

    def write(self, head: Head, body: bytes = b"") -> None:
        """One more frame, unless the tape has ended."""
        if self.failure:
            return
        encoded, packed = msgspec.json.encode(head), zlib.compress(body, 1)
        try:
            self._file.write(FRAME_SIZES.pack(len(encoded), len(packed)) + encoded + packed)
            self._file.flush()
        except (OSError, ValueError) as error:
            self.failure = f"tape {self._path}: ended ({error}); free some space and start again"

    def close(self) -> None:
        """The end."""
        self._file.close()


class TapedSource:
    """A source with answers that go on tape."""

    def __init__(self, source: Source, tape: Tape) -> None:
        self._source, self._tape = source, tape

    def inventory(self, at: datetime) -> Inventory:
        """Return and record the source's answer."""
        head = Head(kind="inventory", at=at)
        with self._told(head):
            found = self._source.inventory(at)
        partly = [((id_.namespace, id_.kind, id_.name), why) for id_, why in found.partly.items()]
        stated = ToldPolicies.of(found.policies) if found.policies else None
        by_id = [((id_.namespace, id_.kind, id_.name), pods) for id_, pods in found.started.items()]
        started = [(id_, [one.took.total_seconds() for one in pods]) for id_, pods in by_id]
        images = [((id_.namespace, id_.kind, id_.name), image) for id_, image in found.images.items()]
        pools = [(id_, [one.pool for one in pods]) for id_, pods in by_id]
        whole, listed = sorted(found.whole), (found.at, found.workloads, found.faults)
        told = Inventoried(*listed, partly, whole, stated, started, images, pools, found.partial)
        self._tape.write(head, msgspec.json.encode(told))
        return found

    def latest(self, signal: Signal, at: datetime) -> Block:
        """Return and record the source's answer."""
        head = Head(kind="latest", signal=str(signal), at=at)
        with self._told(head):
            found = self._source.latest(signal, at)
        self._tape.write(head)
        self._tape.write(*_block_frame(found, signal))
        return found

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        """Return and record the source's answer; blocks before a failure are recorded, and so is the failure."""
        self._tape.write(span_head("history", signal, start, end, step))
        with self._told(Head(kind="stop")):
            for block in self._source.history(signal, start, end, step):
                self._tape.write(*_block_frame(block, signal))
                yield block
        self._tape.write(Head(kind="stop"))

    @contextmanager
    def _told(self, head: Head) -> Iterator[None]:
        try:
            yield
        except SourceError as error:
            self._tape.write(msgspec.structs.replace(head, failure=f"{type(error).__name__}: {error}"))
            raise


class TapedContainerSource(TapedSource):
    """A source that tells containers apart, with answers that go on tape."""

    def __init__(self, source: ContainerSource, tape: Tape) -> None:
        super().__init__(source, tape)  # type: ignore[arg-type]
        self._containers = source

    def containers(self, at: datetime) -> ContainerFacts:
        """Return and record the source's answer."""
        head = Head(kind="containers", at=at)
        with self._told(head):
            found = self._containers.containers(at)
        self._tape.write(head, msgspec.json.encode(_told_containers(found)))
        return found

    def container_usage(
        self, signal: Signal, start: datetime, end: datetime, step: timedelta
    ) -> Iterator[ContainerBlock]:
        """Return and record the source's answer, like `history`."""
        self._tape.write(span_head("container_usage", signal, start, end, step))
        with self._told(Head(kind="stop")):
            for block in self._containers.container_usage(signal, start, end, step):
                self._tape.write(*_block_frame(block, signal))
                yield block
        self._tape.write(Head(kind="stop"))


def taped(source: Source, tape: Tape) -> TapedSource:
    """A source beside a tape; it tells containers apart where the source does."""
    return TapedContainerSource(source, tape) if isinstance(source, ContainerSource) else TapedSource(source, tape)


class TapedLedger:
    """A ledger beside which all decisions of a cycle go on tape, not only those that changed."""

    def __init__(self, ledger: Ledger, tape: Tape) -> None:
        self._ledger, self._tape = ledger, tape

    def record(self, at: datetime, recommendations: Sequence[Recommendation], changes: Changes | None = None) -> None:
        """Record in the ledger and on the tape.

        Raises:
            StoreError: nothing of this cycle was kept in the ledger, or the tape has ended.
        """
        self._tape.write(Head(kind="decided", at=at), encoded(recommendations))
        self._ledger.record(at, recommendations, changes)
        if self._tape.failure:
            raise StoreError(self._tape.failure)

    def score(self, scores: Sequence[ForecastScore]) -> None:
        """The ledger alone: scores follow from what is on the tape."""
        self._ledger.score(scores)


def encoded(recommendations: Sequence[Recommendation]) -> bytes:
    """Decisions to the last digit."""
    return msgspec.json.encode(list(recommendations))


def span_head(kind: str, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Head:
    """The head of a question about a span of time."""
    return Head(kind=kind, signal=str(signal), start=start, end=end, step_seconds=step.total_seconds())


def _block_frame(block: Block | ContainerBlock, signal: Signal) -> tuple[Head, bytes]:
    of_pods = block if isinstance(block, Block) else None
    layers = [block.values, *(of_pods.made_of.layers if of_pods and of_pods.made_of else ())]
    head = Head(
        kind="more",
        signal=str(signal),
        start=block.start,
        step_seconds=block.step.total_seconds(),
        columns=int(block.values.shape[1]),
        ids=[_flat(id_) if isinstance(id_, ContainerId) else tuple(id_) for id_ in block.ids],
        warnings=list(of_pods.warnings) if of_pods else [],
        partial=of_pods.partial if of_pods else "",
        rated=of_pods is not None and of_pods.rated,
        moved=[(tuple(id_), why) for id_, why in of_pods.moved.items()] if of_pods else [],
        layers=len(layers),
    )
    return head, b"".join(np.ascontiguousarray(one, TAPE_FLOAT).tobytes() for one in layers)


def _flat(id_: ContainerId) -> tuple[str, ...]:
    return (*id_.workload, id_.name)


def _told_containers(facts: ContainerFacts) -> ToldContainers:
    return ToldContainers(
        images=[(_flat(id_), one) for id_, one in facts.images.items()],
        init=sorted(map(_flat, facts.init)),
        resources=[(_flat(id_), one) for id_, one in facts.resources.items()],
        oom_limits=[(_flat(id_), one) for id_, one in facts.oom_limits.items()],
        held_back=[(_flat(id_), one) for id_, one in facts.held_back.items()],
        unread=facts.unread,
    )
