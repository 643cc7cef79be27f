"""A page that is one file: it loads nothing, prints, fits a phone, and follows the reader's light or dark."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecaster.report.printed import PrintedColumn

HERE = Path(__file__).parent


@cache
def style() -> str:
    """Return the style sheet of the page."""
    return (HERE / "page.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return the script, which shows the values under the pointer in a plot."""
    return (HERE / "page.js").read_text(encoding="utf-8")


def policy() -> str:
    """The page's own content security policy: this very script, and nothing from anywhere else."""
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def document(title: str, parts: Iterable[str]) -> str:
    """Return the page as one HTML file."""
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy()}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{style()}</style>"
    )
    body = f"<main>{''.join(parts)}</main><script>{script()}</script>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def table(columns: Sequence[PrintedColumn], *, total: bool = False) -> str:
    """Columns under their heads; a table that is too wide scrolls by itself. With `total` the last row is a sum."""
    kinds = ["" if column.right else ' class="text"' for column in columns]
    heads = zip(kinds, (escape(column.head) for column in columns), strict=True)
    head = "".join(f'<th scope="col"{kind}>{text}</th>' for kind, text in heads)
    rows = list(zip(*(column.cells for column in columns), strict=True))
    body = "".join(
        f"<tr{' class=all' if total and i == len(rows) - 1 else ''}>"
        + "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for i, row in enumerate(rows)
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def section(title: str, note: str, columns: Sequence[PrintedColumn], *, total: bool = True) -> list[str]:
    """Return a heading, a note about the table, and the table."""
    return [f"<h2>{escape(title)}</h2>", *([paragraph(note, "soft")] if note else []), table(columns, total=total)]


def items(lines: Iterable[str]) -> str:
    """Return an HTML list of lines."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def paragraph(text: str, kind: str = "") -> str:
    """Return an HTML paragraph."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"
