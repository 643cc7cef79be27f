"""What goes back: a status, a body, and for errors the `Status` object that every Kubernetes client understands."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

JSON_TYPE = b"application/json"
STATUS_REASONS = {
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "NotFound",
    HTTPStatus.METHOD_NOT_ALLOWED: "MethodNotAllowed",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "RequestEntityTooLarge",
    HTTPStatus.REQUEST_URI_TOO_LONG: "RequestURITooLong",
    HTTPStatus.TOO_MANY_REQUESTS: "TooManyRequests",
    HTTPStatus.INTERNAL_SERVER_ERROR: "InternalError",
    HTTPStatus.BAD_GATEWAY: "InternalError",
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailable",
    HTTPStatus.GATEWAY_TIMEOUT: "Timeout",
}


class HttpReply(msgspec.Struct, frozen=True, gc=False):
    """One HTTP answer, without the transport. Thousands are kept: the garbage collector need not look at them."""

    status: int
    body: bytes
    content_type: bytes = JSON_TYPE
    headers: tuple[tuple[bytes, bytes], ...] = ()


class RefusalStatus(msgspec.Struct, frozen=True, rename="camel"):
    """meta.k8s.io/v1 Status of a refusal."""

    message: str
    reason: str
    code: int
    kind: str = "Status"
    api_version: str = "v1"
    metadata: dict[str, str] = {}
    status: str = "Failure"


def failure(status: HTTPStatus, message: str) -> HttpReply:
    """A refusal. The message reaches conditions and events that tenants read: nothing of the inside belongs in it.

    There is never a Retry-After: clients of the Go library would sleep on it within one sync of an HPA.
    """
    return HttpReply(status, msgspec.json.encode(RefusalStatus(message, STATUS_REASONS.get(status, "Unknown"), status)))


def success(value: msgspec.Struct) -> HttpReply:
    """An object that was asked for."""
    return HttpReply(HTTPStatus.OK, msgspec.json.encode(value))
