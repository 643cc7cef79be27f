"""The form of what `forecaster recommend -o json` prints: cores, whole bytes, money of the prices that were given."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Amounts(TypedDict):
    """Requests and limits of one pod; null where none is set."""

    cpu_request_cores: float | None
    cpu_limit_cores: float | None
    memory_request_bytes: int | None
    memory_limit_bytes: int | None


class SizedView(TypedDict):
    """`resources` of a container as a manifest spells them."""

    requests: dict[str, str]
    limits: dict[str, str]


class RiskDocument(TypedDict):
    """Risk of a size: CPU as shares of time, memory as probability; slack in core-hours or byte-hours."""

    over_request: float | None
    over_limit: float | None
    slack_hours: float


class ContainerRisk(TypedDict):
    """One container, or the pod as a whole where its name is null."""

    container: str | None
    recommended: Amounts | None
    cpu: RiskDocument | None
    memory: RiskDocument | None
    message: str


class HpaTarget(TypedDict):
    """A utilization target with which the HPA acts at the same load per pod as before; `value` is a ratio."""

    metric: str
    type: str
    value: float
    container: str
    signal: str


class FindingDocument(TypedDict):
    """What one rule of the cluster says."""

    rule: str
    verdict: str
    message: str


class QosChange(TypedDict):
    """The class of a pod before and after."""

    now: str
    recommended: str


class FreeReplicas(TypedDict):
    """Pods that fit on the nodes there are, pods that wait, and nodes that they wait for; null where not known."""

    fit_now: int
    wait: int
    new_nodes: int | None


class Admission(TypedDict):
    """Whether the cluster takes the size; null where that cannot be known, and `why` says why."""

    accepted: bool | None
    why: str
    findings: list[FindingDocument]
    qos: NotRequired[QosChange]
    replicas: NotRequired[FreeReplicas | None]


class MonthlyCost(TypedDict):
    """Monthly cost of all pods; null where an amount is not known."""

    now: float | None
    recommended: float | None


class SizePlanDocument(TypedDict):
    """Pods at the peak and at the least, the requests of one, and the cost of the coming day."""

    replicas: int
    least_replicas: int
    cpu_request_cores: float
    memory_request_bytes: int
    cost: float


class JointDocument(TypedDict):
    """Count and size chosen together; null where there is none, and `reason` says why."""

    now: SizePlanDocument | None
    plan: SizePlanDocument | None
    hpa_utilization_ratio: float | None
    scale_point_now_cores: float | None
    scale_point_cores: float | None
    accepted: bool | None
    reason: str


class Requests(TypedDict):
    """Requests of one container; null where unknown."""

    cpu_request_cores: float | None
    memory_request_bytes: int | None


class VpaContainerDocument(TypedDict):
    """What a VPA recommends for one container."""

    container: str
    target: Requests
    lower_bound: Requests
    upper_bound: Requests


class VpaDocument(TypedDict):
    """A VPA of the cluster; without a recommendation it has no containers, and the message is what it says of that."""

    name: str
    update_mode: str
    containers: list[VpaContainerDocument]
    message: str


class AdviceDocument(TypedDict):
    """One workload. What is not known is null, and a text beside it says why."""

    namespace: str
    kind: str
    name: str
    replicas: int
    severity: str
    reason: str
    message: str
    now: Amounts | None
    recommended: Amounts | None
    containers: dict[str, SizedView] | None
    risks: list[ContainerRisk]
    hpa_targets: list[HpaTarget]
    admission: Admission
    cost_a_month: MonthlyCost | None
    others: dict[str, Amounts | None]
    vpas: list[VpaDocument]
    previous: Amounts | None
    joint: NotRequired[JointDocument | None]


class Sum(TypedDict):
    """Sum over all pods; an addition is no negative saving."""

    now: float
    recommended: float
    freed: float
    added: float


class Bytes(TypedDict):
    """An amount now and as recommended, in whole bytes."""

    now: int
    recommended: int
    freed: int
    added: int


class Totals(TypedDict):
    """Totals of workloads with known present and recommended sizes; no cost where no price was given."""

    workloads: int
    with_a_recommendation: int
    cpu_request_cores: Sum
    memory_request_bytes: Bytes
    cost_a_month: Sum | None


class AdvicesDocument(TypedDict):
    """All workloads that were chosen."""

    recommendations: list[AdviceDocument]
    totals: Totals
