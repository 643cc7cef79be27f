"""Policy of a workload's sizes, as its owner states it: requests and limits of each container."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, Self

from pydantic import Field, model_validator

from forecaster.domain.settings import Bytes, Cores, Positive, Ratio, Section


class VerticalPolicy(Section):
    """Requests and limits of each container."""

    mode: Literal["observe", "initial", "in-place"] = Field(
        "observe",
        description="observe: recommend and record. initial: also give new pods their size when they are made, with "
        "`resize.initial`. in-place: also resize running pods, one of a workload after the other, with "
        "`resize.enabled`. Templates stay as they are.",
    )
    evict: bool = Field(
        default=False,
        description="With mode in-place and `resize.initial`: whether a pod whose node does not grant its size for "
        "`resize.evict_after` is evicted, one of a workload after the other, as its PodDisruptionBudgets let it; new "
        "pods are made with the size.",
    )
    startup_boost: float | None = Field(
        None,
        gt=1,
        le=20,
        description="With a mode other than observe and `resize.initial`: the CPU limit of a new pod until it has "
        "started, as a multiple, 1–20. Its request stays. Default: none.",
    )
    startup_learned: bool = Field(
        default=False,
        description="With `startup_boost`: whether the multiple is learned for each container, between 1 and that one, "
        "from whether starts of more than 30 s are throttled at their CPU limit.",
    )
    startup_for: Positive = Field(
        timedelta(minutes=1),
        le=timedelta(hours=1),
        description="With `startup_boost`: how long at least; it ends when the pod is ready, too.",
    )
    horizon: Positive = Field(
        timedelta(days=1),
        le=timedelta(days=31),
        description="How long the sizes must do: until the next chance to change them.",
    )
    load_forecast: Literal["raise", "follow", "ignore"] = Field(
        "raise",
        description="What a forecast of the load of one pod does to its sizes. raise: where it is higher than usual, "
        "days like it weigh more, and usage grows by what it is beyond all of them. follow: a lower one lowers sizes, "
        "too. ignore: nothing.",
    )
    throttle_price: float = Field(
        8.0,
        gt=0,
        le=1e6,
        description="What an hour above the CPU request costs, in hours of the CPU the container uses; the request is "
        "where this and idle cores together cost least, and the implied quantile is shown.",
    )
    oom_price: float = Field(
        150.0,
        gt=0,
        le=1e6,
        description="What an OOM kill costs, in hours of the memory the container uses at its peaks. On recorded "
        "load 150 gave half of the VPA's kills, and it covers a peak that was seen once, a week ago.",
    )
    oom_kills_a_year: float = Field(
        1.0,
        gt=0,
        le=366,
        description="Most OOM kills a year that a container may expect by our own statement, whatever the price; "
        "where 1.5 times the highest peak do not do, the size says how many it expects. Up to 1, memory is also never "
        "sized below the highest peak of the whole history and 10 %; a larger number states that you accept the risk.",
    )
    change_price: float = Field(
        6.0,
        ge=0,
        le=1e6,
        description="What a change costs, in hours of the resource the container uses; sizes that gain less stay.",
    )
    cpu_limit: Literal["keep-ratio", "throttle-target", "none"] = Field(
        "keep-ratio",
        description="CPU limit: in today's ratio to the request (absent stays absent), as low as `throttle_target` "
        "allows, or absent.",
    )
    throttle_target: float = Field(
        0.001, gt=0, le=0.5, description="Share of the wanted core-hours that a limit may cut off; ratio."
    )
    static_cpus: bool = Field(
        default=False,
        description="Whole cores and a limit equal to the request, as the static CPU manager gives out exclusively.",
    )
    memory_limit: Literal["request", "peak", "keep-ratio", "none"] = Field(
        "request",
        description="Memory limit: equal to the request, at the peak above a request of `memory_share`, in today's "
        "ratio to the request, or absent.",
    )
    memory_share: Ratio = Field(
        0.9, description="With `memory_limit: peak`: share of the time in which the request suffices; ratio."
    )
    heap_bounded: bool = Field(
        default=False, description="The runtime takes what its heap allows: memory is never sized down by usage alone."
    )
    beside_hpa: Literal["keep", "keep-scale-point"] = Field(
        "keep",
        description="Where an HPA acts on utilization of a request: keep the request, or change it together with the "
        "HPA's target, so that it still acts at the same load per pod.",
    )
    min_cpu: Cores = Field(0.01, gt=0, le=1024, description="Smallest CPU request, as `10m` or in cores.")
    min_memory: Bytes = Field(16 * 2**20, gt=0, le=2**50, description="Smallest memory request, as `16Mi` or in bytes.")

    @model_validator(mode="after")
    def _mode_allows_the_rest(self) -> Self:
        if self.evict and self.mode != "in-place":
            raise ValueError(f"evict: true needs mode in-place, and it is {self.mode}")
        if self.startup_boost is not None and self.mode == "observe":
            raise ValueError("startup_boost needs mode initial or in-place, and it is observe")
        if self.startup_learned and self.startup_boost is None:
            raise ValueError("startup_learned needs startup_boost, the largest multiple, e.g. startup_boost: 4")
        if self.mode != "observe" and self.beside_hpa == "keep-scale-point":
            raise ValueError(f"mode {self.mode} cannot change the HPA's target with the request; beside_hpa: keep")
        return self

    @model_validator(mode="after")
    def _nothing_contradicts_static_cpus(self) -> Self:
        """Refuse what contradicts static CPUs, which need Guaranteed pods: limits equal requests, whole CPUs."""
        if not self.static_cpus:
            return self
        if self.cpu_limit == "none":
            raise ValueError("static_cpus: exclusive CPUs need a limit equal to the request, and cpu_limit is none")
        if self.memory_limit != "request":
            raise ValueError(f"static_cpus: only Guaranteed pods have them, and memory_limit is {self.memory_limit}")
        return self
