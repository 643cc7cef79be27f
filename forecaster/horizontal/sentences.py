"""One row in sentences: which side and which clamps made its count, and what every target knew.

The computing process and the serving process, which has no numpy, make records by it and explain them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite

from forecaster.domain.amounts import alike, amount, counted, duration_text, pods_change
from forecaster.domain.decision import Clamp, Hold, Reason, Recommendation, Resize, Scale, SignalView, forecast_state
from forecaster.domain.signal import PeakForecast
from forecaster.domain.workload import Resources, WorkloadId
from forecaster.horizontal.clamps import CLAMPS, Step
from forecaster.horizontal.row import (
    IMPOSSIBLE,
    INCOMPLETE,
    KNOWN,
    NO_SAMPLE,
    NOT_READ,
    SAMPLED,
    SCALED,
    STALE,
    UNKNOWN,
    DecidedRow,
    DecidedTarget,
)

SPARE = [clamp.name for clamp in CLAMPS].index("spare") + 1
"""Position of the count after the spare pods among the one by measured demand and those after each clamp."""
NO_TARGET = "no HPA and no CPU request: nothing says what one pod should carry"
MAX_SILENCE = 1e9
"""Seconds; a larger age means no sample."""


def recommendation(
    id_: WorkloadId, row: DecidedRow, resources_now: Resources, resources: Resize | Hold
) -> Recommendation:
    """Return the record of one workload: its count with every intermediate step, and the decision about its size."""
    decided = verdict(row)
    return Recommendation(
        id=id_,
        at=row.at,
        replicas_now=row.current,
        replicas=decided,
        resources_now=resources_now,
        resources=resources,
        signals=tuple(_views(row)),
        clamps=tuple(_clamps(row)) if isinstance(decided, Scale) else (),
        autoscaler=row.autoscaler,
        lead_time=row.lead_time,
        gate_reason=row.shut,
    )


def verdict(row: DecidedRow) -> Scale | Hold:
    """Return the count and its reason, or why there is none."""
    reason = row.reason
    if row.withheld:
        return Hold(reason, row.hold)
    if reason not in SCALED:
        return Hold(reason, _hold(row))
    notes = (view.note for view in _views(row) if view.note)
    sentence = scale_sentence(reason, row.forecast, row.reactive, row.shut, notes)
    woken = "; it wakes the workload, which is at zero" if row.current == 0 and reason is Reason.FORECAST else ""
    return Scale(row.replicas, reason, sentence + woken + _unspared(row, row.rules.survive))


def _unspared(row: DecidedRow, survive: str) -> str:
    """Say that no pod is added for the loss that the policy wants to survive: where places are known, one always is."""
    before, after = (row.reactive, *row.counts)[SPARE - 1 : SPARE + 1]
    if survive == "none" or not before or before != after:
        return ""
    return f"; survive {survive} adds nothing: it is not known in which {survive} its pods are; enable live facts"


def scale_sentence(reason: Reason, forecast: int, reactive: int, gate_reason: str, notes: Iterable[str]) -> str:
    """Say whether forecast or measured demand determines the count; without a forecast, say `notes` of targets."""
    match reason:
        case Reason.GATED:
            return f"measured demand alone; forecast {gate_reason}"
        case Reason.FALLBACK:
            return f"measured demand alone: {'; '.join(sorted({*notes})) or 'no forecast'}"
        case Reason.REACTIVE if forecast > reactive:
            return f"the forecast asks for {forecast}, limits leave the measured {reactive}"
        case Reason.REACTIVE:
            return "the forecast asks for no more than the measured demand"
        case _:
            return f"the forecast asks for {forecast}, the measured demand for {reactive}"


def _clamps(row: DecidedRow) -> Iterator[Clamp]:
    """The steps that changed the count."""
    for clamp, (before, after) in zip(CLAMPS, pairwise((row.reactive, *row.counts)), strict=True):
        if before != after:
            yield Clamp(clamp.name, before, after, clamp.sentence(Step(before, after, row)))


def _hold(row: DecidedRow) -> str:
    """Say why the count is held."""
    match row.reason:
        case Reason.NO_REPLICAS:
            return _asleep(row)
        case Reason.FROZEN:
            return row.hold or "a maintenance window is on"
        case Reason.NO_TARGET:
            unusable = (f"{target.signal}: {target.note}" for target in row.targets if not target.usable)
            return "; ".join(dict.fromkeys(unusable)) or NO_TARGET
        case Reason.NO_PODS:
            return f"none of {row.current} pods is ready"
        case Reason.FAILED:
            return row.hold
        case _:
            return _missing(row)


def _asleep(row: DecidedRow) -> str:
    """Say why a workload without replicas stays at 0."""
    signals = [target.signal for target in row.usable]
    if not row.rules.may_sleep or not signals or row.rules.comes_back:
        return "scaled to zero; what scaled it down scales it up again"
    names = ", ".join(dict.fromkeys(signals))
    return f"scaled to zero, and not by a recommendation: without pods {names} is not measured, so no load can wake it"


def _missing(row: DecidedRow) -> str:
    """Name the signals with no answer or a partial one, and the reason."""
    missing = [target for target in row.usable if target.reactive == UNKNOWN]
    parts = [target for target in row.usable if target.unseen == INCOMPLETE and target.reactive != UNKNOWN]
    reasons = "; ".join(f"{target.signal}: {_unmeasured(row, target)}" for target in (*missing, *parts))
    if len(missing) == len(row.usable):
        return reasons
    return f"not going down while a signal is {'missing' if missing else 'incomplete'}: {reasons}"


def _unmeasured(row: DecidedRow, target: DecidedTarget) -> str:
    """Say why a target has no measurement now."""
    if target.unseen == KNOWN:
        return "no pod is ready" if row.current else "no pod is requested"
    return target.unmeasured or unseen_sentence(target.unseen, target.signal, target.age, row.rules.max_sample_age)


_UNSEEN = {
    NO_SAMPLE: "no sample",
    IMPOSSIBLE: "the measured value is not a valid amount",
    INCOMPLETE: "the measured value is part of a sum",
}


def unseen_sentence(code: int, signal: str, age_seconds: float, limit_seconds: float) -> str:
    """Say why a signal has no measurement."""
    if code == NOT_READ:
        return f"{signal} is not among the signals read"
    if code == STALE:
        return _stale(age_seconds, limit_seconds)
    return _UNSEEN[code]


def _stale(age_seconds: float, limit_seconds: float) -> str:
    """`demand.latest` has these words, too, where the ages are known."""
    if not age_seconds <= MAX_SILENCE:
        return "the latest sample is too old"
    return f"the latest sample is {age_seconds / 60:.0f} min old, {limit_seconds / 60:.0f} min is the limit"


def _views(row: DecidedRow) -> Iterator[SignalView]:
    """Every target in the order of the HPA, those that cannot be computed among them."""
    for target in row.targets:
        yield _view(row, target) if target.usable else SignalView(signal=target.signal, note=target.note)


def _view(row: DecidedRow, target: DecidedTarget) -> SignalView:
    """The record of one target: every input and both answers."""
    sampled = target.unseen in SAMPLED and isfinite(target.age)
    return SignalView(
        signal=target.signal,
        unit=target.unit,
        target=target.target,
        measured=target.measured if sampled else None,
        measured_at=datetime.fromtimestamp(row.at.timestamp() - target.age, UTC) if sampled else None,
        reactive_replicas=_known(target.reactive),
        forecast=target.ahead,
        forecast_replicas=_known(target.forecast),
        note=_note(row, target),
        pod=target.pod,
        partly=target.unseen == INCOMPLETE,
    )


def _known(count: int) -> int | None:
    return None if count == UNKNOWN else count


def _note(row: DecidedRow, target: DecidedTarget) -> str:
    """Name the missing parts of a target and the remark of its forecast, each once."""
    notes = [target.ahead.note] if target.ahead is not None and target.ahead.note else []
    part = [target.unmeasured] if target.unseen == KNOWN and target.unmeasured else []
    if target.reactive == UNKNOWN:
        return "; ".join(dict.fromkeys([_unmeasured(row, target), *notes]))
    if target.unseen == INCOMPLETE:
        part = [f"a lower bound, not going down by it: {_unmeasured(row, target)}"]
    if target.forecast == UNKNOWN:
        unforeseen = target.unforeseen if target.ahead is None else "the forecast is no amount of demand"
        return "; ".join(dict.fromkeys([*part, unforeseen, *notes]))
    return "; ".join([*part, *notes])


# A record in sentences: measurements, forecasts, every clamp in order, the number and the reason.


def explanation(recommendation: Recommendation) -> list[str]:
    """Lines to read from top to bottom."""
    return [
        f"{recommendation.id.kind} {recommendation.id} at {recommendation.at:%Y-%m-%d %H:%M:%S} UTC",
        f"  replicas: {recommendation.replicas_now} now, {_owner(recommendation)}",
        *(line for view in recommendation.signals for line in _signal(view)),
        *_forecast(recommendation),
        *_lead_time(recommendation),
        *(_clamp(i, clamp) for i, clamp in enumerate(recommendation.clamps, 1)),
        f"  => {_count(recommendation)}",
        f"  one pod (request/limit): {pods_change(recommendation.resources_now, recommendation.resources_now)}",
        f"  => {_size(recommendation)}",
        *_containers(recommendation),
    ]


def _containers(recommendation: Recommendation) -> Iterator[str]:
    """Yield a line for each of several containers, with its changes."""
    if not isinstance(recommendation.resources, Resize):
        return
    sizes = recommendation.resources.containers
    for size in sizes if len(sizes) > 1 else ():
        yield f"     {size.name}: {pods_change(size.now, size.recommended)}"
    for target in recommendation.resources.targets:
        yield f"     with it, the HPA's target for {target.metric}: {target.value * 100:.0f} %"


def _owner(recommendation: Recommendation) -> str:
    unknown = recommendation.replicas.reason is Reason.SOURCE_DOWN
    none = "whether an HPA owns it is not known" if unknown else "no HPA"
    return f"owned by HPA {recommendation.autoscaler}" if recommendation.autoscaler else none


def _signal(view: SignalView) -> Iterator[str]:
    yield f"  {view.signal}: target {view.target}" if view.target else f"  {view.signal}: not usable"
    if view.measured is not None and view.measured_at is not None:
        asks = f", asks for {view.reactive_replicas}" if view.reactive_replicas is not None else ""
        yield f"    measured {amount(view.measured, view.unit)} at {view.measured_at:%H:%M}{asks}"
    if view.forecast is not None:
        asks = f", asks for {view.forecast_replicas}" if view.forecast_replicas is not None else ""
        yield f"    forecast {_peak(view.forecast, view.unit)}{asks}"
    if view.note:
        yield f"    note: {view.note}"


def _forecast(recommendation: Recommendation) -> Iterator[str]:
    """State of the forecast, unless the sentence of the count says it; nothing where the count is held."""
    if isinstance(recommendation.replicas, Scale) and recommendation.replicas.reason is not Reason.GATED:
        state, why = forecast_state(
            recommendation.gate_reason, foreseen=any(view.forecast for view in recommendation.signals)
        )
        yield f"  forecast {state}{f': {why}' if why else ''}"


def _lead_time(recommendation: Recommendation) -> Iterator[str]:
    """Say from when on the peak was looked for; nothing where no peak was."""
    if recommendation.lead_time and any(view.forecast for view in recommendation.signals):
        yield f"  lead time {duration_text(recommendation.lead_time.value)}: {recommendation.lead_time.origin}"


def _peak(forecast: PeakForecast, unit: str) -> str:
    between = f"{forecast.begin:%H:%M} and {forecast.until:%H:%M}"
    peak, low, high, median = alike((forecast.peak, forecast.low, forecast.high, forecast.median), unit)
    quantile = f"p{forecast.quantile * 100:g} of the peak between {between} is {peak}"
    return f"{quantile} ({low} to {high}, median {median}; {forecast.model})"


def _clamp(i: int, clamp: Clamp) -> str:
    return f"  {i}. {clamp.rule}: {clamp.before} → {clamp.after} ({clamp.why})"


def _count(recommendation: Recommendation) -> str:
    count = recommendation.replicas
    if isinstance(count, Hold):
        return f"hold at {recommendation.replicas_now} ({count.reason}): {count.message}"
    return f"{counted(count.replicas, 'replica')} ({count.reason}): {count.message}"


def _size(recommendation: Recommendation) -> str:
    size = recommendation.resources
    if isinstance(size, Resize):
        return f"{pods_change(recommendation.resources_now, size.resources)}: {size.message}"
    return f"unchanged ({size.reason}): {size.message}"
