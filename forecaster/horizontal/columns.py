"""Tables of columns: a field declares its column once; new rows, moves of rows and plain arrays follow from it.

    @dataclass(frozen=True, eq=False)
    class State(Table):
        until: Floats = column("d", 0.0)

Rows lie on the last axis. Another axis comes before it: signals, which the table names, targets, clamps or slots.

Arrays of milli-units and replica counts are computed digit by digit as `hpa.numbers` has single ones (HPA rules §2).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, AnyStr, Final, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import rows_among
from forecaster.hpa.numbers import MAX_INT32, MIN_INT32, milli

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.int8]

_ROUNDING, _DOUBT = 5e-7, 1e-9
"""`milli` rounds to six decimals before it rounds up: less than half of the last of them is nothing."""


def millis(amounts: Floats) -> Counts:
    """`milli` of every amount; they are finite, not negative and not above `LARGEST`."""
    scaled = amounts * 1000.0
    below = np.floor(scaled)
    above = scaled - below
    rounded = (below + (above > _ROUNDING)).astype(np.int64)
    doubtful = np.abs(above - _ROUNDING) < _DOUBT
    if doubtful.any():
        for place in zip(*np.nonzero(doubtful), strict=True):
            rounded[place] = milli(float(amounts[place]))
    return rounded


def ceil_counts(values: Floats) -> Counts:
    """The ceilings as replica counts, held at the ends of 32 bits; no value is NaN."""
    return np.minimum(np.maximum(np.ceil(values), MIN_INT32), MAX_INT32).astype(np.int64)


def truncated(dividend: Counts, divisor: Counts) -> Counts:
    """Division of 64-bit integers toward zero; no divisor is zero."""
    quotient = dividend // divisor
    negative = quotient < 0
    if negative.any():
        quotient += negative & (quotient * divisor != dividend)
    return quotient


class Band(NamedTuple):
    """The ratios around 1.0 that change nothing, as edges [row]: `hpa.proposals.Tolerance` on arrays."""

    lowest: Floats
    highest: Floats

    @classmethod
    def of(cls, tolerance: Floats) -> Band:
        """Return both edges of one tolerance [row] for both directions."""
        return cls(1.0 - tolerance, 1.0 + tolerance)

    def holds(self, ratio: Floats) -> Flags:
        """Return where a ratio [row] is close enough to 1.0 to keep the current replicas."""
        return np.asarray((self.lowest <= ratio) & (ratio <= self.highest))

    def take(self, rows: Counts) -> Band:
        """Return the edges of these rows."""
        return Band(self.lowest[rows], self.highest[rows])


Array = NDArray[Any]
ROW: Final = "row"
SIGNAL: Final = "signal"
TARGET: Final = "target"
CLAMP: Final = "clamp"
SLOT: Final = "slot"


class Column(NamedTuple):
    """Declaration of a column."""

    kind: str
    """Type of the values as `struct` names it, which is also the code in a published table."""
    empty: Any
    """Value of a new row."""
    axis: str
    """`ROW` for [row]; any other for [axis, row]."""
    published: bool
    """Whether the published table has it."""
    of_signal: bool
    """Whether values are positions in the signals of the table; negative for none."""
    of_name: bool
    """Whether values are positions in the names beside the table (`Names`)."""

    def new(self, rows: int, planes: int) -> Array:
        """Return the column of new rows."""
        return np.full(rows if self.axis == ROW else (planes, rows), self.empty, self.kind)


def column(
    kind: str,
    empty: Any,
    axis: str = ROW,
    *,
    published: bool = False,
    of_signal: bool = False,
    of_name: bool = False,
) -> Any:
    """Declare the field of a `Table` as a column."""
    return field(metadata={"column": Column(kind, empty, axis, published, of_signal, of_name)})


def schema(table: type[Table]) -> Mapping[str, Column]:
    """Return the declared columns of a table by name."""
    return _schema(table)  # type: ignore[arg-type]  # a class is hashable


@cache
def _schema(table: type[Table]) -> Mapping[str, Column]:
    declared = {field.name: field.metadata["column"] for field in fields(table) if "column" in field.metadata}
    return MappingProxyType(declared)


class TextCodes(dict[AnyStr, int]):
    """Texts, each once, and their codes; another text gets the next one."""

    def __init__(self, texts: Iterable[AnyStr]) -> None:
        super().__init__()
        self.codes(texts)

    def __missing__(self, text: AnyStr) -> int:
        code = self[text] = len(self)
        return code

    def codes(self, texts: Iterable[AnyStr]) -> NDArray[np.int32]:
        """Return the code of each text."""
        return np.fromiter(map(self.__getitem__, texts), np.int32)


class Names(TextCodes[bytes]):
    """Texts beside a table: a column has the position of its text. The first text is empty."""

    def __init__(self) -> None:
        super().__init__((b"",))


class CodedTexts(NamedTuple):
    """Texts of rows that stay from cycle to cycle: each once, and where that of a row is."""

    texts: tuple[bytes, ...]
    rows: NDArray[np.int32]

    @classmethod
    def of(cls, texts: Iterable[bytes]) -> Self:
        """Return the texts of these rows."""
        names = Names()
        rows = names.codes(texts)
        return cls(tuple(names), rows)

    def codes(self, names: Names) -> NDArray[np.int32]:
        """Return the position of the text of each row among the names of a cycle."""
        return names.codes(self.texts)[self.rows]


@dataclass(frozen=True, eq=False)
class Table:
    """Facts about rows: arrays on the axes that their columns declare. Immutable: what changes is made anew."""

    signals: tuple[str, ...]
    """The axis of columns [signal, row]."""

    @classmethod
    def new(cls, rows: int, signals: Iterable[str] = (), **planes: int) -> Self:
        """Return rows of which nothing is known; `planes` are the lengths of axes other than rows and signals."""
        names = tuple(map(str, signals))
        lengths = {ROW: 1, SIGNAL: len(names), TARGET: 0, CLAMP: 0, SLOT: 0, **planes}
        columns: dict[str, Any] = {name: column.new(rows, lengths[column.axis]) for name, column in schema(cls).items()}
        return cls(signals=names, **columns)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(getattr(self, next(iter(schema(type(self))))).shape[-1])

    def columns(self) -> dict[str, Array]:
        """Return the columns by name."""
        return {name: getattr(self, name) for name in schema(type(self))}

    def planes(self, *, published: bool = False) -> dict[str, Array]:
        """Return the columns as [plane, row] by name: all, or those that are published."""
        names = [name for name, column in schema(type(self)).items() if column.published or not published]
        return {name: np.atleast_2d(getattr(self, name)) for name in names}

    def take(self, rows: Counts) -> Self:
        """Return these rows in this order; a negative row is new. Growth and compaction are one take."""
        declared = schema(type(self)).items()
        columns: dict[str, Any] = {name: taken(getattr(self, name), rows, column.empty) for name, column in declared}
        return replace(self, **columns)

    def put(self, rows: Counts, table: Self) -> Self:
        """Return a copy with these rows replaced by those of `table`.

        Raises:
            ValueError: `table` has other signals.
        """
        if table.signals != self.signals:
            raise ValueError(f"a {type(self).__name__} of {table.signals} does not fit into one of {self.signals}")
        columns: dict[str, Any] = {name: put(old, rows, getattr(table, name)) for name, old in self.columns().items()}
        return replace(self, **columns)

    def covering(self, signals: Iterable[str]) -> Self:
        """Return the table with a place for each of these signals, after the present ones."""
        return self.with_signals(tuple(dict.fromkeys((*self.signals, *map(str, signals)))))

    def with_signals(self, signals: tuple[str, ...]) -> Self:
        """Return the table with these signals, in this order, on their axis; all of its own are among them."""
        if signals == self.signals:
            return self
        places = np.array([signals.index(signal) for signal in self.signals], np.intp)
        moved: dict[str, Any] = {}
        for name, column in schema(type(self)).items():
            if column.axis == SIGNAL:
                moved[name] = column.new(self.rows, len(signals))
                moved[name][places] = getattr(self, name)
            elif column.of_signal:
                moved[name] = np.append(places, -1)[np.maximum(getattr(self, name), -1)].astype(column.kind)
        return replace(self, signals=signals, **moved)

    @classmethod
    def side_by_side(cls, rows: int, parts: Sequence[tuple[Array, Self]]) -> Self:
        """Return a table of `rows` rows, in which each part has its rows at the given positions."""
        signals = tuple(dict.fromkeys(signal for _, part in parts for signal in part.signals))
        ordered = [(positions, part.with_signals(signals)) for positions, part in parts]
        columns: dict[str, Any] = {}
        for name, column in schema(cls).items():
            planes = max((len(getattr(part, name)) for _, part in ordered), default=0)
            columns[name] = column.new(rows, planes)
            for positions, part in ordered:
                values = getattr(part, name)
                columns[name][..., positions] = values if column.axis == ROW else _padded(column, values, planes)
        return cls(signals=signals, **columns)

    def arrays(self) -> dict[str, Array]:
        """Return plain arrays by name, to be saved."""
        return {"signals": np.array(self.signals, np.str_), **self.columns()}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """Return the table that `arrays` gave.

        Raises:
            KeyError: a column is missing.
            TypeError: a column is of another kind.
            ValueError: a column has other rows or signals than the others.
        """
        signals = tuple(arrays["signals"].tolist())
        columns: dict[str, Any] = {}
        for name, column in schema(cls).items():
            columns[name] = arrays[name].astype(column.kind, casting="same_kind", copy=False)
            if column.axis == SIGNAL and arrays[name].shape[:-1] != (len(signals),):
                raise ValueError(f"column {name} is not of {len(signals)} signals")
        if len({values.shape[-1:] for values in columns.values()}) > 1:
            raise ValueError(f"columns of {cls.__name__} have different numbers of rows")
        return cls(signals=signals, **columns)


def _padded(declared: Column, values: Array, planes: int) -> Array:
    """Return a column [plane, row] with `planes` planes; new ones are empty."""
    if len(values) == planes:
        return values
    return np.concatenate([values, declared.new(values.shape[1], planes - len(values))])


def rows_before(before: Sequence[Hashable], now: Sequence[Hashable]) -> Counts:
    """Return the earlier row of each identity; -1 for a new one."""
    if before == now:
        return np.arange(len(now))
    return rows_among(now, {id_: row for row, id_ in enumerate(before)})


def taken(column: Array, rows: Counts, nothing: Any) -> Array:
    """Return the values of these rows in this order; `nothing` for a negative row, which is new."""
    new = rows < 0
    if not new.any():
        return np.asarray(column[..., rows])
    values = np.full((*column.shape[:-1], len(rows)), nothing, column.dtype)
    values[..., ~new] = column[..., rows[~new]]
    return values


def put(column: Array, rows: Counts, values: Array) -> Array:
    """Return a copy of the column with the values of these rows."""
    copy = column.copy()
    copy[..., rows] = values
    return copy
