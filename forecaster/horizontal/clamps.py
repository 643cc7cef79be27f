"""The clamps: of each its rule on arrays and, below it, its sentence; `CLAMPS` is their order.

Sentences are also made in the serving process, which never loads numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from forecaster.horizontal.row import KEEP, UNKNOWN
from forecaster.hpa.numbers import MAX_INT32

if TYPE_CHECKING:
    import numpy as np

    from forecaster.horizontal.checked import Checked
    from forecaster.horizontal.columns import Counts, Floats
    from forecaster.horizontal.decide import Desired
    from forecaster.horizontal.row import DecidedRow
    from forecaster.horizontal.state import State
else:

    class _Numpy:
        """Numpy, loaded when the first array is made; each of its names is looked up once."""

        def __getattr__(self, name: str) -> object:
            attribute = getattr(import_module("numpy"), name)
            setattr(self, name, attribute)
            return attribute

    np = _Numpy()


class ClampContext(NamedTuple):
    """Inputs of a clamp: the rows of this cycle, their proposals, and the state of earlier cycles."""

    checked: Checked
    desired: Desired
    state: State
    """State with this cycle's outages and an empty slot for this cycle."""
    now: float


class Step(NamedTuple):
    """One row in which a clamp changed the count, with the facts for its sentence."""

    before: int
    after: int
    row: DecidedRow

    def policy(self, name: str) -> float:
        """Return a number of the row's policy, by the name of its setting; 0 where it is not stated."""
        return self.row.rules.number(name)


# The forecast: it raises the count of measured demand, and lowers it where the policy says so.


def by_forecast(_count: Counts, at: ClampContext) -> Counts:
    """Return the larger side, by `desired`."""
    return at.desired.joined


def forecast_sentence(step: Step) -> str:
    """Say by which rule of sizing the count was raised or lowered."""
    side = "raises" if step.after > step.before else "lowers"
    quantile = step.policy("quantile")
    if step.row.rules.newsvendor:
        pod, price = ("present pod", KEEP) if step.after > step.row.forecast else ("pod", 1.0)
        share = price * (1 - quantile)
        return f"{side} what the measured demand asks for: each {pod} is expected to be used for {share:.0%} or more"
    return f"the p{quantile * 100:g} of the coming peak {side} what the measured demand asks for"


# Known events: floors, raised a lead time before one begins, and maxima, above which a forecast raises nothing.


def lowered_by_event(count: Counts, at: ClampContext) -> Counts:
    """The count [row], lowered to the maximum of an event; below measured demand only where the policy says so."""
    most, bound = at.checked.events.most, at.checked.events.bounds
    if (np.minimum(most, bound) == MAX_INT32).all():
        return count
    return np.minimum(count, np.maximum(np.minimum(np.maximum(most, at.desired.reactive), bound), 1))


def raised_by_event(count: Counts, at: ClampContext) -> Counts:
    """The count [row], raised to the floor of an event."""
    floors = at.checked.events.floors
    return np.maximum(count, floors) if floors.any() else count


def event_sentence(step: Step) -> str:
    """Name the event, its end, and, where it lowers the count, the replicas that measured demand needs."""
    if step.after > step.before:
        return step.row.event
    return f"{step.row.event_most}; measured demand asks for {step.row.reactive}"


# The blast radius: how far a forecast may move a count in one cycle, whatever it says.


FEW = 4
"""Pods that a forecast may always add or remove: as many as the HPA allows however small a workload is (its §10)."""


def inside_radius(count: Counts, at: ClampContext) -> Counts:
    """No further from the current replicas than the radius, but as far as the measured demand asks, up or down."""
    if "surge" not in at.checked.policy.in_use:
        return count
    return within_radius(count, at.checked.current, at.checked.policy["surge"], at.desired.reactive)


