"""Digests of the files that draw the pages of the dashboard: pictures carry them, and are compared with the program.

They show at once, and without a browser, that pictures are of an older program; `test_docs_pictures` compares them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

STATIC = Path(__file__).parents[2] / "forecaster" / "serving" / "static"
MADE_OF = "made-of.json"
WIDTHS = {"": 1440, "-tablet": 900, "-phone": 390}


def drawn_by() -> dict[str, str]:
    """Digests of the scripts, the style sheet and the page, by name."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in sorted(STATIC.iterdir())}
