"""Terminal output as a picture for the README, without fonts from elsewhere.

COLUMNS=132 forecaster demo | sed -n '/^WORKLOAD/,$p' | python benchmarks/picture.py docs/demo.svg
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

WIDTH = 132
NO_BREAK = "\u00a0"


def local_fonts(template: str) -> str:
    """The template without its `@font-face` rules: the reader's own monospaced font will do."""
    head, _, rest = template.partition("@font-face")
    while "@font-face" in rest:
        rest = rest.partition("@font-face")[2]
    return head + rest.partition("}}")[2]


def main(path: Path) -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    for line in sys.stdin:
        console.print(Text.from_ansi(line.rstrip("\n").replace(" ", NO_BREAK)), no_wrap=True, crop=True)
    svg = console.export_svg(title="forecaster demo", code_format=local_fonts(CONSOLE_SVG_FORMAT))
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
