"""Refusals as JSON (RFC 9457): what is wrong with the request, and what to do about it."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request


class Problem(msgspec.Struct, frozen=True):
    """The body of every error."""

    status: int
    title: str
    detail: str
    remedy: str


class ProblemError(Exception):
    """Ends a request with this problem."""

    def __init__(self, status: HTTPStatus, detail: str, remedy: str) -> None:
        super().__init__(detail)
        self.problem = Problem(status, status.phrase, detail, remedy)


REMEDIES = {
    HTTPStatus.NOT_FOUND: "Ask /api/v1/recommendations for the list.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This interface is read-only: use GET.",
}


def answer_problem(_request: Request, error: Exception) -> Response:
    """The response for a `ProblemError`."""
    if not isinstance(error, ProblemError):
        raise error
    return problem_response(error.problem)


def answer_refusal(request: Request, error: Exception) -> Response:
    """The response for what the router refuses: unknown paths and verbs."""
    if not isinstance(error, HTTPException):
        raise error
    status = HTTPStatus(error.status_code)
    detail = f"{request.method} {request.url.path}: {status.phrase.lower()}"
    problem = Problem(status, status.phrase, detail, REMEDIES.get(status, ""))
    return problem_response(problem, error.headers)


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as an HTTP response."""
    body = msgspec.json.encode(problem)
    return Response(body, problem.status, headers, media_type="application/problem+json")
