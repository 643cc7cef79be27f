"""Files of vectors: JSON, packed or not."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def load(path: Path) -> dict[str, Any]:
    """Read the document; a file without cases, such as an index, is skipped aloud."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    document: dict[str, Any] = json.loads(text)
    if "cases" not in document:
        pytest.skip(f"{path} is no file of vectors: it has no cases")
    return document
