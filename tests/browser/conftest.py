"""A real Chromium in front of a real serving process. What is missing for it is said, and the tests are skipped."""

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
"""What keeps the browser itself from asking its maker's hosts."""
READ_BACK = "getImageData"
"""What a browser says of tests that look at a canvas again and again."""
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

    What names one of `faults` is expected: a browser says every refusal. Where the test `evaluates` a script, the
    page's policy lets it.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        bypass_csp=evaluates,
    )
    page, found = context.new_page(), []
    page.on("console", lambda said: found.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith((address, "about:")) else found.append(asked.url))
    page.goto(address)
    yield page
    context.close()
    expected = (*faults, READ_BACK)
    assert [one for one in found if not any(part in one for part in expected)] == []


def inked(page: Any, canvas: str) -> int:
    """How many pixels of a canvas have a colour, once any has: charts are drawn a moment after they are placed."""
    drawn = (
        "canvas => { const one = document.querySelector(canvas);"
        " const all = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;"
        " return all.filter((byte, i) => i % 4 == 3 && byte).length; }"
    )
    found: int = page.wait_for_function(drawn, arg=canvas).json_value()
    return found
