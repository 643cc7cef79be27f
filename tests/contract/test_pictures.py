"""The pictures of the dashboard in the documents show the present program."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.browser.made_of import MADE_OF, WIDTHS, drawn_by

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
REMEDY = "`python -m tests.browser.pictures ADDRESS docs/pictures` takes them anew, of `forecaster demo --serve`"


def test_pictures_were_taken_of_what_draws_the_pages_now() -> None:
    assert json.loads((PICTURES / MADE_OF).read_text(encoding="utf-8")) == drawn_by(), REMEDY


def test_every_picture_of_a_page_was_taken_and_every_one_that_is_shown_is_there() -> None:
    pages = ("fleet", "workload", "what-if", "accuracy", "nodes", "health")
    taken = {f"{page}{suffix}-{theme}.png" for page in pages for suffix in WIDTHS for theme in ("light", "dark")}
    assert {file.name for file in PICTURES.glob("*.png")} == taken
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))]
    shown = {name for text in texts for name in re.findall(r"pictures/([\w.-]+)", text)}
    assert {name for name in shown if not (PICTURES / name).exists()} == set()
