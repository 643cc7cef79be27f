"""Standard output, for people and for machines: tables that fit the terminal, documents, rows, names.

A table never cuts a number nor breaks a word: where it is too wide its least important columns are left out, and
`-o wide` has them all. A pipe has no width.
"""

from __future__ import annotations

import csv
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml
from rich.console import Console
from rich.text import Text

from forecaster.domain.amounts import UNKNOWN_AMOUNT
from forecaster.report.formats import Output

GAP = "  "
SENTENCE = 24
"""Characters to which a column of sentences may shrink: two or three words."""
UNBOUNDED = 100_000


@dataclass(frozen=True, slots=True)
class PrintedColumn:
    """One column; its cells in the order of the rows."""

    head: str
    cells: Sequence[str]
    rank: int = 0
    """0 always stays; of the others the one with the largest rank goes first."""
    right: bool = False
    words: bool = False
    """Whether its cells are sentences, which go on in the next line."""

    @property
    def width(self) -> int:
        """Return the width of the longest cell."""
        return max(map(len, (self.head, *self.cells)))

    @property
    def min_width(self) -> int:
        """The width below which something would be cut: for sentences that of the longest word."""
        if not self.words:
            return self.width
        longest = max((len(word) for cell in (self.head, *self.cells) for word in cell.split()), default=0)
        return min(self.width, max(SENTENCE, longest))


def columns_from(
    heads: Sequence[str], rows: Sequence[Sequence[str]], ranks: Sequence[int], texts: int = 1
) -> list[PrintedColumn]:
    """Return cells as columns of numbers, but for the first `texts` and words; those without a head are dropped.

    `ranks` give the order in which columns are dropped on a narrow terminal.
    """
    cells = zip(*rows, strict=True)
    return [
        PrintedColumn(head, each, rank=rank, right=i >= texts and head != BENEFIT_HEAD)
        for i, (head, each, rank) in enumerate(zip(heads, cells, ranks, strict=True))
        if head
    ]


BENEFIT_HEAD = "benefit"
"""Head of the column with better, same or worse, which is no number."""


class _Output(Console):
    """Standard output without wrapped lines; a closed pipe raises an error as everywhere."""

    def on_broken_pipe(self) -> None:
        """Raise the error, in place of rich's own exit."""
        raise BrokenPipeError


def harmless(text: str) -> str:
    """One line in which nothing is a command to a terminal, nor turns text around: names come from elsewhere."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def terminal_width() -> int | None:
    """Characters of a line; None where standard output is no terminal and `COLUMNS` says nothing either."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS", "").isdigit():
        return None
    return shutil.get_terminal_size().columns


def fitting(columns: Sequence[PrintedColumn], width: int | None) -> list[PrintedColumn]:
    """The columns that have room in `width`, the least important ones left out; all where there is no width."""
    shown = list(columns)
    if width is None:
        return shown
    while _taken(column.min_width for column in shown) > width and any(column.rank for column in shown):
        shown.remove(max(shown, key=lambda column: column.rank))
    return shown


def _taken(widths: Iterable[int]) -> int:
    each = list(widths)
    return sum(each) + len(GAP) * (len(each) - 1)


def table_rows(columns: Sequence[PrintedColumn], width: int | None) -> list[list[str]]:
    """The lines of the head and of every row."""
    available = UNBOUNDED if width is None else width
    spare = available - _taken(column.min_width for column in columns)
    widths = [min(column.width, column.min_width + max(spare, 0)) for column in columns]
    heads = [column.head.upper() for column in columns]
    rows = zip(*(column.cells for column in columns), strict=True)
    return [_lines(cells, columns, widths) for cells in (heads, *rows)]


def _lines(cells: Sequence[str], columns: Sequence[PrintedColumn], widths: Sequence[int]) -> list[str]:
    pieces = [
        textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) if column.words else [cell]
        for cell, column, width in zip(map(harmless, cells), columns, widths, strict=True)
    ]
    return [
        GAP.join(
            (part.rjust if column.right else part.ljust)(width)
            for column, width, lines in zip(columns, widths, pieces, strict=True)
            for part in [lines[i] if i < len(lines) else ""]
        ).rstrip()
        for i in range(max(1, *map(len, pieces)))
    ]


def table_text(columns: Sequence[PrintedColumn], width: int | None, styles: Sequence[str] = ()) -> Text:
    """Return the table as text; `styles` has one style per row."""
    head, *rows = table_rows(columns, width)
    text = Text("\n".join(head), style="", no_wrap=True, overflow="ignore")
    text.stylize("bold")
    for i, lines in enumerate(rows):
        text.append("\n" + "\n".join(lines), style=styles[i] if styles else "")
    return text


def print_table(columns: Sequence[PrintedColumn], styles: Sequence[str] = (), *, wide: bool = False) -> None:
    """Print the columns that fit the terminal, or all if `wide`; say which columns are left out."""
    width = None if wide else terminal_width()
    shown = fitting(columns, width)
    _Output(width=UNBOUNDED).print(table_text(shown, width, styles), highlight=False, soft_wrap=True)
    missing = len(columns) - len(shown)
    if missing and sys.stderr.isatty():
        sys.stdout.flush()
        sys.stderr.write(f"({missing} more columns: -o wide)\n")


