"""Settings of everything that acts on the cluster: whether, by which Lease, how fast."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import Field

from forecaster.domain.settings import Duration, Section

Positive = Annotated[Duration, Field(gt=timedelta(0), le=timedelta(days=1))]
Ratio = Annotated[float, Field(gt=0, le=1)]


class ActingSettings(Section):
    """Common settings of all writes to the cluster."""

    dry_run: bool = Field(
        default=False, description="Send every write with dryRun=All: the API server validates it and stores nothing."
    )
    paused: bool = Field(
        default=False,
        description="Write nothing; floors that are on end by themselves, counts and sizes stay. At run time: the "
        "annotation forecaster.dev/pause of the Lease.",
    )
    lease: str = Field(
        "forecaster/forecaster",
        pattern=r"^[^/]+/[^/]+$",
        description="NAMESPACE/NAME of the Lease by which one replica writes, and with `replicas.enabled` computes. "
        "It has to be there.",
    )
    most_falling: Ratio = Field(
        0.3,
        description="Share of the workloads of a mode that may lose a fifth of their count or more in one cycle, ten "
        "at least. If more would, none goes down until a person says so by `forecaster resume`; ratio.",
    )
    kubeconfig: Path | None = Field(
        None, description="Client configuration for the API server; default: the pod's own service account."
    )


class LimitSettings(Section):
    """Limits on the changes of one cycle, rollbacks included."""

    most_workloads: Ratio = Field(
        0.2,
        description="Share of the workloads in this mode that one cycle may change, 5 at least, 500 at most; ratio.",
    )
    most_pods: Ratio = Field(
        0.2, description="Pods that one cycle may add, as a share of those there are, and ten at least; ratio."
    )
    most_growth: Annotated[float, Field(gt=0, le=10)] = Field(
        1.0,
        description="How far above its pods a workload may be raised in one cycle, as a share, and four at least; "
        "ratio.",
    )
    lower_after: Positive = Field(
        timedelta(minutes=5), description="A count falls to the highest recommendation within this time."
    )
    back_off: Positive = Field(
        timedelta(hours=1), description="How long an object is left alone whose field another writer changed."
    )
    roll_back: bool = Field(
        default=True, description="Whether a change is taken back after which its workload is worse off."
    )
    watch_for: Positive = Field(
        timedelta(minutes=10),
        description="How long readiness, restarts and errors of a workload are watched after its last change.",
    )
    worse_by: Ratio = Field(
        0.2,
        description="What counts as worse off: the share of its pods that do not serve, or have restarted, beyond "
        "those before; of errors above their limit, how far above what they were; ratio.",
    )
    rolled_back_for: Positive = Field(
        timedelta(hours=1),
        description="How long a workload is held after a roll back, twice as long each time again, a day at most.",
    )


class FloorSettings(LimitSettings):
    """Writes for workloads in mode floor, and their limits."""

    enabled: bool = Field(
        default=False, description="Whether HPAs are read and written. Needs the rights of deploy/components/floor."
    )
    expires_after: Positive = Field(
        timedelta(minutes=15),
        description="How long a floor lasts that is not renewed; then `forecaster release --expired` puts the owner's "
        "value back. It is renewed at half of it, which is also how far clocks may differ.",
    )
    held_for: Positive = Field(
        timedelta(hours=1), description="How long a floor is renewed while the demand of its workload is not known."
    )


class ScaleSettings(LimitSettings):
    """Writes for workloads in mode scale, and their limits."""

    enabled: bool = Field(
        default=False,
        description="Whether workloads without an HPA are scaled. Needs the rights of deploy/components/scale.",
    )
    most_shrink: Ratio = Field(
        0.5, description="Share of its pods that one cycle may take from a workload, and one at least; ratio."
    )


class ResizeSettings(Section):
    """Sizes of pods: of running ones in vertical mode in-place, of new ones in mode initial."""

    enabled: bool = Field(
        default=False,
        description="Whether running pods are resized. Needs the rights of deploy/components/vertical, and live facts.",
    )
    initial: bool = Field(
        default=False,
        description="Whether new pods are sized, of workloads whose vertical mode is initial. Needs "
        "deploy/components/initial beside that of resize.enabled.",
    )
    restarts: bool = Field(
        default=False,
        description="Whether containers are resized that their resizePolicy restarts for it, while all pods of the "
        "workload are ready.",
    )
    lower_memory: bool = Field(
        default=False,
        description="Whether memory is lowered in a running pod; the kernel may kill it if usage grows meanwhile.",
    )
    settle_for: Positive = Field(
        timedelta(minutes=2), description="From one pod of a workload to the next, and how soon it has to be ready."
    )
    watch_for: Positive = Field(
        timedelta(minutes=10), description="How long restarts and readiness of a pod are watched after its resize."
    )
    worse_by: Ratio = Field(
        0.2, description="How far errors that are above their limit have to be above what they were; ratio."
    )
    evict_after: Positive = Field(
        timedelta(minutes=30),
        description="With `vertical.evict`, how long a node may not grant a size until the pod is evicted.",
    )
    back_off: Positive = Field(
        timedelta(hours=6),
        description="How long a workload keeps its sizes after a pod was worse off, or resized by another client.",
    )
    most_workloads: Ratio = Field(
        0.1,
        description="Share of the workloads in this mode of which one cycle may resize a pod, 5 at least, 500 at most; "
        "ratio.",
    )
