"""/admit/pods: answers the API server before it creates a pod (AdmissionReview v1), with a size patch or none.

A pod is never refused: without a known size the answer is `allowed` without a patch. Nothing is written for an answer,
so that a dry run has no side effects; the change is visible on the pod and in the API server's audit log.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from http import HTTPStatus
from typing import Any

import msgspec

from forecaster.actuators.resize.initial import AdmissionOutcome, AdmittedPod, admitted_pod
from forecaster.actuators.resize.pods import resources_block
from forecaster.kube.objects import NOT_READ, Wire
from forecaster.publish.new_pods import NewPodsFile
from forecaster.serving.reply import HttpReply, failure, success
from forecaster.vertical.admission.context import WHOLE_POD
from forecaster.vertical.cluster_rules.pod import Requirements

Document = dict[str, Any]
PATH = "/admit/pods"
REST_SHARE = 3.0
"""Times the CPU of a review that its thread rests after it: endless requests get a quarter of the process."""
NAMESPACE_SHARE, CREDIT_SECONDS = 0.01, 200.0
"""Share of a processor that reviews of one namespace take in the long run, and for how many seconds of that they may
be ahead: 2 s of a processor at once, which a rollout of 2,000 pods takes."""
SHARE_TAKEN_WAIT = 0.5
"""Seconds until a namespace that has had its share is answered, without a size: at once, it would ask at once again."""
MAX_NAMESPACES = 10_000
"""Namespaces whose share is counted; where there are more, those that are not ahead are forgotten."""
NAMESPACE_NAME_MAX = 63
"""Characters of the longest name of a namespace."""
AMOUNTS = ("cpu", "memory")
MAX_WAITING = 64
"""Reviews that wait at a time, each for a few milliseconds; one more is answered at once, without a size."""


class PatchOperation(msgspec.Struct, frozen=True):
    """RFC 6902, section 4.1: `add` replaces an existing value.

    The API server refuses the pod for a patch that it cannot apply, whatever the failure policy: paths are those of the
    very object that was sent.
    """

    path: str
    value: Any
    op: str = "add"


class AdmissionRequest(Wire, frozen=True):
    """Fields of an admission request that are read."""

    uid: str
    namespace: str = ""
    operation: str = ""
    dry_run: bool = False
    object: Document | None = None


class AdmissionResponse(msgspec.Struct, frozen=True, rename="camel"):
    """Always allowed."""

    uid: str
    allowed: bool = True
    patch: bytes | None = None
    patch_type: str | None = None
    audit_annotations: dict[str, str] = {}


class AdmissionReview(Wire, frozen=True):
    """admission.k8s.io/v1, as it comes."""

    request: AdmissionRequest


class ReviewNamespace(Wire, frozen=True):
    """The namespace of a review, read without its pod: it is known before a thread is taken, in 1 to 110 µs."""

    class _Request(Wire, frozen=True):
        namespace: str = ""

    request: _Request


class AnsweredReview(msgspec.Struct, frozen=True, rename="camel"):
    """Review as it is sent back."""

    response: AdmissionResponse
    api_version: str = "admission.k8s.io/v1"
    kind: str = "AdmissionReview"


class NewPodAdmission:
    """Answers by the file of the latest cycle, as every replica does that has it."""

    def __init__(self, file: NewPodsFile, clock: Callable[[], datetime], credit: float = CREDIT_SECONDS) -> None:
        self._file, self._clock, self._credit = file, clock, credit
        self._worker = ThreadPoolExecutor(1, "new-pods")
        self._waiting, self._rests_until, self._paid = 0, 0.0, dict[str, float]()
        self.outcomes: Counter[str] = Counter()
        """Pods by what became of them; dry runs are left out."""

    async def answered(self, method: str, body: bytes) -> HttpReply:
        """The answer to one review, from a thread beside that of the metrics; at most `MAX_WAITING` wait for it."""
        namespace = _namespace(body)
        if self._paid.get(namespace, 0.0) - time.monotonic() > self._credit:
            await asyncio.sleep(SHARE_TAKEN_WAIT)
            return self._busy(f"reviews of {namespace} take more than {NAMESPACE_SHARE:.0%} of a processor")
        if self._waiting >= MAX_WAITING:
            return self._busy(f"{MAX_WAITING} pods wait already")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, self._answer, namespace, method, body)
        finally:
            self._waiting -= 1

    def _busy(self, why: str) -> HttpReply:
        self.outcomes[AdmissionOutcome.BUSY] += 1
        return failure(HTTPStatus.SERVICE_UNAVAILABLE, f"{why}; made as it is")

    def _answer(self, namespace: str, method: str, body: bytes) -> HttpReply:
        time.sleep(max(0.0, self._rests_until - time.monotonic()))
        began = time.thread_time()
        reply = self.answer(method, body)
        used, now = time.thread_time() - began, time.monotonic()
        self._rests_until = now + REST_SHARE * used
        if len(self._paid) >= MAX_NAMESPACES:
            self._paid = {name: until for name, until in self._paid.items() if until > now}
        self._paid[namespace] = max(self._paid.get(namespace, 0.0), now) + used / NAMESPACE_SHARE
        return reply

    def answer(self, method: str, body: bytes) -> HttpReply:
        """Answer one review; anything else is refused, which leaves the pod as it is."""
        if method != "POST":
            return failure(HTTPStatus.METHOD_NOT_ALLOWED, f"{PATH} takes POST")
        try:
            request = msgspec.json.decode(body, type=AdmissionReview).request
        except NOT_READ as error:
            return failure(HTTPStatus.BAD_REQUEST, f"not an AdmissionReview of admission.k8s.io/v1: {error}")
        try:
            admitted = self._admitted(request)
            response = _response(request, admitted)
        except Exception as error:  # noqa: BLE001  the boundary of a review: whatever fails, the pod is made
            admitted = AdmittedPod(AdmissionOutcome.UNREADABLE, f"{type(error).__name__}: {error}")
            response = _response(request, admitted)
        if not request.dry_run:
            self.outcomes[admitted.outcome] += 1
        return success(AnsweredReview(response))

    def _admitted(self, request: AdmissionRequest) -> AdmittedPod:
        if request.object is None or request.operation != "CREATE":
            return AdmittedPod(AdmissionOutcome.UNREADABLE, "no pod that is made")
        if self._file.paused:
            return AdmittedPod(AdmissionOutcome.PAUSED, "writing is paused")
        return admitted_pod(request.object, request.namespace, self._file.latest(), self._clock())


def _namespace(body: bytes) -> str:
    """The namespace of a review; empty where it has none, or a name that no namespace can have: shares are kept."""
    try:
        namespace = msgspec.json.decode(body, type=ReviewNamespace).request.namespace
        return namespace if len(namespace) <= NAMESPACE_NAME_MAX else ""
    except NOT_READ:
        return ""


def _response(request: AdmissionRequest, admitted: AdmittedPod) -> AdmissionResponse:
    offered = admitted.outcome is not AdmissionOutcome.NOT_OFFERED
    annotations = {"size": f"{admitted.outcome}: {admitted.why}"} if offered else {}
    if admitted.outcome is not AdmissionOutcome.SIZED or request.object is None:
        return AdmissionResponse(request.uid, audit_annotations=annotations)
    patch = msgspec.json.encode(list(json_patch(request.object, admitted)))
    return AdmissionResponse(request.uid, patch=patch, patch_type="JSONPatch", audit_annotations=annotations)


def json_patch(document: Document, admitted: AdmittedPod) -> Iterator[PatchOperation]:
    """Yield the requests and limits of changed containers, and our own marks; no other field of the pod."""
    if whole := admitted.sizes.get(WHOLE_POD):
        yield PatchOperation("/spec/resources", _resources(document["spec"].get("resources") or {}, whole))
    for kind in ("containers", "initContainers"):
        for number, container in enumerate(document["spec"].get(kind) or ()):
            if size := admitted.sizes.get(container["name"]):
                block = _resources(container.get("resources") or {}, size)
                yield PatchOperation(f"/spec/{kind}/{number}/resources", block)
    meta = document.get("metadata") or {}
    for name, marks in (("labels", admitted.labels), ("annotations", admitted.annotations)):
        yield from _marked(f"/metadata/{name}", meta.get(name), marks)


def _resources(present: Document, size: Requirements) -> Document:
    """The block with this CPU and memory; other resources and claims stay."""
    block = resources_block(size)
    amounts = {
        kind: {name: amount for name, amount in (present.get(kind) or {}).items() if name not in AMOUNTS} | block[kind]
        for kind in ("requests", "limits")
    }
    return present | {kind: values for kind, values in amounts.items() if values or kind in present}


def _marked(path: str, present: Mapping[str, str] | None, marks: Mapping[str, str]) -> Iterator[PatchOperation]:
    if not present:
        yield PatchOperation(path, dict(marks))
        return
    for name, value in marks.items():
        yield PatchOperation(f"{path}/{name.replace('~', '~0').replace('/', '~1')}", value)
