"""The printed settings are the defaults, and the example in deploy/ is what is printed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import yaml

from forecaster.config.settings import Settings, parse
from forecaster.config.text import settings_text

EXAMPLE = Path(__file__).parents[3] / "deploy" / "examples" / "settings.yaml"


def test_the_printed_settings_parse_to_the_defaults() -> None:
    assert parse(yaml.safe_load(settings_text()), "printed") == Settings()


def test_the_example_is_what_is_printed() -> None:
    assert EXAMPLE.read_text() == settings_text(), "run: ./dev run forecaster settings > deploy/examples/settings.yaml"


def test_every_setting_says_what_it_means() -> None:
    lines = settings_text().splitlines()
    silent = [
        line
        for above, line in pairwise(lines)
        if line and not line.lstrip().startswith("#") and not above.lstrip().startswith("#")
    ]
    assert silent == []
