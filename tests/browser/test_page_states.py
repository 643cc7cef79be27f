"""Every page in every state: nothing that is not known is a zero or green, and it looks as it did.

The pictures that a person has looked at are small and grey, in one sheet: a row a state. To renew it, look at them all:

PICTURES_OF_STATES=folder pytest tests/browser/test_page_states.py
python -m tests.browser.test_page_states folder
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from forecaster.app.child import ServingProcess
from forecaster.domain.decision import Hold, Reason
from forecaster.serving.options import Address, ServingOptions
from tests.browser.conftest import FOR_EVER, opened
from tests.browser.test_dashboard import files, publisher
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.domain.decision import Recommendation

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PAGES = ("", "#/workloads/shop/Deployment/web", "#/accuracy", "#/nodes", "#/health")
LOOKS = {"light": (1440, False), "phone-dark": (390, True)}
LONG = "recommendations-for-everybody-who-has-ever-looked-at-anything-2"
RIGHT_TO_LEFT = "شبكة-الدفع"
INVENTED = re.compile(r"^(\+|-|−)?0([.,]0+)?( ?%|$| over| up| tight| s old| acting)|all complete|\bfresh\b")
"""Texts of a widget that claim to know something."""


GREEN = """[...document.querySelectorAll("b, .state")].filter((one) => one.innerText &&
  ["rgb(10, 125, 95)", "rgb(63, 207, 164)"].includes(getComputedStyle(one).color)).map((one) => one.innerText)"""
"""Counts and states in the colour of what goes as it should."""


class PageState(NamedTuple):
    """Files that the service published, their allowed age, and the texts that every page has to show."""

    rows: tuple[Recommendation, ...]
    stale_after: float = FOR_EVER
    says: str = ""
    unknown: bool = False
    """Whether nothing is known."""


def silent(name: str = "web") -> Recommendation:
    held = Hold(Reason.SOURCE_DOWN, "Prometheus does not answer")
    return replace(recommendation(workload_id(name)), replicas=held, resources=held, signals=(), clamps=())


WEB = recommendation(now=3, replicas=5)
STATES = {
    "start": PageState((), says="Nothing is decided yet", unknown=True),
    "no-data": PageState((recommendation(replicas=None, reason=Reason.NO_DATA),)),
    "source-down": PageState(
        (silent(), silent("api")), says="Not known since 12:00 UTC: Prometheus does not answer", unknown=True
    ),
    "stale": PageState(
        (WEB,), stale_after=timedelta(minutes=3).total_seconds(), says="since 1 Mar 12:00 UTC: what is shown"
    ),
    "partial": PageState((WEB, recommendation(workload_id("api"), replicas=None, reason=Reason.NO_DATA))),
    "thousand": PageState((WEB, *(recommendation(workload_id(f"w{i:04}")) for i in range(1000)))),
    "long-name": PageState((WEB, recommendation(workload_id(LONG, namespace=LONG)))),
    "right-to-left": PageState((WEB, recommendation(workload_id(RIGHT_TO_LEFT, namespace=RIGHT_TO_LEFT)))),
}


SHEET = Path(__file__).parents[1] / "data" / "page-states.png"
TILE = (96, 90)
LIKE = 2.0
"""Mean difference of grey, of 255, up to which pictures are alike: 0.0001 in one browser, 0.7 to 16 without a line."""


def tile(name: str, path: str, look: str) -> tuple[int, int, int, int]:
    """Place of a picture in the sheet."""
    place = PAGES.index(path) * len(LOOKS) + [*LOOKS].index(look)
    left, top = place * TILE[0], [*STATES].index(name) * TILE[1]
    return left, top, left + TILE[0], top + TILE[1]


def reduced(picture: Image.Image) -> Image.Image:
    return picture.convert("L").resize(TILE, Image.Resampling.BOX)


def unlike(shown: Image.Image, picture: bytes) -> float:
    """The mean difference of a picture from one that was looked at, in grey of 255."""
    now = reduced(Image.open(BytesIO(picture)))
    return float(np.abs(np.asarray(reduced(shown), float) - np.asarray(now, float)).mean())


def part_of(path: str) -> str:
    return path.removeprefix("#/").split("/")[0] or "fleet"


def difference(picture: bytes, name: str, path: str, look: str) -> float:
    """Difference of a picture from the one that a person looked at."""
    with Image.open(SHEET) as sheet:
        return unlike(sheet.crop(tile(name, path, look)), picture)


@pytest.fixture(scope="module", params=STATES)
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Name of the state, and the address of a serving process in it."""
    name: str = request.param
    state, path = STATES[name], Path("no-table-yet")
    if state.rows:
        path = tmp_path_factory.mktemp("state") / "table"
        publisher(files(path, state.rows)).publish(NOON, state.rows)
    options = ServingOptions(stale_after_seconds=state.stale_after)
    serving = ServingProcess(path, Address("127.0.0.1", 0), options=options)
    serving.start()
    yield name, f"http://{serving.address}/"
    serving.stop()


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("path", PAGES, ids=part_of)
def test_a_page_tells_what_is_known_and_no_more(browser: Any, shown: tuple[str, str], path: str, look: str) -> None:
    name, address = shown
    state, (width, dark) = STATES[name], LOOKS[look]
    with opened(browser, address, width=width, dark=dark, faults=["503", "404"]) as page:
        page.goto(address + path)
        page.wait_for_selector("main h1, main .empty")
        page.wait_for_selector("#age:not(:empty)")
        page.wait_for_function("said => document.body.innerText.includes(said)", arg=state.says)
        page.wait_for_load_state("networkidle")
        picture = page.screenshot()
        if folder := os.environ.get("PICTURES_OF_STATES"):
            (Path(folder) / f"{name}-{part_of(path)}-{look}.png").write_bytes(picture)
        else:
            assert difference(picture, name, path, look) <= LIKE, "look at it, and renew the sheet: see above"
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        if state.unknown:
            widgets = page.locator("dd, td, .row .risk, .row .cost, .row .load small, .said").all_inner_texts()
            claims = [line for text in widgets for line in text.split("\n") if INVENTED.search(line.strip())]
            assert claims == []
        if state.unknown or name == "stale":
            assert page.locator(".good").count() == 0
        if state.unknown or name == "no-data":
            assert page.locator(".state.acting").count() == 0
        if state.unknown or name in {"stale", "no-data"}:
            assert page.evaluate(GREEN) == []


def main(folder: Path) -> None:
    """Put pictures that were looked at into the sheet."""
    sheet = Image.new("L", (TILE[0] * len(PAGES) * len(LOOKS), TILE[1] * len(STATES)))
    for name in STATES:
        for path in PAGES:
            for look in LOOKS:
                with Image.open(folder / f"{name}-{part_of(path)}-{look}.png") as picture:
                    sheet.paste(reduced(picture), tile(name, path, look))
    sheet.save(SHEET, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
