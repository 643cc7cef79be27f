"""Dashboards as Grafana's classic JSON model has them (schema version 39, Grafana 10.4 and later, which migrate it).

Panels, units and queries are data: `dashboards.yaml`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from deploy.generate.kustomized import DEPLOY

DASHBOARDS = DEPLOY / "chart" / "dashboards"
SCHEMA_VERSION = 39
GRID_COLUMNS = 24
"""Columns of Grafana's grid."""
HEIGHTS = {"stat": 4, "timeseries": 8, "table": 9}
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
DATASOURCE = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}
TAG = "forecaster"
COLOURS = {"measured": "blue", "forecast": "orange", "ready": "blue", "recommended": "orange", "aim": "text"}
"""Colour of each legend: one meaning, one colour, as in our own dashboard."""


class GrafanaPanel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One panel: expressions by legend, in one unit of Grafana's; `about` says how to read it."""

    title: str
    unit: str
    queries: dict[str, str]
    about: str
    kind: str = "timeseries"
    width: int = 12
    stacked: bool = False
    by_signal: dict[str, str] = {}
    """Unit of each signal that has one of its own, where the reader of the panel chooses the signal."""


class Board(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One dashboard; `variables` are choices of the reader, each the values of a label."""

    uid: str
    title: str
    panels: tuple[GrafanaPanel, ...]
    variables: dict[str, str] = {}


BOARDS = msgspec.yaml.decode((Path(__file__).parent / "dashboards.yaml").read_bytes(), type=tuple[Board, ...])


def files() -> dict[Path, str]:
    """Return the shipped files and their texts."""
    return {DASHBOARDS / f"{board.uid}.json": text_of(board) for board in BOARDS}


def text_of(board: Board) -> str:
    """A dashboard as the file that ships."""
    return json.dumps(document(board), indent=1) + "\n"


def document(board: Board) -> dict[str, Any]:
    """The JSON of a dashboard."""
    return {
        "uid": board.uid,
        "title": board.title,
        "tags": [TAG],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "timezone": "utc",
        "links": [{"type": "dashboards", "title": TAG, "tags": [TAG], "keepTime": True, "asDropdown": False}],
        "templating": {"list": [DATASOURCE, *(_variable(*variable) for variable in board.variables.items())]},
        "annotations": {"list": []},
        "panels": [
            _panel(number, panel, place)
            for number, (panel, place) in enumerate(zip(board.panels, _places(board.panels), strict=True), 1)
        ],
    }


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": DATA_SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "hide": 0,
    }


def _places(panels: tuple[GrafanaPanel, ...]) -> list[dict[str, int]]:
    """Place panels from left to right; a row is as high as its highest panel."""
    places, x, y, high = [], 0, 0, 0
    for panel in panels:
        height = HEIGHTS[panel.kind]
        if x + panel.width > GRID_COLUMNS:
            x, y, high = 0, y + high, 0
        places.append({"x": x, "y": y, "w": panel.width, "h": height})
        x, high = x + panel.width, max(high, height)
    return places


def _panel(number: int, panel: GrafanaPanel, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": DATA_SOURCE,
        "gridPos": place,
        "targets": [_target(i, legend, expr, panel) for i, (legend, expr, _) in enumerate(queries_of(panel))],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": [*map(_coloured, _named(panel)), *_units(panel)]},
        "options": OPTIONS[panel.kind],
        "transformations": [WITHOUT_TIME] if _table(panel) else [],
    }


WITHOUT_TIME = {"id": "organize", "options": {"excludeByName": {"Time": True}}}


OPTIONS: dict[str, dict[str, Any]] = {
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none", "graphMode": "area"},
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "table": {"showHeader": True, "cellHeight": "sm"},
}


def _table(panel: GrafanaPanel) -> bool:
    return panel.kind == "table"


def queries_of(panel: GrafanaPanel) -> list[tuple[str, str, str]]:
    """Legend, expression and unit of each query; where units differ by signal, only the chosen one answers."""
    if not panel.by_signal:
        return [(legend, expr, panel.unit) for legend, expr in panel.queries.items()]
    chosen = {f'="{signal}"': unit for signal, unit in panel.by_signal.items()}
    chosen[f'!~"{"|".join(panel.by_signal)}"'] = panel.unit
    return [
        (legend, expr.replace(CHOSEN, f"{CHOSEN},signal{which}"), unit)
        for which, unit in chosen.items()
        for legend, expr in panel.queries.items()
    ]


CHOSEN = 'signal="$signal"'


def _ref(index: int) -> str:
    return chr(ord("A") + index)


def _units(panel: GrafanaPanel) -> list[dict[str, Any]]:
    return [
        {"matcher": {"id": "byFrameRefID", "options": _ref(index)}, "properties": [{"id": "unit", "value": unit}]}
        for index, (_, _, unit) in enumerate(queries_of(panel))
        if unit != panel.unit
    ]


def _target(index: int, legend: str, expr: str, panel: GrafanaPanel) -> dict[str, Any]:
    return {
        "refId": _ref(index),
        "datasource": DATA_SOURCE,
        "expr": expr,
        "legendFormat": legend,
        "instant": _table(panel),
        "range": not _table(panel),
        "format": "table" if _table(panel) else "time_series",
    }


def _defaults(panel: GrafanaPanel) -> dict[str, Any]:
    drawn: dict[str, Any] = {"lineWidth": 1, "fillOpacity": 30 if panel.stacked else 0, "showPoints": "never"}
    if panel.stacked:
        drawn["stacking"] = {"mode": "normal", "group": "A"}
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.kind == "timeseries":
        defaults |= {"min": 0, "custom": drawn}
    if _table(panel):
        defaults["links"] = [{"title": "Workload", "url": LINK}]
    return defaults


LINK = "/d/forecaster-workload?var-namespace=${__data.fields.namespace}&var-workload=${__data.fields.workload}"


def _named(panel: GrafanaPanel) -> list[str]:
    return [legend for legend in panel.queries if legend in COLOURS]


def _coloured(legend: str) -> dict[str, Any]:
    colour = {"mode": "fixed", "fixedColor": COLOURS[legend]}
    return {"matcher": {"id": "byName", "options": legend}, "properties": [{"id": "color", "value": colour}]}
