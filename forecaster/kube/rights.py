"""Rights of our accounts by the mode that needs them, for roles and `doctor`; reviews of users and their rights.

`python -m deploy.generate` writes the roles of deploy/. tests/cluster/test_rights.py compares the table with the
requests that the audit log of a real API server has of us, and takes each right away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from forecaster.kube.client import ApiClient, AsyncApiClient
from forecaster.kube.objects import Wire

NAMESPACE = "forecaster"
SERVICE, RELEASE, CERTIFICATES = "forecaster", "forecaster-release", "forecaster-certificates"
STATE = "forecaster-state"
"""Secret with the state that a new pod needs from the one before it."""
OWNED_API_SERVICES = (
    "v1beta1.external.metrics.k8s.io",
    "v1beta2.custom.metrics.k8s.io",
    "v1beta1.metrics.forecaster.dev",
)
WEBHOOK = "forecaster-initial"
REVIEW = "SelfSubjectAccessReview"
SELF_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""Path for a review of one's own rights, which every account may ask for."""


class Right(NamedTuple):
    """Verbs on a resource that an account needs in a mode."""

    account: str
    mode: str
    """observe, publish, state, floor, ... of the service; each needs observe and publish, too."""
    group: str
    resource: str
    verbs: tuple[str, ...]
    needed_for: str
    """Function that is unavailable without it."""
    names: tuple[str, ...] = ()
    """Names of the objects; none means all of them."""
    namespace: str = ""
    """Namespace of the right; empty means all namespaces."""
    through: str = ""
    """A role of Kubernetes itself that grants it; none: a role of ours."""


