"""What there is to choose from, in every form of output: forecasting models, and settings with their origins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forecaster.publish.health import SettingView  # noqa: TC001  msgspec resolves the annotations when it encodes
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


class SettingsView(msgspec.Struct, frozen=True):
    """Settings that are in force, those that something states first."""

    settings: list[SettingView]


def print_models(models: Sequence[ModelView], output: Output) -> None:
    """A line a model."""
    columns = [
        PrintedColumn("NAME", [one.name for one in models]),
        PrintedColumn("SUMMARY", [one.summary for one in models], words=True),
    ]
    _print_each(models, columns, ModelsView(list(models)), output)


def print_settings(found: Sequence[SettingView], output: Output) -> None:
    """A line a setting."""
    columns = [
        PrintedColumn("SETTING", [one.path for one in found]),
        PrintedColumn("VALUE", [one.value for one in found], words=True),
        PrintedColumn("ORIGIN", [one.origin for one in found]),
    ]
    _print_each(found, columns, SettingsView(list(found)), output)


def _print_each(
    each: Sequence[msgspec.Struct], columns: Sequence[PrintedColumn], document: msgspec.Struct, output: Output
) -> None:
    """The first column names them."""
    result = Printable(
        table=lambda wide: print_table(columns, wide=wide),
        document=lambda: document,
        rows=lambda: [msgspec.structs.asdict(one) for one in each],
        ids=lambda: columns[0].cells,
    )
    print_as(output, result)
