"""Pods of one workload: one that is asked for serves after its start-up time, one that is removed stops at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime


class Starting(NamedTuple):
    """Pods that were asked for together, and when they are ready."""

    pods: int
    ready_at: datetime


class Pods(NamedTuple):
    """The pods of one workload at one moment; `starting` from the first asked for to the last, none of them empty."""

    ready: int
    starting: tuple[Starting, ...] = ()

    @property
    def pending(self) -> int:
        """Pods that do not serve yet."""
        return sum(some.pods for some in self.starting) if self.starting else 0

    @property
    def asked(self) -> int:
        """Pods that exist, ready or not: what is paid for, and the `spec.replicas` that an HPA sees."""
        return self.ready + self.pending


def arrived(pods: Pods, now: datetime) -> Pods:
    """The pods at `now`, when nobody asks for another number."""
    serving = sum(some.pods for some in pods.starting if some.ready_at <= now) if pods.starting else 0
    if not serving:
        return pods
    return Pods(pods.ready + serving, tuple(some for some in pods.starting if some.ready_at > now))


def scaled(pods: Pods, replicas: int, ready_at: datetime) -> Pods:
    """The pods when `replicas` are asked for; new ones are ready at `ready_at`.

    Removal takes the pods that are not ready first, and of those the youngest, as a ReplicaSet does.
    """
    more = replicas - pods.asked
    if more > 0:
        return pods._replace(starting=(*pods.starting, Starting(more, ready_at)))
    return _without(pods, -more)


def _without(pods: Pods, fewer: int) -> Pods:
    if fewer <= 0:
        return pods
    if not pods.starting:
        return Pods(pods.ready - fewer)
    older, (youngest, ready_at) = pods.starting[:-1], pods.starting[-1]
    if youngest > fewer:
        return Pods(pods.ready, (*older, Starting(youngest - fewer, ready_at)))
    return _without(Pods(pods.ready, older), fewer - youngest)