RIGHTS = (
    Right(
        SERVICE, "observe", "autoscaling", "horizontalpodautoscalers", ("list", "watch"),
        "HPAs are as old as those of kube-state-metrics",
    ),
    *(
        Right(
            SERVICE, "observe", "apps", resource, ("list", "watch"),
            "counts and owners are as old as those of kube-state-metrics",
        )
        for resource in ("deployments", "statefulsets", "replicasets")
    ),
    Right(
        SERVICE, "observe", "", "pods", ("list", "watch"),
        "requests of pods are as old as those of kube-state-metrics",
    ),
    Right(SERVICE, "observe", "", "nodes", ("list", "watch"), "it is not known on which node pools pods start slowly"),
    Right(
        SERVICE, "observe", "", "namespaces", ("get",),
        "another cluster is known by kube-system's creation alone", names=("kube-system",),
    ),
    Right(
        SERVICE, "state", "", "secrets", ("get", "patch"),
        "a new pod has neither key nor checkpoint: gates are judged anew", names=(STATE,), namespace=NAMESPACE,
    ),
    Right(
        SERVICE, "publish", "authentication.k8s.io", "tokenreviews", ("create",),
        "tokens of callers are refused", through="system:auth-delegator",
    ),
    Right(
        SERVICE, "publish", "authorization.k8s.io", "subjectaccessreviews", ("create",),
        "callers are refused", through="system:auth-delegator",
    ),
    Right(
        SERVICE, "publish", "", "configmaps", ("get",),
        "the API server is not known by its certificate: HPAs read nothing",
        names=("extension-apiserver-authentication",), namespace="kube-system",
        through="extension-apiserver-authentication-reader",
    ),
    Right(
        SERVICE, "publish", "apiregistration.k8s.io", "apiservices", ("get",),
        "a metrics API that another server has is not noticed", names=OWNED_API_SERVICES,
    ),
    Right(
        SERVICE, "replicas", "coordination.k8s.io", "leases", ("get", "patch"),
        "no replica computes", names=(SERVICE,), namespace=NAMESPACE,
    ),
    *(
        Right(
            SERVICE, mode, "coordination.k8s.io", "leases", ("get", "patch"),
            "no replica writes", names=(SERVICE,), namespace=NAMESPACE,
        )
        for mode in ("floor", "scale", "resources", "vertical")
    ),
    Right(
        SERVICE, "floor", "autoscaling", "horizontalpodautoscalers", ("get", "list", "patch"),
        "no minReplicas is raised or put back",
    ),
    Right(SERVICE, "floor", "", "events", ("create",), "changes leave no Event beside the HPA"),
    Right(SERVICE, "floor", "keda.sh", "scaledobjects", ("list", "watch"), "paused ScaledObjects are not named"),
    *(
        Right(SERVICE, mode, "", resource, ("list", "watch"), "counts are raised beyond what quotas leave room for")
        for mode in ("floor", "scale")
        for resource in ("limitranges", "resourcequotas")
    ),
    Right(
        RELEASE, "floor", "autoscaling", "horizontalpodautoscalers", ("get", "list", "patch"),
        "floors that were not renewed do not end",
    ),
    Right(
        RELEASE, "floor", "coordination.k8s.io", "leases", ("get",),
        "floors that were not renewed do not end: it is not known whether writes are paused",
        names=(SERVICE,), namespace=NAMESPACE,
    ),
    Right(RELEASE, "floor", "", "events", ("create",), "floors that end leave no Event beside the HPA"),
    *(
        Right(SERVICE, "scale", "apps", resource, ("get", "patch"), "no owner's count is stored, so none is changed")
        for resource in ("deployments", "statefulsets")
    ),
    *(
        Right(SERVICE, "scale", "apps", f"{resource}/scale", ("patch",), "no count is changed or put back")
        for resource in ("deployments", "statefulsets")
    ),
    Right(SERVICE, "scale", "", "events", ("create",), "changes leave no Event beside the workload"),
    Right(
        SERVICE, "scale", "keda.sh", "scaledobjects", ("list", "watch"),
        "it is not known what KEDA scales, so no count changes where KEDA is installed",
    ),
    Right(
        SERVICE, "scale", "autoscaling.k8s.io", "verticalpodautoscalers", ("list", "watch"),
        "it is not known what a VPA sizes, so no count changes where VPAs are installed",
    ),
    *(
        Right(
            SERVICE, "resources", "autoscaling.forecaster.dev", resource, ("list", "watch"),
            "objects of the cluster state no policies",
        )
        for resource in ("predictiveautoscalers", "predictivepolicies")
    ),
    Right(
        SERVICE, "resources", "autoscaling.forecaster.dev", "predictiveautoscalers/status", ("patch",),
        "PredictiveAutoscalers have no status",
    ),
    Right(
        SERVICE, "resources", "autoscaling.forecaster.dev", "predictivepolicies/status", ("patch",),
        "PredictivePolicies have no status",
    ),
    Right(SERVICE, "resources", "", "events", ("create",), "changes leave no Event beside the objects"),
    Right(SERVICE, "vertical", "", "pods", ("get", "patch"), "no pod's own size is stored, so none is changed"),
    Right(SERVICE, "vertical", "", "pods/resize", ("patch",), "no running pod is resized or gets its size back"),
    *(
        Right(
            SERVICE, "vertical", "", resource, ("list", "watch"),
            "it is not known which sizes are admitted, so none changes",
        )
        for resource in ("limitranges", "resourcequotas")
    ),
    Right(
        SERVICE, "vertical", "autoscaling.k8s.io", "verticalpodautoscalers", ("list", "watch"),
        "it is not known what a VPA sizes, so no pod is resized where VPAs are installed",
    ),
    Right(SERVICE, "vertical", "", "events", ("create",), "changes leave no Event beside the pod"),
    Right(SERVICE, "initial", "", "pods/eviction", ("create",), "no pod is evicted whose node does not grant its size"),
    Right(
        SERVICE, "initial", "", "nodes", ("list", "watch"),
        "it is not known which sizes nodes have room for, so new pods keep their own",
    ),
    Right(
        CERTIFICATES, "publish", "", "secrets", ("get", "patch"),
        "there is no serving certificate", names=(CERTIFICATES,), namespace=NAMESPACE,
    ),
    Right(
        CERTIFICATES, "publish", "apiregistration.k8s.io", "apiservices", ("get", "patch"),
        "the API server does not trust the certificate", names=OWNED_API_SERVICES,
    ),
    Right(
        CERTIFICATES, "publish", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", ("get", "patch"),
        "the API server does not ask about new pods", names=(WEBHOOK,),
    ),
)  # fmt: skip


