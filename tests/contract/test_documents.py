"""Documents: links lead somewhere, settings and modules that are named exist, metrics and log events are explained."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from pydantic import BaseModel

from forecaster.app.telemetry import Metrics
from forecaster.config.settings import Settings
from forecaster.domain.decision import Reason
from forecaster.domain.policy import Policy
from forecaster.errors import OWN_PACKAGES
from forecaster.horizontal.clamps import CLAMPS
from forecaster.serving.metrics import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks" / "results").glob("*.md")],
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
PROSE = [page for page in PAGES if page.parent != ROOT / "benchmarks" / "results" and page.name != "CHANGELOG.md"]
NAMED_PATH = re.compile(r"`((?:forecaster|models|tests|deploy|benchmarks|notebooks|docs)/[\w/.-]*\w/?)`")
SHOWN = {"forecaster/sources/still.py", "benchmarks/bench/peers/yesterday.py"}
"""Files that pages show as examples of how to add one."""
FOUND_BY_README = {
    "where a query is built": "\ndef ",
    "where demand becomes a count": "\ndef decide(",
    "where a clamp lives, and its sentence": "\nCLAMPS = (",
    "where an HPA's answer comes from": "external.metrics.k8s.io",
    "a cycle on one screen": "\n    def run(",
}
"""Rows of the table "Where to find", and a text that the named file has to hold."""
METRIC = re.compile(r"[\"'](forecaster_[a-z_]+)[\"']")
EVENT = re.compile(r"(?:log\.(?:info|warning|error|exception|debug)|\.note)\(\s*\"([a-z_]+)\"")


@cache
def text_of(*path: str) -> str:
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


@cache
def sources() -> tuple[str, ...]:
    return tuple(file.read_text(encoding="utf-8") for file in (ROOT / "forecaster").rglob("*.py"))


@cache
def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as GitHub makes them."""
    heads = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken(page: Path) -> Iterator[str]:
    for target in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            yield target


def settings_paths(model: type[BaseModel] = Settings, before: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield before + name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from settings_paths(field.annotation, f"{before}{name}.")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert list(broken(page)) == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent == ROOT / "docs"], ids=lambda page: page.name)
def test_every_page_is_in_the_index(page: Path) -> None:
    assert page.name == "README.md" or f"({page.name})" in text_of("docs", "README.md")


@pytest.mark.parametrize("file", sorted((ROOT / "benchmarks" / "results").glob("*.md")), ids=lambda file: file.name)
def test_every_result_is_in_the_index(file: Path) -> None:
    assert file.name == "README.md" or f"({file.name})" in text_of("benchmarks", "results", "README.md")


def test_records_are_numbered_once_and_short() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [record.name[:4] for record in records]
    assert len(set(numbers)) == len(numbers)
    assert [record.name for record in records if len(record.read_text().splitlines()) > 40] == []


@pytest.mark.parametrize("page", ["configure.md", "decisions.md", "operations.md", "sizes.md"])
def test_every_setting_that_is_named_exists(page: str) -> None:
    known = set(settings_paths())
    sections = {path for path in known if "." not in path}
    named = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)(?:: [^`]*)?`", text_of("docs", page)))
    assert {path for path in named if path.split(".")[0] in sections} - known == set()


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_is_named_exists(page: Path) -> None:
    named = set(NAMED_PATH.findall(page.read_text(encoding="utf-8")))
    assert {path for path in named if not (ROOT / path).exists()} - SHOWN == set()


def test_every_clamp_is_described_in_its_order() -> None:
    described = text_of("docs", "decisions.md").partition("## Clamps")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([^`]+)` \|", described, re.MULTILINE) == [clamp.name for clamp in CLAMPS]


@pytest.mark.parametrize(("row", "defines"), FOUND_BY_README.items(), ids=FOUND_BY_README)
def test_the_readme_leads_a_stranger_to(row: str, defines: str) -> None:
    (path,) = re.findall(rf"^\| {row} \| \[[^]]+\]\(([^)]+)\)", text_of("README.md"), re.MULTILINE)
    assert defines in (ROOT / path).read_text(encoding="utf-8")


def test_pages_name_the_mode_that_is_the_default_and_the_one_of_the_start() -> None:
    base = yaml.safe_load((ROOT / "deploy" / "base" / "settings.yaml").read_text(encoding="utf-8"))
    assert f"by default: mode `{Policy().mode}`" in text_of("README.md")
    assert f"Its mode is `{base['policy']['mode']}`" in text_of("docs/start.md")


def test_every_metric_is_explained() -> None:
    explained = text_of("docs", "api.md") + text_of("docs", "operations.md") + text_of("docs", "nodes.md")
    in_code = {name for source in sources() for name in METRIC.findall(source)} - set(OWN_PACKAGES)
    types = [line.split()[2] for line in Metrics("0").text().splitlines() if line.startswith("# TYPE forecaster_")]
    collected = {name for name in types if not name.endswith("_created")}
    assert {name for name in in_code | collected | set(FAMILIES) if name not in explained} == set()


def test_every_event_of_the_log_has_a_remedy() -> None:
    page = text_of("docs", "operations.md")
    events = {event for source in sources() for event in EVENT.findall(source)}
    assert len(events) > 15
    assert {event for event in events if f"`{event}`" not in page} == set()


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_remedy(reason: Reason) -> None:
    assert f"`{reason}`" in text_of("docs", "operations.md")
