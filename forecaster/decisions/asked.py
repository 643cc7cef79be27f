"""What one target of a workload asks for, now and ahead, and the record of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.decisions.replicas import proposal
from forecaster.decisions.targets import PodTarget, Unusable
from forecaster.domain.decision import SignalView
from forecaster.domain.outlook import Ahead, Measured, Outlook
from forecaster.hpa.proposals import Proposal
from forecaster.hpa.unmeasured import Unmeasured

if TYPE_CHECKING:
    from forecaster.domain.outlook import Unknown
    from forecaster.domain.workload import Workload
    from forecaster.hpa.tolerance import Tolerance


class Asked(NamedTuple):
    """One target that can be computed: what is known of its signal, and the replicas that follow."""

    target: PodTarget
    outlook: Outlook
    now: Proposal | Unmeasured
    ahead: Proposal | Unmeasured


def ask(target: PodTarget, outlook: Outlook, workload: Workload, tolerance: Tolerance) -> Asked:
    """Measurement and forecast through the same formula.

    A signal without a usable measurement has no usable forecast either: it would be made of the same stale samples.
    """
    measured, ahead = outlook.measured, outlook.ahead
    if not isinstance(measured, Measured):
        return Asked(target, outlook, _absent(measured), _absent(measured))
    ready, current = workload.ready_replicas, workload.replicas
    if not (ready and current):
        nobody = Unmeasured("no_pods", "no pod is ready" if current else "no pod is asked for")
        return Asked(target, outlook, nobody, nobody)
    now = proposal(measured.value, target, ready, current, tolerance)
    if not isinstance(ahead, Ahead):
        return Asked(target, outlook, now, _absent(ahead))
    return Asked(target, outlook, now, proposal(ahead.peak, target, ready, current, tolerance))


def _absent(unknown: Unknown) -> Unmeasured:
    return Unmeasured("no_samples", unknown.note)


def view(asked: Asked | Unusable) -> SignalView:
    """The record of one target: every input and both answers."""
    if isinstance(asked, Unusable):
        return SignalView(signal=asked.metric, note=asked.note)
    target, outlook, now, ahead = asked
    measured = outlook.measured if isinstance(outlook.measured, Measured) else None
    forecast = outlook.ahead if isinstance(outlook.ahead, Ahead) else None
    return SignalView(
        signal=target.signal,
        target=str(target),
        measured=measured.value if measured else None,
        measured_at=measured.at if measured else None,
        reactive_replicas=now.replicas if isinstance(now, Proposal) else None,
        forecast=forecast,
        forecast_replicas=ahead.replicas if isinstance(ahead, Proposal) else None,
        note="; ".join(_notes(asked, forecast)),
    )


def _notes(asked: Asked, forecast: Ahead | None) -> list[str]:
    notes = [side.message for side in (asked.now, asked.ahead) if isinstance(side, Unmeasured)]
    notes += [forecast.note] if forecast and forecast.note else []
    return list(dict.fromkeys(notes))
