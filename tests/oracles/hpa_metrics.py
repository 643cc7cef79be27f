"""Labels of the HPA controller's own metrics, and averages as its status carries them (HPA rules §12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.domain.quantity import Quantity, QuantityFormat, milli_quantity
from forecaster.hpa.proposals import MetricProposal, Unmeasured
from forecaster.hpa.wording import action

if TYPE_CHECKING:
    from forecaster.hpa.wording import Action, ErrorKind


def status_quantity(resource: str, average_milli: int) -> Quantity:
    """HPA rules §12: an average as the status carries it: memory in binary format, everything else in decimal."""
    binary = resource == "memory"
    return milli_quantity(average_milli, QuantityFormat.BINARY_SI if binary else QuantityFormat.DECIMAL_SI)


def metric_action(proposal: MetricProposal | Unmeasured, status_replicas: int) -> Action:
    """HPA rules §12: the proposal of one metric against the current replicas of the *previous* status."""
    return "none" if isinstance(proposal, Unmeasured) else action(proposal.replicas, status_replicas)


def metric_error(proposal: MetricProposal | Unmeasured) -> ErrorKind:
    """HPA rules §12: an unknown source is the user's fault, every other failure an internal one."""
    if not isinstance(proposal, Unmeasured):
        return "none"
    return "spec" if proposal.cause == "invalid_source" else "internal"
