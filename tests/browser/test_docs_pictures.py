"""The pictures in the documents are those that the demo shows now, page by page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from tests.browser.pictures import PAGES, WIDTHS, nodes_of_the_demo, taken
from tests.browser.test_page_states import LIKE, unlike
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LOOKS = 4
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
REMEDY = (
    "look at it; `python -m tests.browser.pictures ADDRESS docs/pictures` takes all of `forecaster demo --serve` anew"
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the demo when it has played."""
    (port,) = free_ports(1)
    said = tmp_path_factory.mktemp("demo") / "said"
    command = [sys.executable, "-m", "forecaster", "demo", "--serve", "--port", str(port)]
    with said.open("w") as out:
        playing = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: "Outcome of" in said.read_text(), what="the end of the demo", timeout=300.0)
        yield f"http://127.0.0.1:{port}/"
    finally:
        playing.terminate()
        playing.wait(30)


@pytest.fixture(scope="module")
def nodes() -> bytes:
    return nodes_of_the_demo()


@pytest.mark.parametrize("look", [*((suffix, "light") for suffix in WIDTHS), ("", "dark")], ids="".join)
@pytest.mark.parametrize("name", PAGES)
def test_a_picture_of_the_documents_is_what_the_demo_shows(
    browser: Any, demo: str, nodes: bytes, name: str, look: tuple[str, str]
) -> None:
    """What a page asks of processes beside the serving one may come after a first look."""
    with Image.open(PICTURES / f"{name}{look[0]}-{look[1]}.png") as shown:
        assert any(unlike(shown, taken(browser, demo, name, *look, nodes)) <= LIKE for _ in range(LOOKS)), REMEDY
