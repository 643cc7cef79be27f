"""JSON Schemas of what commands print with `-o json`: made of the types that are encoded, so they cannot differ."""

from __future__ import annotations

from typing import Any

import msgspec

from forecaster.report.realised import OutcomeView
from forecaster.report.recommendations import ExplanationsDocument, RecommendationsDocument
from forecaster.report.replay_view import ComparisonView
from forecaster.report.week_view import WeekView

DIALECT = "https://json-schema.org/draft/2020-12/schema"


DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "explain": ExplanationsDocument,
    "once": RecommendationsDocument,
    "outcome": OutcomeView,
    "replay": ComparisonView,
    "report": WeekView,
}
"""By command."""


def schema_of(command: str) -> dict[str, Any]:
    """The JSON Schema of a command's document; raises KeyError for a command that has none."""
    return {"$schema": DIALECT, "title": f"forecaster {command} -o json", **msgspec.json.schema(DOCUMENTS[command])}