def markdown_table(columns: Sequence[PrintedColumn]) -> str:
    """All columns as a table of GitHub's and GitLab's Markdown."""
    rows = zip(*(column.cells for column in columns), strict=True)
    lines = [[column.head for column in columns], ["--:" if column.right else "---" for column in columns], *rows]
    return "\n".join(f"| {' | '.join(map(_in_markdown, line))} |" for line in lines)


def _in_markdown(cell: str) -> str:
    return harmless(cell).replace("|", "\\|").replace("<", "&lt;")


def print_text(*lines: str, style: str = "", hang: int | None = None) -> None:
    """Sentences, each from the beginning of a line; they end between words, and go on `hang` further in."""
    width = terminal_width()
    for line in ("\n".join(map(harmless, text.split("\n"))) for text in lines):
        whole = line if width is None else wrapped(line, width, hang)
        _Output(width=UNBOUNDED).print(Text(whole, style=style), highlight=False, soft_wrap=True)


def wrapped(line: str, width: int, hang: int | None = None) -> str:
    """A line that goes on below its own beginning."""
    own = len(line) - len(line.lstrip()) + 2 if line.startswith((" ", "!")) else 0
    indent = " " * (own if hang is None else hang)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def print_json(view: object) -> None:
    """Print one JSON document; `view` is anything that msgspec encodes."""
    sys.stdout.write(json_text(view) + "\n")


def json_text(view: object) -> str:
    """Return the document as JSON that people can read, too."""
    return msgspec.json.format(msgspec.json.encode(without_noise(msgspec.to_builtins(view))), indent=2).decode()


def without_noise(value: Any) -> Any:
    """Return a document of plain values without the digits that sums of floats add: 0.9, not 0.9000000000000002."""
    if isinstance(value, float):
        return float(f"{value:.13g}") + 0.0  # and no negative zero
    if isinstance(value, dict):
        return {name: without_noise(each) for name, each in value.items()}
    return [without_noise(each) for each in value] if isinstance(value, list | tuple) else value


def print_yaml(view: object) -> None:
    """Print the document as YAML, by libyaml where PyYAML was built with it: a third of the time."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    document = without_noise(msgspec.to_builtins(view))
    yaml.dump(document, sys.stdout, Dumper=dumper, sort_keys=False, allow_unicode=True)


def print_csv(rows: Sequence[Mapping[str, object]]) -> None:
    """Print a header and one line per row: base units, empty where a value is not known; nothing without rows."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(sys.stdout, fieldnames=columns, lineterminator="\n")
    if columns:
        writer.writeheader()
    writer.writerows(without_noise(msgspec.to_builtins(rows)))


def flat(view: Mapping[str, Any], before: str = "") -> dict[str, object]:
    """A nested document as one row: `replicas_now` is `now` of `replicas`; lists are left out."""
    row: dict[str, object] = {}
    for name, value in view.items():
        if isinstance(value, dict):
            row |= flat(value, f"{before}{name}_")
        elif not isinstance(value, list):
            row[before + name] = value
    return row


def print_names(ids: Iterable[object]) -> None:
    """One name a line, in the form that our commands take as an argument."""
    sys.stdout.writelines(f"{harmless(str(id_))}\n" for id_ in ids)


@dataclass(frozen=True, slots=True)
class Printable:
    """One result in every form, each made on request."""

    table: Callable[[bool], None]
    """Prints for people; True: all columns."""
    document: Callable[[], object]
    rows: Callable[[], Sequence[Mapping[str, object]]]
    ids: Callable[[], Iterable[object]]


def print_as(output: Output, result: Printable) -> None:
    """Print a result in the requested form."""
    match output:
        case Output.TABLE | Output.WIDE:
            result.table(output is Output.WIDE)
        case Output.JSON:
            print_json(result.document())
        case Output.YAML:
            print_yaml(result.document())
        case Output.CSV:
            print_csv(result.rows())
        case Output.NAME:
            print_names(result.ids())


def print_listing(
    document: msgspec.Struct,
    rows: Sequence[object],
    columns: Sequence[PrintedColumn],
    output: Output,
    *,
    ids: Iterable[object] | None = None,
    summary: str = "",
) -> None:
    """Print rows in every form, and a sentence below the table; the first column names them, unless `ids` do."""

    def table(wide: bool) -> None:  # noqa: FBT001  as `Printable` has it
        if rows or not summary:
            print_table(columns, wide=wide)
        if summary:
            print_text(summary)

    result = Printable(
        table=table,
        document=lambda: document,
        rows=lambda: [flat(msgspec.to_builtins(row)) for row in rows],
        ids=lambda: columns[0].cells if ids is None else ids,
    )
    print_as(output, result)


# Amounts in tables: one unit a column, as `kubectl top` has it.


def milli(value: float | None) -> str:
    """CPU in millicores."""
    return UNKNOWN_AMOUNT if value is None else f"{value * 1000:.0f}m"


def mebi(value: float | None) -> str:
    """Memory in MiB."""
    return UNKNOWN_AMOUNT if value is None else f"{value / 2**20:.0f}Mi"


def percent(share: float | None) -> str:
    """Format a share to the thousandth of a percent, the precision of shortages."""
    return UNKNOWN_AMOUNT if share is None else f"{share:.3%}"


def change(now: str, new: str | None) -> str:
    """`now → new`, or `now` alone where nothing changes."""
    return now if new is None or now == new else f"{now} → {new}"
