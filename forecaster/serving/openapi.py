"""The OpenAPI document of /api/v1, made from the types that are answered."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from forecaster.domain.published import METRICS
from forecaster.serving.rest import LIST_PARAMETERS, TEXT, Problem, RecommendationPage, SingleRecommendation
from forecaster.serving.workloads import (
    MetricValueView,
    WorkloadAccuracy,
    WorkloadDecisions,
    WorkloadExplanation,
    WorkloadForecasts,
)

WORKLOAD = "/api/v1/namespaces/{namespace}/workloads/{kind}/{name}"
DOCUMENT_TYPES = (
    RecommendationPage,
    SingleRecommendation,
    WorkloadForecasts,
    WorkloadDecisions,
    WorkloadExplanation,
    WorkloadAccuracy,
    MetricValueView,
    Problem,
)
REFUSALS = {
    "400": "A parameter is unknown, repeated or out of range, or the request does not name exactly one thing.",
    "401": "No credentials that the cluster vouches for; on the secure port only, as a Kubernetes Status.",
    "403": "The user may not; on the secure port only, as a Kubernetes Status.",
    "404": "There is no such thing.",
    "405": "This interface is read-only.",
    "409": "Two kinds share the name.",
    "503": "It is not known now.",
}


def document(version: str) -> dict[str, Any]:
    """OpenAPI 3.1."""
    _, schemas = msgspec.json.schema_components(DOCUMENT_TYPES, ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "forecaster",
            "version": version,
            "description": "Recommendations, forecasts and why. Read-only.",
        },
        "paths": {path: {"get": operation} for path, operation in _operations().items()},
        "components": {"schemas": schemas},
    }


class OpenApi:
    """Serves the document, made once."""

    def __init__(self, version: str) -> None:
        self._body = msgspec.json.encode(document(version))

    async def answer(self, _request: Request) -> Response:
        """The document."""
        return Response(self._body, media_type="application/json")


def _operations() -> dict[str, dict[str, Any]]:
    listed = [_in_query(*parameter) for parameter in LIST_PARAMETERS.items()]
    single = [_in_path("namespace"), _in_path("name"), _in_query("kind", TEXT)]
    path = [_in_path("namespace"), _in_path("kind"), _in_path("name")]
    number = [*path, _in_path("metric", list(METRICS)), _in_query("signal", TEXT)]
    return {
        "/api/v1/recommendations": _operation("Recommendations, page by page", RecommendationPage, listed),
        "/api/v1/recommendations/{namespace}/{name}": _operation("One recommendation", SingleRecommendation, single),
        f"{WORKLOAD}/forecasts": _operation("Quantiles of every signal over the window ahead", WorkloadForecasts, path),
        f"{WORKLOAD}/decisions": _operation("The last changes of the recommended count", WorkloadDecisions, path),
        f"{WORKLOAD}/explanation": _operation("The recommendation in sentences", WorkloadExplanation, path),
        f"{WORKLOAD}/accuracy": _operation("How its forecasts turned out", WorkloadAccuracy, path),
        f"{WORKLOAD}/metrics/{{metric}}/forecast": _operation("One number as an HPA reads it", MetricValueView, number),
    }


def _operation(summary: str, answered: type[msgspec.Struct], parameters: list[dict[str, Any]]) -> dict[str, Any]:
    refusals = {status: _response(text, Problem, "application/problem+json") for status, text in REFUSALS.items()}
    return {
        "summary": summary,
        "operationId": answered.__name__,
        "parameters": parameters,
        "responses": {"200": _response(summary, answered, "application/json"), **refusals},
    }


def _response(text: str, answered: type[msgspec.Struct], media_type: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{answered.__name__}"}
    return {"description": text, "content": {media_type: {"schema": schema}}}


def _in_path(name: str, among: list[str] | None = None) -> dict[str, Any]:
    schema = {"type": "string", "enum": among} if among else {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema}
