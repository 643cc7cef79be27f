"""Tables of results as Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Table:
    """A titled table whose first column is the name of a row."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """Append a row with one cell a column."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(cells)

    def sorted_by(self, column: str) -> Table:
        """The table with its rows in ascending order of a number; cells that are no number come last."""
        place = self.columns.index(column)
        return Table(self.title, self.columns, sorted(self.rows, key=lambda row: _number(row[place])))

    def __str__(self) -> str:
        rule = ("---", *["---:"] * (len(self.columns) - 1))
        lines = (f"| {' | '.join(cells)} |" for cells in (self.columns, rule, *self.rows))
        return "\n".join([f"### {self.title}", "", *lines])


def _number(cell: str) -> float:
    try:
        return float(cell.rstrip("%"))
    except ValueError:
        return float("inf")
