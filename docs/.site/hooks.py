"""What the site adds to the pages: references made of schemas, and links that lead out of docs/.

With `FORECASTER_REPOSITORY`, the address of a repository's tree, links to files outside of docs/ lead there; without it
they are text.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
INFO = re.compile(r"^(```\w+) .+$", re.MULTILINE)
"""What a test reads behind the language of a block is nothing to a reader."""
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
sys.path[:0] = [str(ROOT), str(HERE)]

from reference import PAGES  # noqa: E402  beside this file


def on_files(files: Any, config: Any) -> Any:
    """Add the references."""
    for name, make in PAGES.items():
        files.append(File.generated(config, name, content=make()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links out of docs/ to the repository."""
    folder = (ROOT / "docs" / page.file.src_uri).parent

    def led(found: re.Match[str]) -> str:
        picture, text, target = found.groups()
        path, _, anchor = target.partition("#")
        file = (folder / path).resolve()
        outside = path and "://" not in target and (not file.is_relative_to(ROOT / "docs") or file.is_dir())
        if not outside:
            return found[0]
        if picture:
            return f"*{text}*"
        repository = os.environ.get("FORECASTER_REPOSITORY", "")
        inside = file.relative_to(ROOT).as_posix()
        return f"[{text}]({repository}/{inside}{'#' + anchor if anchor else ''})" if repository else text

    parts = FENCED.split(INFO.sub(r"\1", markdown))
    return "".join(part if part.startswith("```") else LINK.sub(led, part) for part in parts)
