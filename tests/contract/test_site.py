"""The documents as a site: references made of schemas are whole, every page has its place, every link holds."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from forecaster.config.text import setting_rows
from forecaster.serving.metrics import FAMILIES

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / ".site" / "reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_setting_is_in_the_reference_with_default_and_meaning(reference: ModuleType) -> None:
    page = reference.settings_page()
    assert len(list(setting_rows())) > 100
    for row in setting_rows():
        assert f"| `{row.name}` |" in page
        assert not row.section or f"## {row.section}\n" in page
    assert "| `quantile` | `0.9` | " in page


def test_every_metric_is_in_the_reference(reference: ModuleType) -> None:
    page = reference.metrics_page()
    assert [name for name in FAMILIES if f"| `{name}` |" not in page] == []
    assert "| `forecaster_serving_table_age_seconds` | gauge | Age of the table that is served. |" in page
    assert "| `forecaster_cycles_total` | counter |" in page


def test_every_page_has_its_place_in_the_navigation() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    placed = {page for part in nav for pages in part.values() for each in pages for page in each.values()}
    written = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert written - placed == set(), "give it a place in mkdocs.yml"
    assert placed - written == {"settings.md", "metrics.md"}


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("no mkdocs: the development lock has it")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "policy.horizontal" in (tmp_path / "settings" / "index.html").read_text(encoding="utf-8")
    loaded = (tmp_path / "start" / "index.html").read_text(encoding="utf-8")
    assert 'src="http' not in loaded
