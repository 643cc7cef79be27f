"""Pages that are one file, as a reader has them: they fit, they print, and every place of a plot says its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forecaster.replay.weekly import NO_FIGURES, SizedWorkload, WeekOutcome, adoptions_of
from forecaster.report.page import document, paragraph
from forecaster.report.page import page as replay_page
from forecaster.report.week import week_page
from tests.browser.conftest import opened
from tests.support.replays import looked_back

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", params=["replay", "week"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of the page of a replay, and of a week looked back on."""
    file: Path = tmp_path_factory.mktemp("pages") / "page.html"
    comparison = looked_back()
    week = WeekOutcome(
        comparison,
        adoptions_of(comparison),
        [SizedWorkload(comparison.workloads[0].workload.id, NO_FIGURES, NO_FIGURES)],
    )
    text = week_page(week) if request.param == "week" else replay_page(comparison)
    file.write_text(text, encoding="utf-8")
    return file.as_uri()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_fits_and_asks_nobody(browser: Any, address: str, width: int, *, dark: bool) -> None:
    with opened(browser, address, width=width, dark=dark) as page:
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        assert page.locator("h1").count() == 1
        drawn = page.evaluate("[...document.querySelectorAll('.plot path.line')].map(one => one.getBBox().width)")
        assert len(drawn) > 3
        assert min(drawn) > 0


def test_a_name_as_long_as_a_name_may_be_fits_a_phone(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(document("Why", [paragraph("w" * 253)]), encoding="utf-8")
    with opened(browser, file.as_uri(), width=390) as page:
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_a_dot_of_the_frontier_says_its_figures(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        own = page.locator(".dot.own").first
        own.hover(force=True)
        assert "targets as the owner set them" in page.inner_text(".tip")


def test_an_instant_says_the_day_in_one_line_and_the_pods(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        area = page.locator("details .area").first
        area.scroll_into_view_if_needed()
        box = area.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
        first, demand, plain, *_ = page.inner_text(".tip").splitlines()
        assert first == "Sun 2026-03-01 12:31 UTC"
        assert demand.startswith("demand, cores: ")
        assert plain.startswith("the HPA alone, ready pods: ")
        page.mouse.move(1, 1)
        assert page.locator(".tip").count() == 0


def test_the_keyboard_goes_along_the_time(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.locator("details .area").first.focus()
        page.keyboard.press("ArrowRight")
        before = page.inner_text(".tip")
        page.keyboard.press("ArrowRight")
        assert page.inner_text(".tip") != before


def test_on_paper_everything_is_open_and_dark_on_white(browser: Any, address: str) -> None:
    with opened(browser, address, dark=True) as page:
        page.evaluate("document.querySelector('details').open = false")
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
