"""Policy of a workload, as its owner states it: one model for configuration files, tests and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, NamedTuple, Self, TypeAlias

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from forecaster.domain.clock import TimeZone
from forecaster.domain.event import MAX_EVENTS, MAX_REPLICAS, ScheduledEvent
from forecaster.domain.settings import Amount, Decides, Duration, Positive, Section
from forecaster.domain.signal import BUILT_IN, Signals
from forecaster.domain.vertical_policy import VerticalPolicy


class PodCapacity(NamedTuple):
    """An amount in the signal's unit, and where it comes from."""

    amount: float
    why: str


MAX_AMOUNT = 10**15
"""Largest amount that a policy may state in any unit: a petabyte, or as many requests a second."""
QUANTILES = (0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
"""Quantiles of the peak that `forecaster tune` tries."""
Mode: TypeAlias = Literal["observe", "publish", "floor", "scale"]


OBJECT_NAME_MAX = 253
"""Longest name that Kubernetes has."""


class PodAmount(Section):
    """Intended load of one pod by a signal, where no HPA states it."""

    signal: str = Field(max_length=OBJECT_NAME_MAX, description="Name of the signal: one of `signals`.")
    amount: Annotated[Amount, Field(gt=0, le=MAX_AMOUNT)] = Field(
        description="Amount for each pod, in the unit of the signal."
    )


class HorizontalPolicy(Section):
    """Policy of the replica count."""

    _filled: Mapping[str, PodCapacity] = PrivateAttr(default_factory=dict)
    _signals: Signals = PrivateAttr(default_factory=lambda: BUILT_IN)

    @property
    def signals(self) -> Signals:
        """Measured signals, and the metric names by which an HPA refers to them; not a setting."""
        return self._signals

    def reading(self, signals: Signals) -> HorizontalPolicy:
        """Return the policy with what these measured signals decide."""
        policy = self.model_copy()
        policy._signals = signals  # noqa: SLF001  its own
        return policy

    @property
    def filled(self) -> Mapping[str, PodCapacity]:
        """Learned capacity of one pod by signal; not a setting."""
        return self._filled

    def with_observed(self, lead_time: timedelta | None, filled: Mapping[str, PodCapacity]) -> HorizontalPolicy:
        """Return the policy with observed values for the settings it leaves open."""
        policy = self.model_copy(update={"lead_time": self.lead_time or lead_time})
        policy._filled = filled if self.peak_target is None else {}  # noqa: SLF001  its own
        return policy

    quantile: Annotated[float, Decides(clamp="forecast", step=0.01, tried=QUANTILES)] = Field(
        0.9,
        ge=0.01,
        le=0.99,
        description=(
            "Quantile of the forecast peak that replicas are sized for, 0.01–0.99. It is where a missing pod costs as "
            "much as an idle one: 0.8 where it costs 4 times as much, 0.9 at 9 times, 0.95 at 19 times."
        ),
    )
    lead_time: Annotated[
        Annotated[Duration, Field(gt=timedelta(0), le=timedelta(hours=12))] | None,
        Decides(clamp="forecast", resolved=True, step=60),
    ] = Field(
        None,
        description=(
            "From asking for a pod until it serves: pod start-up + scrape + cycle + HPA sync. Default: measured, the "
            "P90 of the workload's scale-ups and a cycle; 3m until five of them were seen."
        ),
    )
    window: Positive = Field(
        timedelta(minutes=3),
        le=timedelta(hours=12),
        description="Length of the window after the lead time in which the peak is sought. A longer one costs pods.",
    )
    sizing: Literal["quantile", "newsvendor"] = Field(
        "quantile",
        description=(
            "What the forecast asks for. quantile: the HPA's formula at the quantile of the peak. newsvendor: as many "
            "pods as are worth their price, each for the demand that it alone is expected to serve."
        ),
    )
    scale_in_by_forecast: bool = Field(
        default=False,
        description=(
            "False: a forecast only raises what the measured demand asks. True: it may lower it, too; sized by "
            "newsvendor never below what fills the pods now."
        ),
    )
    peak_target: Annotated[float, Field(ge=0.2, le=10)] | None = Field(
        None,
        description=(
            "Sized by newsvendor: the demand that fills one pod, as a ratio of the HPA's target for it, 0.2–10. "
            "Default: learned where throttling is known, else the whole request where the target is a share of it, "
            "otherwise 1."
        ),
    )
    surge: Annotated[float | None, Decides(clamp="blast radius", step=0.05, most=2)] = Field(
        None,
        ge=0.05,
        le=10,
        description=(
            "The blast radius: how far a forecast may move the count in one cycle, as a share of it, 0.05–10, and four "
            "pods at least. Measured demand is not bounded. Default: no bound."
        ),
    )
    outage_hold: Annotated[Duration, Decides(clamp="outage", step=300)] = Field(
        timedelta(0),
        ge=timedelta(0),
        le=timedelta(hours=6),
        description=(
            "After samples were missing or load was gone, for how long the count before stays the floor, 0–6h. 30m "
            "suits services with callers that try again: they come back all at once."
        ),
    )
    gate: bool = Field(
        default=True,
        description=(
            "Whether a forecast must prove itself before it acts: on this workload's own days its decisions must have "
            "had less shortage at the same pod-hours than measured demand alone, which takes three days of history. "
            "Until then, and where it fails, the count is the reactive one. False: every forecast acts."
        ),
    )
    events: tuple[ScheduledEvent, ...] = Field(
        (),
        max_length=MAX_EVENTS,
        description=(
            "Known events, each with a name and either `start` and `end`, or `cron`, `duration` and `time_zone`; while "
            "one lasts `replicas` is the floor, `max_replicas` the most, and with `freeze` counts and sizes stay."
        ),
    )
    survive: Literal["none", "node", "zone"] = Field(
        "none",
        description=(
            "Which loss leaves as many pods as are needed: that of the node, or of the zone, that carries the most of "
            "them now. So many pods are added, at most as many again. Live facts show where pods are; while they do "
            "not, nothing is added, and the sentence of the count says so. none: no pods to spare."
        ),
    )
    min_replicas: Annotated[int | None, Decides(clamp="bounds", resolved=True, step=1)] = Field(
        None,
        ge=0,
        le=MAX_REPLICAS,
        description=(
            "Lowest recommendation; default: the HPA's minReplicas; without an HPA the present size. 0, sized by "
            "newsvendor with scale_in_by_forecast: the forecast takes the last pod, and brings the first one back "
            "before the load; 1 where only CPU or memory decide, which are not measured without pods."
        ),
    )
    max_replicas: Annotated[int | None, Decides(clamp="bounds", resolved=True, step=1)] = Field(
        None, ge=1, le=MAX_REPLICAS, description="Highest recommendation; default: the HPA's maxReplicas, or no bound."
    )
    cpu_utilization: float = Field(
        0.8,
        ge=0.01,
        le=10,
        description="Target share of the CPU request where no HPA states one, in whole percent; ratio, 0.01–10.",
    )
    requests_per_pod: Annotated[Amount, Field(ge=0.001, le=MAX_AMOUNT)] | None = Field(
        None, description="Requests per second that one pod should serve where no HPA states it; none: not used."
    )
    pod_amounts: tuple[PodAmount, ...] = Field(
        (),
        max_length=MAX_EVENTS,
        description=(
            "The same for signals of your own: what one pod should carry of each where no HPA states it, e.g. "
            "`[{signal: queue, amount: 30}]`."
        ),
    )
    requests_metric: str | None = Field(
        None,
        max_length=OBJECT_NAME_MAX,
        description="Name of the HPA's Pods or External metric that is this workload's request rate, if it has one.",
    )
    demand_signal: str = Field(
        "cpu",
        max_length=OBJECT_NAME_MAX,
        description="Which demand the HPA's `forecaster_demand` target means; its selector says the same.",
    )
    tolerance: Annotated[float, Decides(clamp="desired replicas", step=0.01, most=0.5)] = Field(
        0.1, ge=0, lt=1, description="Share of deviation that moves nothing, as the HPA's own; ratio, 0–1."
    )
    scale_down_stabilization: Annotated[
        Duration, Decides(clamp="stabilization", step=60, tried=(60, 300, 600), looks_back=True)
    ] = Field(
        timedelta(minutes=5),
        ge=timedelta(0),
        le=timedelta(hours=1),
        description="Scale down only to the highest recommendation of this window, 0–3600 s, as the HPA does.",
    )

    @field_validator("min_replicas")
    @classmethod
    def _zero_by_forecast(cls, value: int | None, info: ValidationInfo) -> int | None:
        by_forecast = info.data.get("sizing") == "newsvendor" and info.data.get("scale_in_by_forecast")
        if value == 0 and not by_forecast:
            raise ValueError(
                "must not be 0 unless sizing is newsvendor and scale_in_by_forecast is true: nothing would wake it"
            )
        return value

    @field_validator("max_replicas")
    @classmethod
    def _bounds_in_order(cls, value: int | None, info: ValidationInfo) -> int | None:
        lowest = info.data.get("min_replicas")
        if value is not None and lowest is not None and value < lowest:
            raise ValueError(f"must not be below min_replicas {lowest}")
        return value


class PublishPolicy(Section):
    """Answers to an HPA while demand is not known."""

    abstain: Literal["auto", "neutral", "hold", "last", "fail"] = Field(
        "auto",
        description=(
            "auto: the last value for `last_for` where it lowers nothing, else neutral. neutral: keeps the present "
            "count. hold: the count when the demand was last known. last: the last value for `last_for`, which may "
            "undo what a person did. fail: an error. What cannot be answered is an error, never 0."
        ),
    )
    last_for: Positive = Field(
        timedelta(minutes=10),
        le=timedelta(days=1),
        description="Age of its latest sample up to which a last value is repeated.",
    )


class RollbackPolicy(Section):
    """Conditions that take a change of ours back, beside readiness and restarts of the pods."""

    errors: str = Field("", description="A signal of errors, one of `queries.errors`; default: none.")
    limit: float | None = Field(
        None,
        ge=0,
        le=MAX_AMOUNT,
        description="What that signal may be, e.g. 0.05. A change is taken back after which it is above, and above "
        "what it was. While it is not known it says nothing.",
    )

    @model_validator(mode="after")
    def _errors_have_a_limit(self) -> Self:
        if self.errors and self.limit is None:
            raise ValueError(f"errors {self.errors} needs a limit, e.g. 0.05")
        return self


class Policy(Section):
    """All settings that may differ between workloads."""

    mode: Mode = Field(
        "observe",
        description=(
            "observe: recommend and record. publish: also answer HPAs and KEDA. floor: also raise the minReplicas of "
            "HPAs ahead of need and put it back, with `floor.enabled`. scale: write the count of workloads that no HPA "
            "or other tool scales, with `scale.enabled`, `horizontal.min_replicas` and `max_replicas`. The first two "
            "do not touch the cluster."
        ),
    )
    min_history: Duration = Field(
        timedelta(hours=1),
        gt=timedelta(0),
        le=timedelta(hours=3),
        description="Known minutes of the last three hours that a forecast needs; with fewer, measured demand decides.",
    )
    max_sample_age: Positive = Field(
        timedelta(minutes=5), le=timedelta(days=1), description="With an older latest sample: hold."
    )
    time_zone: TimeZone = Field(
        "UTC",
        description="Clock that the workload's users live by, a name of the IANA data base such as Europe/Berlin: "
        "after a change to or from summer time its days and weeks are compared by that clock.",
    )
    horizontal: HorizontalPolicy = HorizontalPolicy()
    vertical: VerticalPolicy = VerticalPolicy()
    publish: PublishPolicy = PublishPolicy()
    rollback: RollbackPolicy = RollbackPolicy()

    @model_validator(mode="after")
    def _scale_is_bounded(self) -> Self:
        """Require bounds in mode scale: without an HPA there is no other limit of replicas."""
        bounds = {"min_replicas": self.horizontal.min_replicas, "max_replicas": self.horizontal.max_replicas}
        missing = [f"horizontal.{name}" for name, value in bounds.items() if value is None]
        if self.mode == "scale" and missing:
            raise ValueError(f"mode scale needs {' and '.join(missing)}: there is no HPA that bounds the count")
        if self.mode == "scale" and self.horizontal.min_replicas == 0:
            raise ValueError("mode scale needs horizontal.min_replicas of 1 or more: it never takes the last pod")
        return self


class PolicySelector(Section):
    """Shell patterns; a workload is meant when all of them match."""

    namespace: str = Field("*", description="Pattern of the namespace, e.g. `team-*`.")
    kind: str = Field("*", description="Pattern of the kind, e.g. `Deployment`.")
    name: str = Field("*", description="Pattern of the name.")
    labels: dict[str, str] = Field(
        default_factory=dict,
        description="Patterns of labels of the workload by their keys, e.g. `team: shop-*`. They are known from live "
        "facts; without them no label is known, and no pattern of labels matches.",
    )
