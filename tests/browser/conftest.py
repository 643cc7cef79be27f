"""A real Chromium in front of a real serving process. Tests name a missing part, and are skipped."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.app.child import ServingProcess
from forecaster.serving.options import Address, ServingOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
"""Options that keep the browser itself from sending requests to its maker's hosts."""
READ_BACK = "getImageData"
"""Word in the browser's warning about tests that look at a canvas again and again."""
FOR_EVER = timedelta(days=36_500).total_seconds()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Ends with the module: playwright's event loop runs in this thread, and other tests have one of their own."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: ./dev test installs it"
    )
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no Chromium: .ci/chromium installs it")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=[*QUIET])
        yield chromium
        chromium.close()


@contextmanager
def served(table: Path, *, facts: str = "", report: str = "") -> Iterator[str]:
    """The address of a serving process in front of a table of any age."""
    options = ServingOptions(stale_after_seconds=FOR_EVER, facts=facts, report=report)
    serving = ServingProcess(table, Address("127.0.0.1", 0), options=options)
    serving.start()
    try:
        yield f"http://{serving.address}/"
    finally:
        serving.stop()


@contextmanager
def opened(
    browser: Any,
    address: str,
    *,
    width: int = 1440,
    dark: bool = False,
    faults: Sequence[str] = (),
    evaluates: bool = False,
) -> Iterator[Any]:
    """A page in which nothing may go wrong: no error in its console, no request to another host.

    A message that names one of `faults` is expected: a browser reports every refusal. Where the test `evaluates` a
    script, the page's policy lets it.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        bypass_csp=evaluates,
    )
    page, complaints = context.new_page(), []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in {"error", "warning"} else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith((address, "about:")) else complaints.append(request.url),
    )
    page.goto(address)
    yield page
    context.close()
    expected = (*faults, READ_BACK)
    assert [complaint for complaint in complaints if not any(part in complaint for part in expected)] == []


def inked(page: Any, canvas: str) -> int:
    """Number of coloured pixels of a canvas, once there are any: charts are drawn a moment after they are placed."""
    drawn = (
        "canvas => { const element = document.querySelector(canvas);"
        " const all = element.getContext('2d').getImageData(0, 0, element.width, element.height).data;"
        " return all.filter((byte, i) => i % 4 == 3 && byte).length; }"
    )
    pixels: int = page.wait_for_function(drawn, arg=canvas).json_value()
    return pixels
