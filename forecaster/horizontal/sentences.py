"""One row in sentences: which side and which clamps made its count, and what every target knew. No numpy.

The computing process and the serving process make records by it, from the same numbers and texts.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING

from forecaster.domain.decision import Clamp, Hold, LeadTime, Reason, Recommendation, Scale, SignalView
from forecaster.horizontal.clamps import CLAMPS
from forecaster.horizontal.clamps.clamp import Step
from forecaster.horizontal.clamps.outage_hold import unseen_sentence
from forecaster.horizontal.codes import INCOMPLETE, KNOWN, SAMPLED, SCALED, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from forecaster.domain.decision import Resize
    from forecaster.domain.workload import Resources, WorkloadId
    from forecaster.horizontal.row import RowNumbers, RowWords, TargetNumbers, TargetWords

SPARE = [clamp.name for clamp in CLAMPS].index("spare") + 1
"""Position of the count after the spare pods among the one by measured demand and those after each clamp."""
NO_TARGET = "no HPA and no CPU request: nothing says what one pod should carry"


def recommendation(
    id_: WorkloadId, numbers: RowNumbers, words: RowWords, resources_now: Resources, resources: Resize | Hold
) -> Recommendation:
    """Return the record of one workload: its count with every step on the way, and what was decided about its size."""
    decided = verdict(numbers, words)
    seconds = words.lead_seconds
    return Recommendation(
        id=id_,
        at=numbers.at,
        replicas_now=numbers.current,
        replicas=decided,
        resources_now=resources_now,
        resources=resources,
        signals=tuple(_views(numbers, words)),
        clamps=tuple(_clamps(numbers, words)) if isinstance(decided, Scale) else (),
        autoscaler=words.autoscaler,
        lead_time=None if seconds is None else LeadTime(timedelta(seconds=seconds), words.lead_origin),
        shut=words.shut,
    )


def verdict(numbers: RowNumbers, words: RowWords) -> Scale | Hold:
    """The count and why it is what it is, or why nothing can be said about it."""
    if words.nothing_decided:
        return Hold(Reason(words.nothing_decided), words.hold)
    reason = numbers.reason
    if reason not in SCALED:
        return Hold(reason, _hold(numbers, words))
    notes = (view.note for view in _views(numbers, words) if view.note)
    said = scale_sentence(reason, numbers.forecast, numbers.reactive, words.shut, notes)
    woken = "; it wakes the workload, which is at zero" if numbers.current == 0 and reason is Reason.FORECAST else ""
    return Scale(numbers.replicas, reason, said + woken + _unspared(numbers, words.rules.survive))


def _unspared(numbers: RowNumbers, survive: str) -> str:
    """That no pod is added for the loss that the policy wants to survive: where places are known, one always is."""
    before, after = (numbers.reactive, *numbers.counts)[SPARE - 1 : SPARE + 1]
    if survive == "none" or not before or before != after:
        return ""
    return f"; survive {survive} adds nothing: it is not known in which {survive} its pods are, live facts tell it"


def scale_sentence(reason: Reason, forecast: int, reactive: int, shut: str, notes: Iterable[str]) -> str:
    """Which side made the count what it is. `notes` of targets are read where there is no forecast."""
    match reason:
        case Reason.GATED:
            return f"measured demand alone; forecast {shut}"
        case Reason.FALLBACK:
            return f"measured demand alone: {'; '.join(sorted({*notes})) or 'no forecast'}"
        case Reason.REACTIVE:
            return "the forecast asks for no more than the measured demand"
        case _:
            return f"the forecast asks for {forecast}, the measured demand for {reactive}"


def _clamps(numbers: RowNumbers, words: RowWords) -> Iterator[Clamp]:
    """The steps that changed the count."""
    for clamp, (before, after) in zip(CLAMPS, pairwise((numbers.reactive, *numbers.counts)), strict=True):
        if before != after:
            yield Clamp(clamp.name, before, after, clamp.sentence(Step(before, after, numbers, words)))


def _hold(numbers: RowNumbers, words: RowWords) -> str:
    """Why nothing can be said about the count."""
    match numbers.reason:
        case Reason.NO_REPLICAS:
            return _asleep(words)
        case Reason.FROZEN:
            return words.hold or "a maintenance window is on"
        case Reason.NO_TARGET:
            return "; ".join(f"{one.signal}: {one.note}" for one in words.targets if not one.usable) or NO_TARGET
        case Reason.NO_PODS:
            return f"none of {numbers.current} pods is ready"
        case Reason.FAILED:
            return words.hold
        case _:
            return _missing(numbers, words)


def _asleep(words: RowWords) -> str:
    """Why a workload without replicas is left there."""
    signals = [one.signal for one in words.targets if one.usable]
    if not words.rules.may_sleep or not signals or words.rules.comes_back:
        return "scaled to zero; what scaled it down scales it up again"
    names = ", ".join(dict.fromkeys(signals))
    return f"scaled to zero, and not by a recommendation: without pods {names} is not measured, so no load can wake it"


def _missing(numbers: RowNumbers, words: RowWords) -> str:
    """Which signals have no answer or a part of one, and why."""
    targets = [one for one in words.targets if one.usable]
    missing = [place for place, one in enumerate(numbers.targets) if one.reactive == UNKNOWN]
    parts = [place for place, one in enumerate(numbers.targets) if one.unseen == INCOMPLETE]
    reasons = (
        f"{targets[place].signal}: {_unmeasured(numbers, words, targets[place], numbers.targets[place])}"
        for place in dict.fromkeys((*missing, *parts))
    )
    said = "; ".join(reasons)
    if len(missing) == len(numbers.targets):
        return said
    return f"not going down while a signal is {'missing' if missing else 'incomplete'}: {said}"


def _unmeasured(numbers: RowNumbers, words: RowWords, target: TargetWords, one: TargetNumbers) -> str:
    """Why a target has no answer now."""
    if one.unseen == KNOWN:
        return "no pod is ready" if numbers.current else "no pod is asked for"
    return target.unmeasured or unseen_sentence(one.unseen, target.signal, one.age, words.rules.max_sample_age)


def _views(numbers: RowNumbers, words: RowWords) -> Iterator[SignalView]:
    """Every target in the order of the HPA, those that cannot be computed among them."""
    usable = iter(numbers.targets)
    for target in words.targets:
        if target.usable:
            yield _view(numbers, words, target, next(usable))
        else:
            yield SignalView(signal=target.signal, note=target.note)


def _view(numbers: RowNumbers, words: RowWords, target: TargetWords, one: TargetNumbers) -> SignalView:
    """The record of one target: every input and both answers."""
    sampled = one.unseen in SAMPLED and isfinite(one.age)
    return SignalView(
        signal=target.signal,
        unit=target.unit,
        target=target.target,
        measured=one.measured if sampled else None,
        measured_at=datetime.fromtimestamp(numbers.at.timestamp() - one.age, UTC) if sampled else None,
        reactive_replicas=_known(one.reactive),
        forecast=one.ahead,
        forecast_replicas=_known(one.forecast),
        note=_note(numbers, words, target, one),
        pod=target.pod,
    )


def _known(count: int) -> int | None:
    return None if count == UNKNOWN else count


def _note(numbers: RowNumbers, words: RowWords, target: TargetWords, one: TargetNumbers) -> str:
    """What is missing of one target, and what the forecast itself says, each once."""
    said = [one.ahead.note] if one.ahead is not None and one.ahead.note else []
    part = [target.unmeasured] if one.unseen == KNOWN and target.unmeasured else []
    if one.reactive == UNKNOWN:
        return "; ".join(dict.fromkeys([_unmeasured(numbers, words, target, one), *said]))
    if one.unseen == INCOMPLETE:
        part = [f"a lower bound, not going down by it: {_unmeasured(numbers, words, target, one)}"]
    if one.forecast == UNKNOWN:
        unforeseen = target.unforeseen if one.ahead is None else "the forecast is no amount of demand"
        return "; ".join(dict.fromkeys([*part, unforeseen, *said]))
    return "; ".join([*part, *said])
