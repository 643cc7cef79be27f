"""What the owner of a workload wants. One model for configuration files, tests and notebooks."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from forecaster.domain.duration import Duration

Positive = Annotated[Duration, Field(gt=timedelta(0))]
Ratio = Annotated[float, Field(gt=0, le=1)]


class _Frozen(BaseModel):
    """A frozen record that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class HorizontalPolicy(_Frozen):
    """How many replicas."""

    quantile: float = Field(
        0.85,
        ge=0.5,
        le=0.99,
        description=(
            "Quantile of the forecast peak that replicas are sized for, 0.5–0.99. Higher is safer and dearer. On "
            "recorded load 0.8–0.85 gave the least shortage for the same pod-hours."
        ),
    )
    lead_time: Positive = Field(
        timedelta(minutes=3),
        description="From asking for a pod until it serves: pod start-up + scrape + cycle + HPA sync.",
    )
    window: Positive = Field(
        timedelta(minutes=3),
        description="How long after the lead time the peak is looked for. Longer is paid in pods.",
    )
    scale_in_by_forecast: bool = Field(
        default=False,
        description="False: a forecast only raises what the measured demand asks. True: it may lower it, too.",
    )
    min_replicas: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Lowest recommendation; default: the HPA's minReplicas, or 1."
    )
    max_replicas: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Highest recommendation; default: the HPA's maxReplicas, or no bound."
    )
    cpu_utilization: float = Field(
        0.8,
        ge=0.01,
        le=10,
        description="Target share of the CPU request where no HPA states one, in whole percent; ratio, 0.01–10.",
    )
    requests_per_pod: Annotated[float, Field(ge=0.001)] | None = Field(
        None, description="Requests per second that one pod should serve where no HPA states it; none: not used."
    )
    requests_metric: str | None = Field(
        None,
        description="Name of the HPA's Pods or External metric that is this workload's request rate, if it has one.",
    )
    tolerance: float = Field(
        0.1, ge=0, lt=1, description="Share of deviation that moves nothing, as the HPA's own; ratio, 0–1."
    )
    scale_down_stabilization: Duration = Field(
        timedelta(minutes=5),
        ge=timedelta(0),
        le=timedelta(hours=1),
        description="Scale down only to the highest recommendation of this window, 0–3600 s, as the HPA does.",
    )

    @field_validator("max_replicas")
    @classmethod
    def _bounds_in_order(cls, value: int | None, info: ValidationInfo) -> int | None:
        lowest = info.data.get("min_replicas")
        if value is not None and lowest is not None and value < lowest:
            raise ValueError(f"must not be below min_replicas {lowest}")
        return value


class VerticalPolicy(_Frozen):
    """Requests and limits of one pod."""

    cpu_quantile: Ratio = Field(
        0.95, description="Quantile of per-pod CPU over the coming day that the request covers."
    )
    memory_quantile: Ratio = Field(1.0, description="The same for memory; 1 is the peak.")
    margin: float = Field(0.15, ge=0, le=4, description="Added to both, as a ratio of the quantile.")
    memory_limit: Literal["request", "keep-ratio", "none"] = Field(
        "request", description="Memory limit: equal to the request, in today's ratio to it, or absent."
    )
    cpu_limit: Literal["keep-ratio", "none"] = Field(
        "keep-ratio", description="CPU limit: in today's ratio to the request (absent stays absent), or absent."
    )
    min_cpu: float = Field(0.01, gt=0, description="Smallest CPU request, cores.")
    min_memory: float = Field(16 * 2**20, gt=0, description="Smallest memory request, bytes.")


class Policy(_Frozen):
    """Everything that may differ between workloads."""

    mode: Literal["observe"] = Field(
        "observe", description="observe: recommend, publish and record; touch nothing in the cluster."
    )
    min_history: Duration = Field(
        timedelta(hours=1),
        gt=timedelta(0),
        le=timedelta(hours=3),
        description="Known minutes of the last three hours that a forecast needs; with fewer, measured demand decides.",
    )
    max_sample_age: Positive = Field(timedelta(minutes=5), description="An older newest sample is stale: hold.")
    horizontal: HorizontalPolicy = HorizontalPolicy()
    vertical: VerticalPolicy = VerticalPolicy()


class Selector(_Frozen):
    """Shell patterns; a workload is meant when all three match."""

    namespace: str = Field("*", description="Pattern of the namespace, e.g. `team-*`.")
    kind: str = Field("*", description="Pattern of the kind, e.g. `Deployment`.")
    name: str = Field("*", description="Pattern of the name.")
