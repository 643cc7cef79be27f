"""Write the generated files, or name those that differ."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from deploy.generate import chart, grafana, roles, rules, trait
from deploy.generate.kustomized import DEPLOY
from forecaster.config.text import settings_text
from forecaster.resources.definitions import definitions_text

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = DEPLOY / "examples" / "settings.yaml"
DEFINITIONS = chart.CHART / "definitions" / "definitions.yaml"


def main(arguments: list[str]) -> int:
    """The exit code."""
    checked = "--check" in arguments
    policies = {DEFINITIONS: definitions_text(), EXAMPLE: settings_text()}
    first = roles.files() | grafana.files() | rules.files() | policies  # the chart has them, too
    written = changed(first, checked=checked)
    made = chart.files() | trait.files()
    written += changed(made, checked=checked)
    left = [
        file
        for file in (chart.CHART / "templates").glob("*.yaml")
        if file not in made and file.name not in chart.WRITTEN
    ]
    for file in [] if checked else left:
        file.unlink()
    for file in written + left:
        line = f"{file}: not as it is made; run `./dev run python -m deploy.generate`" if checked else str(file)
        sys.stdout.write(f"{line}\n")
    return int(checked and bool(written + left))


def changed(made: dict[Path, str], *, checked: bool) -> list[Path]:
    """The files that were not as they are made; they are now, unless it is only checked."""
    other = [file for file, text in made.items() if not file.exists() or file.read_text(encoding="utf-8") != text]
    for file in [] if checked else other:
        file.write_text(made[file], encoding="utf-8")
    return other


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
