"""Settings of the objects of the cluster that state policies."""

from __future__ import annotations

from pydantic import Field

from forecaster.domain.ceilings import OwnerCeiling
from forecaster.domain.settings import Section


class ResourceSettings(Section):
    """PredictiveAutoscaler and PredictivePolicy of the cluster."""

    enabled: bool = Field(
        default=False,
        description="Whether they are read, and the status of PredictiveAutoscalers is written by the replica that "
        "holds the Lease `acting.lease`. Needs live facts and deploy/components/resources.",
    )
    owners: tuple[OwnerCeiling, ...] = Field(
        (),
        description="How far annotations and PredictiveAutoscalers may go, by namespace. What goes beyond is left out "
        "as a whole, with a condition on the object; what the platform states is not bounded.",
    )
