"""The demo is played once: its counts are those of the reference, its pages the pictures of the documents.

A change that decides otherwise on purpose writes the reference anew and explains it in its commit:
`FORECASTER_WRITE_REFERENCE=1 ./dev test tests/browser/test_docs_pictures.py`.
"""

from __future__ import annotations

import os
import time
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest
from PIL import Image

from forecaster.app.demo import on_dashboard, play, setups_of, staged
from forecaster.domain.decision import Scale
from forecaster.report.demo import PLAYED
from tests.browser.pictures import PAGES, WIDTHS, nodes_of_the_demo, taken
from tests.browser.test_page_states import LIKE, unlike

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.domain.decision import Recommendation

pytestmark = pytest.mark.slow
LOOKS = 4
REFERENCE = Path(__file__).parents[1] / "data" / "demo-counts.txt"
LAST_DIGITS = 10
"""Minutes of a workload, of some 8,000, that another processor's last digits may decide otherwise: where a quantile is
next to the edge of a count."""
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
REMEDY = (
    "look at it; `python -m tests.browser.pictures ADDRESS docs/pictures` takes all of `forecaster demo --serve` anew"
)


class Demo(NamedTuple):
    """The demo when it has played: its dashboard, and for each workload its decisions in order."""

    address: str
    decisions: dict[str, list[str]]


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    decisions: dict[str, list[str]] = {}
    with staged() as stage, on_dashboard(stage, 0) as address:
        # A cycle that waits for a core would be a tall bar on the page of health, and flatten all the rest.
        stage.cycle.seconds = time.process_time
        setups, _ = setups_of(stage)
        for moment in play(stage, setups, PLAYED):
            for recommendation in moment.outcome.recommendations:
                decisions.setdefault(str(recommendation.id), []).append(_decision(recommendation))
        yield Demo(address, decisions)


def _decision(recommendation: Recommendation) -> str:
    """A count with its reason and what an HPA may read, or the reason for holding."""
    replicas = recommendation.replicas
    if isinstance(replicas, Scale):
        return f"{replicas.replicas}:{replicas.reason}:{recommendation.offered}"
    return f"hold:{replicas.reason}"


def _run_lengths(row: list[str]) -> str:
    """Equal neighbours as `decision*minutes`."""
    return " ".join(f"{decision}*{len(list(minutes))}" for decision, minutes in groupby(row))


def test_the_demo_gives_the_counts_of_the_reference_minute_by_minute(demo: Demo) -> None:
    played = "".join(f"{workload} {_run_lengths(row)}\n" for workload, row in sorted(demo.decisions.items()))
    if os.environ.get("FORECASTER_WRITE_REFERENCE"):
        REFERENCE.write_text(played, encoding="utf-8")
    rows = [_minutes_of(text) for text in (played, REFERENCE.read_text(encoding="utf-8"))]
    assert rows[0].keys() == rows[1].keys()
    other = {name: _other(own, rows[1][name]) for name, own in rows[0].items() if own != rows[1][name]}
    assert sum(map(len, other.values())) <= LAST_DIGITS, other


def _minutes_of(text: str) -> dict[str, list[str]]:
    """Return the decisions of each workload, a minute each."""
    lines = (line.split(" ") for line in text.splitlines())
    pairs = ((name, [run.rsplit("*", 1) for run in runs]) for name, *runs in lines)
    return {name: [decision for decision, times in runs for _ in range(int(times))] for name, runs in pairs}


def _other(own: list[str], reference: list[str]) -> list[str]:
    """Name the minutes in which two rows differ, with both decisions."""
    pairs = enumerate(zip_longest(own, reference))
    return [f"{minute}: {now} for {before}" for minute, (now, before) in pairs if now != before]


@pytest.fixture(scope="module")
def nodes() -> bytes:
    return nodes_of_the_demo()


@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
def test_the_pictures_of_the_documents_are_what_the_demo_shows(
    browser: Any, demo: Demo, nodes: bytes, name: str
) -> None:
    """Look several times: answers of processes beside the serving one may come after a first look."""
    other = []
    for suffix, theme in [*((suffix, "light") for suffix in WIDTHS), ("", "dark")]:
        with Image.open(PICTURES / f"{name}{suffix}-{theme}.png") as shown:
            looks = (taken(browser, demo.address, name, suffix, theme, nodes) for _ in range(LOOKS))
            other += [] if any(unlike(shown, look) <= LIKE for look in looks) else [f"{name}{suffix}-{theme}"]
    assert not other, f"{REMEDY}; failures of its cycles: {failures_of(demo)}"


def failures_of(demo: Demo) -> set[str]:
    """Return the failures on the page of health: of a machine that stood still for a while, say."""
    cycles = httpx.get(f"{demo.address}dashboard/health").json().get("cycles", ())
    return {failure for cycle in cycles for failure in cycle["failures"]}
