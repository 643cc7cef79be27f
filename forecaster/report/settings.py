"""Settings and where they are stated, in every form of output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forecaster.publish.health import SettingView  # noqa: TC001  msgspec resolves the annotations when it encodes
from forecaster.report.printed import Printable, PrintedColumn, print_as, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.report.formats import Output


class SettingsView(msgspec.Struct, frozen=True):
    """Settings that are in force, those that something states first."""

    settings: list[SettingView]


def print_settings(found: Sequence[SettingView], output: Output) -> None:
    """A line a setting."""
    columns = [
        PrintedColumn("SETTING", [one.path for one in found]),
        PrintedColumn("VALUE", [one.value for one in found], words=True),
        PrintedColumn("ORIGIN", [one.origin for one in found]),
    ]
    result = Printable(
        table=lambda wide: print_table(columns, wide=wide),
        document=lambda: SettingsView(list(found)),
        rows=lambda: [msgspec.structs.asdict(one) for one in found],
        ids=lambda: (one.path for one in found),
    )
    print_as(output, result)
