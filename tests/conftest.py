"""Settings of all tests: how hard properties are tried. `HYPOTHESIS_PROFILE=nightly` tries a hundred times harder."""

from __future__ import annotations

import gc
import logging
import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("default", max_examples=200, deadline=None)
settings.register_profile("repeatable", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`./dev test --long`."""
    parser.addoption("--long", action="store_true", help="tests with the marker `long` play their long profile")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collected tests stay: to look through them for garbage again and again takes a twentieth of their time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def long(request: pytest.FixtureRequest) -> bool:
    """Whether the long profile is asked for."""
    return bool(request.config.getoption("--long"))


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A log that a test configures ends with it: the stream that it writes to is closed then."""
    before = logging.root.handlers[:]
    yield
    for handler in logging.root.handlers[:]:
        if type(handler) is logging.StreamHandler and handler not in before:
            logging.root.removeHandler(handler)
            structlog.reset_defaults()


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parallel workers state the width of a terminal that they do not have."""
    monkeypatch.delenv("COLUMNS", raising=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in three lines what was skipped and how to have it: a line for each test would hide the failures above."""
    reasons = Counter(_skip_reason(report) for report in terminalreporter.stats.get("skipped", []))
    if reasons:
        terminalreporter.section("skipped", sep="-")
        most = ", ".join(f"{count} ({reason})" for reason, count in reasons.most_common(6))
        terminalreporter.write_line(f"{reasons.total()} skipped: {most}")
        terminalreporter.write_line("`./dev test --all` installs or builds what is missing first (12 minutes, once).")


def _skip_reason(report: pytest.TestReport) -> str:
    """Reason of a skipped test without its remedy."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ").partition(":")[0]
