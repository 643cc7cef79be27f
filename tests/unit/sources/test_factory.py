"""A source is one file and one line: the example in CONTRIBUTING.md is written, named in the table and run."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.app.compose import single_cycle
from forecaster.config.settings import parse
from forecaster.domain.signal import CPU
from forecaster.domain.window import FIVE_MINUTES
from forecaster.errors import ConfigError
from forecaster.sources import factory
from forecaster.sources.prometheus import PrometheusSource

if TYPE_CHECKING:
    from types import ModuleType

PAGE = Path(__file__).parents[3] / "CONTRIBUTING.md"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the example of CONTRIBUTING.md, and add its line to the table of sources."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "still.py"
    path.write_text(code)
    spec = spec_from_file_location("still", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "still", module)
    spec.loader.exec_module(module)
    monkeypatch.setitem(factory.SOURCES, "still", module.still_of)  # type: ignore[arg-type]  a dict behind a Mapping
    return module


@pytest.mark.usefixtures("still")
def test_the_source_of_the_page_feeds_a_cycle(tmp_path: Path) -> None:
    given = {"source": {"kind": "still", "options": {"pods": 5, "cores": 2.0}}, "state": {"directory": str(tmp_path)}}
    settings = parse(given | {"policy": {"horizontal": {"gate": False}}, "forecast": {"model": "prior"}}, "test")
    (recommendation,) = single_cycle(settings, NOON).run(NOON).recommendations
    assert (recommendation.id.name, recommendation.replicas_now) == ("still", 5)
    assert recommendation.signals[0].measured == 2.0
    assert recommendation.signals[0].forecast is not None


def test_the_source_of_the_page_keeps_to_the_grid(still: ModuleType) -> None:
    source = still.StillSource(still.StillOptions())
    (block,) = source.history(CPU, NOON - timedelta(hours=1), NOON, FIVE_MINUTES)
    assert block.end == NOON
    assert np.array_equal(block.values, np.full((1, 13), 1.0))


def test_prometheus_is_the_source_unless_another_is_named() -> None:
    source = factory.source_of(parse({}, "test"))
    assert isinstance(source, PrometheusSource)
    factory.close(source)


def test_a_source_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="must be one of prometheus"):
        parse({"source": {"kind": "crystal-ball"}}, "test")
