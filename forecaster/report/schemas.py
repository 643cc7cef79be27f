"""JSON Schemas of what commands print with `-o json`: made of the types that are encoded, so they cannot differ."""

from __future__ import annotations

from typing import Any

import msgspec

from forecaster.cycle.node_document import NodesView
from forecaster.report.advice_document import AdvicesDocument
from forecaster.report.catalogue import ModelsView, SettingsView
from forecaster.report.checks import ChecksView
from forecaster.report.comparison_view import ComparisonView
from forecaster.report.decided import DiffView, HistoryView
from forecaster.report.demo import DemoView
from forecaster.report.moved import MovedView
from forecaster.report.passes import SimulationView
from forecaster.report.recommendations import ExplanationsDocument, RecommendationsDocument
from forecaster.report.sizes_backtest import SizesBacktestView
from forecaster.report.tuned import TuningView
from forecaster.report.week import WeekView

DIALECT = "https://json-schema.org/draft/2020-12/schema"


DOCUMENTS: dict[str, type] = {
    "backtest vertical": SizesBacktestView,
    "demo": DemoView,
    "diff": DiffView,
    "doctor": ChecksView,
    "explain": ExplanationsDocument,
    "history": HistoryView,
    "hpa simulate": SimulationView,
    "models": ModelsView,
    "nodes": NodesView,
    "once": RecommendationsDocument,
    "outcome": ComparisonView,
    "recommend": AdvicesDocument,
    "replay": ComparisonView,
    "report": WeekView,
    "settings": SettingsView,
    "store move": MovedView,
    "tune": TuningView,
}
"""Type of each command's document."""


def schema_of(command: str) -> dict[str, Any]:
    """The JSON Schema of a command's document; raises KeyError for a command that has none."""
    return {"$schema": DIALECT, "title": f"forecaster {command} -o json", **msgspec.json.schema(DOCUMENTS[command])}
