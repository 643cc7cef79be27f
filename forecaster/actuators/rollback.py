"""Counts that are watched after a change of ours, taken back where a workload is worse off since, and held then. Pure.

Evidence is what can be compared: pods that both counts have and that do not serve, pods that restarted, and a signal of
errors. What is not known is no evidence, neither of harm nor of health. What is watched lies in an annotation beside
the count, so that the next leader, too, knows what to compare with. Changes in one direction that follow each other are
one change: the count before the first of them comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, TypeAlias

import msgspec

from forecaster.actuators.settings import LimitSettings
from forecaster.domain.amounts import duration_text
from forecaster.domain.event import YEARS
from forecaster.domain.workload import WorkloadId
from forecaster.hpa.numbers import MAX_INT32
from forecaster.kube.objects import NOT_READ


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """Health of one workload at one instant; None where a value is not known."""

    desired: int | None = msgspec.field(default=None, name="wanted")
    """Requested pods."""
    ready: int | None = None
    """Pods that serve, with those that have not been ready for less than a minute."""
    restarted: int | None = None
    """Pods with a container that restarted lately; of new pods those where that happened more than once."""
    release: str = ""
    """Version of the pods; it changes when the owner rolls something out."""
    errors: float | None = None
    """The signal of errors that its policy names."""
    limit: float | None = None
    """Threshold of that signal; None: the policy names no signal."""
    failing: int | None = None
    """Pods that served and do not, on a node that answers: others that are missing say nothing of the count."""

    @property
    def comparable(self) -> bool:
        """Whether there is a state to compare with."""
        return not (self.ready is None and self.restarted is None and self.errors is None)

    @property
    def known(self) -> bool:
        """Whether nothing is missing."""
        errors = 0.0 if self.limit is None else self.errors
        return None not in {self.desired, self.ready, self.restarted, errors}


UNKNOWN_HEALTH = Health()
HealthAt: TypeAlias = "Callable[[Mapping[WorkloadId, datetime], datetime], Mapping[WorkloadId, Health]]"
"""Return the health of workloads now, restarts counted since an instant each. Never raises: unread is unknown."""


def no_health(_since: Mapping[WorkloadId, datetime], _now: datetime) -> Mapping[WorkloadId, Health]:
    """Return no health: nothing is read here."""
    return {}


def worse(before: Health, now: Health, worse_by: float) -> str:
    """Say why a workload is worse than `before` by more than `worse_by`, a share of its pods; else empty.

    Compared only while its pods are of the same release: a rollout of the owner is not our change.
    """
    if before.release != now.release:
        return ""
    pods = _pods_worse(before, now, worse_by) if before.release else ""
    return pods or errors_worse(before.errors, now.errors, now.limit, worse_by)


def errors_worse(before: float | None, now: float | None, limit: float | None, worse_by: float) -> str:
    """Say why a signal of errors is worse: above its limit, and above the former value by `worse_by`, a share."""
    if before is None or now is None or limit is None or now <= limit or now <= before * (1 + worse_by):
        return ""
    return f"errors are {now:.3g}, above the limit of {limit:g}, and were {before:.3g}"


def _pods_worse(before: Health, now: Health, worse_by: float) -> str:
    """Say how many more pods than before are unready or restarted, among those in both counts; empty if none."""
    if before.desired is None or now.desired is None:
        return ""
    both = min(before.desired, now.desired)
    allowed = worse_by * max(both, 1)
    if before.ready is not None and now.ready is not None:
        states = ((now.ready, now.failing), (before.ready, before.failing))
        missing, were = (min(max(0, both - ready), both if failing is None else failing) for ready, failing in states)
        if missing - were > allowed:
            return f"{missing} of {both} pods are not ready, {were} were before"
    if before.restarted is not None and now.restarted is not None and now.restarted - before.restarted > allowed:
        return f"{now.restarted} pods restarted, {before.restarted} had before"
    return ""


WATCH = "forecaster.dev/watched"
"""Annotation of an object whose count was changed lately, or taken back."""
MAX_HOLD = timedelta(days=1)
"""However often a workload was worse off. Also for how long after a hold earlier ones count."""
MAX_DOUBLINGS = 17
"""Doublings after which a hold of a second is longer than the longest."""
WATCH_MAX = 1024
"""Longest text of the annotation, which any owner of the object may write; ours is a tenth of it."""


Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class RecentChange(msgspec.Struct, frozen=True, tag="watched", omit_defaults=True):
    """A count that was changed lately."""

    count: int
    """Before the first change."""
    raised: bool
    since: Instant
    """The first change."""
    at: Instant
    """The last one."""
    health: Health
    """Before the first change."""
    times: int = 0
    """Number of earlier rollbacks."""


class Rollback(msgspec.Struct, frozen=True, tag="rolled-back"):
    """A count that is held, because its workload was worse off with another."""

    until: Instant
    times: int
    why: str

    def counts(self, now: datetime) -> bool:
        """Whether the hold still lengthens the next one."""
        return now - self.until < MAX_HOLD

    def __str__(self) -> str:
        return f"rolled back, {self.why}; held until {self.until:%H:%M} UTC"


Watch: TypeAlias = "RecentChange | Rollback | None"


def lasts(until: datetime | None, now: datetime) -> bool:
    """Whether a hold or a back-off lasts. One that ends later than any can is by another clock, and over."""
    return until is not None and now < until <= now + MAX_HOLD


def watch_after(
    before: Watch, count: int, health: Health, now: datetime, rules: LimitSettings, *, raised: bool
) -> RecentChange | None:
    """Return the watch to store with a change of `count`; None where there is no health to compare with."""
    if not rules.roll_back or not health.comparable:
        return None
    if isinstance(before, RecentChange) and before.raised == raised and abs(now - before.since) < rules.watch_for:
        return msgspec.structs.replace(before, at=now)
    return RecentChange(count, raised, now, now, health, _times(before, health, now, rules))


def _times(before: Watch, health: Health, now: datetime, rules: LimitSettings) -> int:
    """Earlier roll backs, forgotten once a change was watched to its end and all of its health is known."""
    if isinstance(before, Rollback):
        return before.times if before.counts(now) else 0
    if before is None or (health.known and abs(now - before.at) >= rules.watch_for):
        return 0
    return before.times


def why_worse(watch: Watch, health: Health, now: datetime, rules: LimitSettings) -> str:
    """Say why a watched count is to be taken back; empty where it is not."""
    if isinstance(watch, RecentChange) and rules.roll_back and timedelta(0) <= now - watch.at < rules.watch_for:
        return worse(watch.health, health, rules.worse_by)
    return ""


def held(watch: Watch, now: datetime) -> Rollback | None:
    """The roll back for which a count is held now."""
    return watch if isinstance(watch, Rollback) and lasts(watch.until, now) else None


def rolled_back(watch: Watch, why: str, now: datetime, rules: LimitSettings) -> Rollback:
    """Return the hold to store with a count that was taken back: each hold is twice as long as the one before."""
    times = watch.times if watch else 0
    held_for = min(rules.rolled_back_for * 2 ** min(times, MAX_DOUBLINGS), MAX_HOLD)
    return Rollback(now + held_for, times + 1, why)


def rolled_back_reason(hold: Rollback, now: datetime) -> str:
    """Say why a write is refused after a rollback."""
    return f"worse off since the last change: {hold.why}; held for {duration_text(hold.until - now)}"


def restarts_since(watch: Watch, now: datetime, rules: LimitSettings) -> datetime:
    """Instant from which restarts count: the observed change, but no longer ago than changes are observed."""
    before = now - rules.watch_for
    return max(watch.since, before) if isinstance(watch, RecentChange) else before


def watch_text(watch: RecentChange | Rollback) -> str:
    """Encode the observation as text of its annotation."""
    return msgspec.json.encode(watch).decode()


def watch_of(annotations: Mapping[str, str]) -> Watch:
    """Decode the annotation; None where it is absent, cannot be read, or was not written by us."""
    text = annotations.get(WATCH, "null")
    if len(text) > WATCH_MAX:
        return None
    try:
        watch = _decoder.decode(text)
    except (*NOT_READ, OverflowError):
        return None
    return watch if watch is None or _plausible(watch) else None


def _plausible(watch: RecentChange | Rollback) -> bool:
    instants, count = ((watch.since, watch.at), watch.count) if isinstance(watch, RecentChange) else ((watch.until,), 0)
    return {at.year for at in instants} <= set(YEARS) and 0 <= watch.times < MAX_INT32 and 0 <= count <= MAX_INT32


_decoder: msgspec.json.Decoder[Watch] = msgspec.json.Decoder(RecentChange | Rollback | None)