def within_radius(count: Counts, current: Counts, surge: Floats, reactive: Counts) -> Counts:
    """The count [row], between what lies `surge` of `current` or `FEW` pods around it and `reactive`; NaN: no bound."""
    free = np.isnan(surge)
    radius = np.maximum(FEW, np.ceil(np.where(free, 0.0, surge) * current)).astype(np.int64)
    lowest, highest = np.minimum(current - radius, reactive), np.maximum(current + radius, reactive)
    return np.where(free, count, np.minimum(np.maximum(count, lowest), highest))


def radius_sentence(step: Step) -> str:
    """Say how far the count may move."""
    return f"a forecast moves {step.policy('surge'):.0%} at most, or {FEW} pods"


# Stabilization: down only to the highest recommendation of the window (HPA rules §10).
#
# An entry exactly as old as the window still counts. A row that is seen for the first time recommended the size it has.
# Unlike the HPA, which keeps an outdated entry until its slot is written again, nothing older than the window counts.


def stabilized(count: Counts, at: ClampContext) -> Counts:
    """Return the highest recommendation of the stabilization window, this one included."""
    policy, state = at.checked.policy, at.state
    window = policy["scale_down_stabilization"] if policy.window is None else policy.window
    highest = np.maximum(count, highest_since(state, window, at.now))
    if state.begun.all():
        return highest
    return np.where(state.begun, highest, np.maximum(highest, at.checked.current))


def highest_since(state: State, window: float | Floats, now: float) -> Counts:
    """The highest recommendation [row] of the last `window` seconds, one for all rows or one each."""
    if isinstance(window, float):
        slots = state.recommended_since(now - window)
    else:
        slots = np.where(np.array(state.times)[:, None] >= now - window, state.recommendations, UNKNOWN)
    return np.asarray(slots.max(axis=0), np.int64)


def stabilization_sentence(step: Step) -> str:
    """The length of the window."""
    return f"highest recommendation of the last {step.policy('scale_down_stabilization'):g} s"


# After an outage of samples or of load the count before stays the floor for a while (`outages`).


def raised_by_outage(count: Counts, at: ClampContext) -> Counts:
    """The count [row], raised to the floor of an outage."""
    if "outage_hold" not in at.checked.policy.in_use:
        return count
    return np.maximum(count, np.where(at.checked.policy["outage_hold"] > 0.0, at.state.floor, 0))


def outage_sentence(step: Step) -> str:
    """Say why there was an outage, and until when its floor holds."""
    until = datetime.fromtimestamp(step.row.outage_until, UTC)
    return f"{step.row.outage}; floor until {until:%H:%M} UTC"


# Pods to spare, so that as many as are needed stay when the fullest node or zone is lost.
#
# Of the pods a share `s` is in the fullest one. With `count / (1 - s)` pods spread alike, `count` are left without it;
# at most as many again are added. Where all pods are in one, a single pod shows whether there is another one.


SLIVER = 1e-9
"""A sliver above a whole pod is the rounding of a quotient, not a reason for one more."""
MAX_SHARE = 0.5
"""The share in one domain beyond which no more than as many again are added."""


def spared(count: Counts, at: ClampContext) -> Counts:
    """The count [row] with pods to spare; the same where nothing is to be survived, or nothing known of places."""
    shares = at.checked.lost
    return with_spare(count, shares) if (shares > 0).any() else count


def with_spare(count: Counts, shares: Floats) -> Counts:
    """Counts [row] of which `count` are left without the domain that carries these shares [row]; NaN adds nothing."""
    known = np.where(shares > 0, np.minimum(shares, MAX_SHARE), 0.0)
    whole = np.ceil(count / (1.0 - known) - SLIVER).astype(np.int64)
    alone = (shares >= 1.0) & (count > 0)
    return np.where(alone, count + 1, np.maximum(whole, count))


def spare_sentence(step: Step) -> str:
    """Say how many replicas are added, and for which loss."""
    domain, more = step.row.rules.survive, step.after - step.before
    return f"{more} more, so that {step.before} stay when the {domain} with the most of its pods is lost"


# Present size: without an HPA and a stated minimum the smallest allowed count is not known, so the count stays.
#
# One replica of a database that forms a quorum of three is no cheaper size, it is an outage.