class MissingRight(NamedTuple):
    """A verb that an account may not use."""

    right: Right
    verb: str

    def __str__(self) -> str:
        named = f" {' or '.join(self.right.names)}" if self.right.names else ""
        where = f" in {self.right.namespace}" if self.right.namespace else ""
        resource = f"{self.right.resource}.{self.right.group}".rstrip(".")
        return f"{self.verb} {resource}{named}{where} is not allowed: {self.right.needed_for}"


def rights_of(account: str, modes: Sequence[str], *, namespace: str = NAMESPACE) -> tuple[Right, ...]:
    """Return the rights that an account needs in these modes, where our own objects are in that namespace."""
    rights = (right for right in RIGHTS if right.account == account and right.mode in modes)
    return tuple(right._replace(namespace=namespace) if right.namespace == NAMESPACE else right for right in rights)


def missing(client: ApiClient, rights: Sequence[Right]) -> list[MissingRight]:
    """Return the rights that the client's own account lacks. Raises ApiError."""
    return [MissingRight(right, verb) for right in rights for verb in right.verbs if not _has(client, right, verb)]


def _has(client: ApiClient, right: Right, verb: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    for name in right.names or ("",):
        attributes = ResourceAttributes(verb, right.group, "*", resource, right.namespace, subresource, name)
        review = {"apiVersion": AUTHORIZATION, "kind": REVIEW, "spec": {"resourceAttributes": attributes}}
        if not client.create(SELF_REVIEWS, review, ReviewAnswer).status.allowed:
            return False
    return True


TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105  a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
AUTHORIZATION = "authorization.k8s.io/v1"
AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"


class User(NamedTuple):
    """An identity as the cluster knows it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class UserInfo(Wire, frozen=True):
    """The user of a token."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class ReviewStatus(Wire, frozen=True):
    """Whether the token is valid, and its user; or whether access is allowed, where no opinion counts as no."""

    authenticated: bool = False
    user: UserInfo = UserInfo()
    allowed: bool = False


class ReviewAnswer(Wire, frozen=True):
    """The answer to a review of a token or of access."""

    status: ReviewStatus


class ResourceAttributes(Wire, frozen=True):
    """A verb on a resource."""

    verb: str
    group: str
    version: str
    resource: str
    namespace: str = ""
    subresource: str = ""
    name: str = ""


class NonResourceAttributes(Wire, frozen=True):
    """A verb on a path."""

    verb: str
    path: str


async def token_user(reviewer: AsyncApiClient, token: str) -> User | None:
    """The user of a token; None for a token that is not valid. Raises ApiError."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = (await reviewer.create(TOKEN_REVIEWS, review, ReviewAnswer)).status
    info = status.user
    if not status.authenticated or not info.username:
        return None
    return authenticated(User(info.username, info.uid, info.groups, tuple(info.extra.items())))


async def is_allowed(reviewer: AsyncApiClient, user: User, right: ResourceAttributes | NonResourceAttributes) -> bool:
    """Whether a user has a right. Raises ApiError."""
    attributes = "resourceAttributes" if isinstance(right, ResourceAttributes) else "nonResourceAttributes"
    spec = {"user": user.name, "groups": user.groups, "uid": user.uid, "extra": dict(user.extra), attributes: right}
    review = {"apiVersion": AUTHORIZATION, "kind": "SubjectAccessReview", "spec": spec}
    return (await reviewer.create(ACCESS_REVIEWS, review, ReviewAnswer)).status.allowed


def authenticated(user: User) -> User:
    """The user as a member of `system:authenticated`. Requests of the aggregator itself come without any group."""
    return user if AUTHENTICATED in user.groups else user._replace(groups=(*user.groups, AUTHENTICATED))
