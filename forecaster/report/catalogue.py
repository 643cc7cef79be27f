"""The forecasting models in every form of output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forecaster.report.printed import Printable, PrintedColumn, print_as, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.report.formats import Output


class ModelView(msgspec.Struct, frozen=True, gc=False):
    """A model that `forecast.model` can name."""

    name: str
    summary: str


class ModelsView(msgspec.Struct, frozen=True):
    """All of them, by name."""

    models: list[ModelView]


def print_models(models: Sequence[ModelView], output: Output) -> None:
    """A line a model."""
    columns = [
        PrintedColumn("NAME", [one.name for one in models]),
        PrintedColumn("SUMMARY", [one.summary for one in models], words=True),
    ]
    result = Printable(
        table=lambda wide: print_table(columns, wide=wide),
        document=lambda: ModelsView(list(models)),
        rows=lambda: [msgspec.structs.asdict(one) for one in models],
        ids=lambda: (one.name for one in models),
    )
    print_as(output, result)