def no_smaller(count: Counts, at: ClampContext) -> Counts:
    """The count [row], not below the present one where nothing states a minimum."""
    return np.maximum(count, at.checked.current) if at.checked.rules.keeps_size else count


def size_sentence(step: Step) -> str:
    """Say which settings would let the count fall."""
    return f"it has {step.after}, no HPA, and no stated minimum; min_replicas of its policy lets it go down"


# The bounds `minReplicas` and `maxReplicas`; those of the policy go before those of the HPA (HPA rules §10).


KEPT_AWAKE = (
    "TooFewReplicas: min_replicas is 0, and no signal that decides is measured without pods, so nothing could bring "
    "the first one back; one that is, as requests at an ingress or the length of a queue, may take the last pod"
)


def in_bounds(count: Counts, at: ClampContext) -> Counts:
    """The count [row] within the bounds of its policy."""
    return bounded(count, at.checked.policy.min_replicas, at.checked.policy.max_replicas)


def bounded(count: Counts, lowest: Counts, highest: Counts) -> Counts:
    """The count [row] within bounds, of which the lowest is not above the highest."""
    return np.minimum(np.maximum(count, lowest), highest)


def bounds_sentence(step: Step) -> str:
    """Say which bound applies, and which maximum would not limit the count: load, an event or spare pods ask for it."""
    rules = step.row.rules
    lowest, highest = rules.lowest, rules.highest
    rule = "TooFewReplicas" if step.before < lowest else "TooManyReplicas"
    if lowest == 1 and rules.may_sleep and step.before < 1:
        return KEPT_AWAKE
    clause = f"{rule}: {lowest} to {'any number of' if highest == MAX_INT32 else highest} replicas"
    return f"{clause}; a maximum of {step.before} would not limit it" if step.before > highest else clause


class ClampRule(NamedTuple):
    """One rule that may change a count."""

    name: str
    """Name of the clamp in records."""
    limited: Callable[[Counts, ClampContext], Counts]
    """The count [row] after it, of the count before it."""
    sentence: Callable[[Step], str]
    """Say why the clamp changed the count of a row."""
    of_hpa: bool = False
    """Whether an HPA does it itself to the count that it reads; done twice, it would delay twice."""


CLAMPS = (
    ClampRule("forecast", by_forecast, forecast_sentence),
    ClampRule("event maximum", lowered_by_event, event_sentence),
    ClampRule("blast radius", inside_radius, radius_sentence),
    ClampRule("stabilization", stabilized, stabilization_sentence, of_hpa=True),
    ClampRule("outage", raised_by_outage, outage_sentence),
    ClampRule("event", raised_by_event, event_sentence),
    ClampRule("spare", spared, spare_sentence),
    ClampRule("present size", no_smaller, size_sentence),
    ClampRule("bounds", in_bounds, bounds_sentence, of_hpa=True),
)
"""Bounds come last, so that no rule can undo one; floors come after stabilization, so that they end when they end."""
RECOMMENDATION = [clamp.name for clamp in CLAMPS].index("stabilization") - 1
"""Position of the clamp after which a count is remembered: before stabilization (HPA rules §10)."""


def clamped(count: Counts, at: ClampContext) -> tuple[Counts, ...]:
    """The counts [clamp][row] after each clamp."""
    counts = []
    for clamp in CLAMPS:
        count = clamp.limited(count, at)
        counts.append(count)
    return tuple(counts)


def clamped_for_hpa(recommendation: Counts, at: ClampContext) -> Counts:
    """The count [row] that an HPA is to read: after every clamp but those that it applies itself.

    Of the bounds it applies its own; a maximum that the policy states is ours to keep.
    """
    count = recommendation
    for clamp in CLAMPS[RECOMMENDATION + 1 :]:
        if not clamp.of_hpa:
            count = clamp.limited(count, at)
    return np.minimum(count, at.checked.policy.own_max_replicas)
