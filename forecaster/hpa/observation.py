"""What one pass of the controller sees of the cluster (HPA rules §3, §5)."""

from collections.abc import Sequence
from typing import NamedTuple

from forecaster.hpa.pods import Pod
from forecaster.hpa.samples import Answer
from forecaster.hpa.selectors import Selector

WRITE_ATTEMPTS = 5


class Scale(NamedTuple):
    """The scale subresource of the target: replicas wanted and replicas there, and the pods' selector as text."""

    spec_replicas: int
    status_replicas: int
    selector: str


class ScaleUnread(NamedTuple):
    """The scale subresource could not be read, and why."""

    message: str


class Observation(NamedTuple):
    """One look at the cluster.

    `pods` are those of the namespace; the scale's selector picks among them. `answers` belong to the metrics of the
    spec, in order. `other_selectors` are those of the other HPAs in the namespace. The last two say how a write would
    fare.
    """

    scale: Scale | ScaleUnread
    pods: Sequence[Pod]
    answers: Sequence[Answer]
    other_selectors: Sequence[Selector] = ()
    write_conflicts: int = 0
    write_refused: bool = False

    @property
    def write_fails(self) -> bool:
        """HPA rules §3, step 10: a conflict is tried again, five times in all."""
        return self.write_refused or self.write_conflicts >= WRITE_ATTEMPTS
