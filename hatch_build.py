"""The wheel has `models/` under a name of ours, `forecaster_models`: imports of it are renamed while it is built.

In the repository the folder stays `models`, for notebooks, benchmarks and tests, and in an editable installation, too.
pyproject.toml maps the folder; here every import statement of `forecaster` and `models` follows, in its own line.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OURS = "forecaster_models"
PLAIN = re.compile(r"^(\s*(?:>>> )?)import models(?=\s|$)", re.MULTILINE)
FROM = re.compile(r"^(\s*(?:>>> )?from )models(?=[.\s])", re.MULTILINE)


class Renamed(BuildHookInterface):  # type: ignore[type-arg]
    """Hatch's hook for the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put renamed copies of files in place of those that import `models`."""
        if version == "editable":
            return
        self._folder = TemporaryDirectory()
        for package, target in (("forecaster", "forecaster"), ("models", OURS)):
            for file in sorted(Path(self.root, package).rglob("*.py")):
                text = file.read_text(encoding="utf-8")
                if (made := renamed(text)) != text:
                    place = Path(target, file.relative_to(Path(self.root, package)))
                    copy = Path(self._folder.name, place)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_text(made, encoding="utf-8")
                    build_data["force_include"][str(copy)] = str(place)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the copies."""
        if version != "editable":
            self._folder.cleanup()


def renamed(text: str) -> str:
    """The text of a module with imports of `models` under the name that the wheel has."""
    text = PLAIN.sub(rf"\g<1>import {OURS} as models", text)
    return FROM.sub(rf"\g<1>{OURS}", text)
