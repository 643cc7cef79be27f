"""The dashboards for Grafana are what the table of panels makes, in the shape that Grafana documents."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.generate.grafana import BOARDS, GRID_COLUMNS, Board, document, files, text_of

DASHBOARDS = Path(__file__).parents[3] / "deploy" / "chart" / "dashboards"
UNITS = {
    "short",
    "percentunit",
    "s",
    "bytes",
    "reqps",
    "cps",
    "suffix: cores",
    "suffix: min",
    "suffix: pod-hours",
    "suffix: pods",
}
REQUIRED = {"uid", "title", "schemaVersion", "panels", "templating", "time", "tags"}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_the_shipped_file_is_up_to_date(board: Board) -> None:
    assert (DASHBOARDS / f"{board.uid}.json").read_text(encoding="utf-8") == text_of(board)


def test_every_file_is_made_and_no_other_is_shipped() -> None:
    assert set(files()) == set(DASHBOARDS.glob("*.json"))


def test_the_sidecar_finds_every_file() -> None:
    made = yaml.safe_load((DASHBOARDS / "kustomization.yaml").read_text(encoding="utf-8"))["configMapGenerator"]
    assert [config_map["files"] for config_map in made] == [[f"{board.uid}.json"] for board in BOARDS]
    assert {config_map["options"]["labels"]["grafana_dashboard"] for config_map in made} == {"1"}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
class TestShape:
    """Shape of Grafana's classic JSON model."""

    def test_what_grafana_asks_of_a_dashboard_is_there(self, board: Board) -> None:
        made = document(board)
        assert made.keys() >= REQUIRED
        first = made["templating"]["list"][0]
        assert (first["type"], first["query"]) == ("datasource", "prometheus")
        names = {variable["name"] for variable in made["templating"]["list"]} | {"__rate_interval", "__data"}
        assert set(re.findall(r"\$\{?(\w+)", json.dumps(made))) <= names

    def test_each_panel_has_a_unit_a_sentence_and_the_chosen_source(self, board: Board) -> None:
        for panel in document(board)["panels"]:
            assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
            assert panel["description"], panel["title"]
            sources = [panel["datasource"], *(query["datasource"] for query in panel["targets"])]
            assert {source["uid"] for source in sources} == {"${datasource}"}
            assert len({query["refId"] for query in panel["targets"]}) == len(panel["targets"]) > 0

    def test_panels_lie_on_the_grid_and_not_on_each_other(self, board: Board) -> None:
        made = document(board)["panels"]
        covered = [cell for panel in made for cell in cells(panel["gridPos"])]
        assert len(covered) == len(set(covered))
        assert max(x for x, _ in covered) < GRID_COLUMNS
        assert len({panel["id"] for panel in made}) == len(made)


def cells(place: dict[str, Any]) -> list[tuple[int, int]]:
    across, down = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
    return [(x, y) for x in across for y in down]


def test_demand_of_a_workload_is_drawn_in_the_unit_of_the_signal_that_is_chosen() -> None:
    made = json.loads((DASHBOARDS / "forecaster-workload.json").read_text(encoding="utf-8"))
    (panel,) = [each for each in made["panels"] if each["title"] == "Demand"]
    overrides = panel["fieldConfig"]["overrides"]
    units = {
        override["matcher"]["options"]: override["properties"][0]["value"]
        for override in overrides
        if override["matcher"]["id"] == "byFrameRefID"
    }
    drawn = {
        re.findall(r'"\$signal",signal(.*?)}', query["expr"])[0]: units.get(query["refId"])
        for query in panel["targets"]
    }
    assert drawn == {
        '="cpu"': "suffix: cores",
        '="memory"': "bytes",
        '="requests"': "reqps",
        '!~"cpu|memory|requests"': None,
    }


def test_the_table_of_the_fleet_leads_to_the_workload() -> None:
    tables = [panel for board in BOARDS for panel in document(board)["panels"] if panel["type"] == "table"]
    links = [link["url"] for panel in tables for link in panel["fieldConfig"]["defaults"]["links"]]
    assert links
    assert all(link.startswith("/d/forecaster-workload?") for link in links)
