"""The writing replica, and the pause of all writes: an annotation of the Lease, set by permitted users.

The right is `put` on the non-resource URL `/dashboard/pause`; access control reviews it like any other right, and on a
port without access control nothing can be paused. User and instant are written beside it and logged.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus

import msgspec
from starlette.requests import Request

from forecaster.kube.client import ApiError, AsyncApiClient
from forecaster.kube.lease import PAUSE_ANNOTATION, Lease, LeaseAnnotations, lease_path
from forecaster.kube.objects import NOT_READ, ObjectMeta
from forecaster.serving.audit import Audit
from forecaster.serving.rest import ProblemError, whole_body

PAUSED_BY = "forecaster.dev/paused-by"
"""Annotation of the Lease: which user paused or resumed last, and when."""
FROM_OUR_PAGE = "x-forecaster-request"
"""A header that a page of another origin cannot send: a browser that is logged in pauses nothing on its own."""
MAX_USER = 200


class WritingView(msgspec.Struct, frozen=True):
    """The replica that writes, and whether writing is paused."""

    lease: str = ""
    """Empty where nothing is written to a cluster."""
    holder: str = ""
    renewed_at: str = ""
    paused: bool = False
    paused_by: str = ""
    fault: str = ""


class PauseRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Request to pause writes, or to resume them."""

    paused: bool


class Writing:
    """The Lease by which one replica writes."""

    def __init__(self, api_server: AsyncApiClient, lease: str, audit: Audit, clock: Callable[[], datetime]) -> None:
        self._api_server, self._lease, self._audit, self._clock = api_server, lease, audit, clock
        self._path = lease_path(*lease.split("/"))

    async def view(self) -> WritingView:
        """Return the present state."""
        try:
            return self._view(await self._api_server.get(self._path, Lease))
        except ApiError as error:
            return WritingView(self._lease, fault=str(error))

    async def pause(self, user: str, *, paused: bool) -> WritingView:
        """Stop all writes, or let them go on. Raises ProblemError where the Lease cannot be written."""
        by = f"{user[:MAX_USER]} at {self._clock():%Y-%m-%dT%H:%M:%SZ}"
        try:
            current = await self._api_server.get(self._path, Lease)
            annotations = {PAUSE_ANNOTATION: "true" if paused else "false", PAUSED_BY: by}
            meta = ObjectMeta(resource_version=current.metadata.resource_version, annotations=annotations)
            after = await self._api_server.patch(self._path, LeaseAnnotations(meta), Lease)
        except ApiError as error:
            remedy = "Try again." if error.status == HTTPStatus.CONFLICT else "The account needs get and patch on it."
            raise ProblemError(HTTPStatus.BAD_GATEWAY, str(error), remedy) from error
        self._audit.note("writing_paused" if paused else "writing_resumed", lease=self._lease, by=by)
        return self._view(after)

    def _view(self, lease: Lease) -> WritingView:
        known = lease.metadata.annotations
        return WritingView(
            lease=self._lease,
            holder=lease.spec.holder_identity or "",
            renewed_at=lease.spec.renew_time or "",
            paused=known.get(PAUSE_ANNOTATION, "false") != "false",
            paused_by=known.get(PAUSED_BY, ""),
        )


async def pause_request(request: Request) -> tuple[str, bool]:
    """Return the requesting user, and whether to pause.

    Raises ProblemError: the request did not pass access control, is none of our pages', or no JSON of that form.
    """
    state = request.scope.get("state", {})
    if not (state.get("secure") and state.get("user")):
        remedy = "Use serving.secure; the right is `put` on the non-resource URL /dashboard/pause."
        raise ProblemError(HTTPStatus.FORBIDDEN, "nothing is paused without a user who may", remedy)
    if FROM_OUR_PAGE not in request.headers:
        raise ProblemError(HTTPStatus.BAD_REQUEST, f"the header {FROM_OUR_PAGE} is missing", "Send it with any value.")
    try:
        return state["user"], msgspec.json.decode(await whole_body(request.receive), type=PauseRequest).paused
    except NOT_READ as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, str(error), 'Send {"paused": true} or false.') from error
