"""The dashboard as a reader has it: pictures are drawn, filters and keys work, new tables come by themselves."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from forecaster.app.outlets import NodesText
from forecaster.cycle.node_forecast import NodePools, present_pools
from forecaster.domain.decision import Reason
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import BUILT_IN, CPU, PODS, StepForecast
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Window
from forecaster.publish.pictures import PictureFile
from forecaster.publish.table import pictures_path
from forecaster.publish.table_file import TableFile
from forecaster.vertical.admission.cluster import Cluster
from tests.browser.conftest import inked, opened, served
from tests.support.cluster_rules import node, resident
from tests.support.decided_records import RecordPublisher
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.signal import Signal

pytestmark = pytest.mark.browser
HOSTILE = '<img src=x onerror="document.title=1">'
PAGES = ["", "#/workloads/shop/Deployment/web", "#/accuracy", "#/health"]
INTERACTIVE_MS = 1500
TRIES = 10
"""Tries of a measurement, because other work on the cores takes time away from the page."""
POLLED_MS = 30_000
MEASURED = "#replicas >> text=ready pods"


def files(path: Path, rows: Sequence[Recommendation], unmeasured: slice = slice(0)) -> dict[str, Any]:
    """Files of a cycle: tables with the hour ahead of each workload, and pictures of half a day of history."""
    ids = tuple(row.id for row in rows)
    wave = 2.0 + np.sin(np.arange(200) / 20.0, dtype=np.float32)

    def window(signal: Signal, step: timedelta) -> Window:
        values = {CPU: wave.copy(), PODS: np.round(wave * 3.0)}.get(signal, np.full(200, np.nan, np.float32))
        values[unmeasured] = np.nan
        return Window(ids, NOON - 199 * step, step, np.tile(values.astype(np.float32), (len(ids), 1)))

    ahead = StepForecast(NOON, NOON, FIVE_MINUTES, (0.1, 0.5, 0.9), ((1.0, 1.5, 2.0),) * 12, "ridge")
    paths = {id_: {CPU: ahead} for id_ in ids}
    given: dict[str, Any] = {"interval": MINUTE, "version": "1", "signals": BUILT_IN, "paths": lambda: paths}
    pictures = PictureFile(pictures_path(path), window=window, **given)
    return {"table": TableFile(path, **given), "pictures": pictures}


def publisher(files: dict[str, Any]) -> RecordPublisher:
    return RecordPublisher(Policies(Policy()), files)


FEW = (
    recommendation(now=3, replicas=5),
    recommendation(workload_id("api"), now=6, replicas=2, reason=Reason.REACTIVE),
    recommendation(workload_id("batch", namespace="data"), replicas=None, reason=Reason.NO_DATA),
    recommendation(workload_id(HOSTILE), replicas=3),
)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("few") / "table"
    publisher(files(path, FEW)).publish(NOON, FEW)
    with served(path) as address:
        yield address


def test_while_no_source_answers_nothing_is_green_and_nothing_is_zero(browser: Any, tmp_path: Path) -> None:
    held = tuple(
        replace(recommendation(workload_id(name), replicas=None, reason=Reason.SOURCE_DOWN), signals=())
        for name in ("web", "api")
    )
    publisher(files(tmp_path / "table", held)).publish(NOON, held)
    with served(tmp_path / "table") as address, opened(browser, address) as page:
        page.wait_for_selector(".row .why")
        totals = page.inner_text("#totals")
        assert "all 2 held" in totals
        assert "no demand is known" in totals
        assert [text in totals for text in ("0 over", "0 up", "+0.0 %")] == [False] * 3
        assert page.get_attribute("#age span", "class") == "bad dot"
        assert page.inner_text("#age").startswith("held: no source answers")
        page.goto(address + "#/health")
        page.wait_for_selector("#totals")
        assert "fresh" not in page.inner_text("#totals")


def names(page: Any) -> list[str]:
    texts: list[str] = page.locator(".row .who b").all_inner_texts()
    return texts


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (900, True), (390, False)])
@pytest.mark.parametrize("path", PAGES, ids=["fleet", "workload", "accuracy", "health"])
def test_every_page_fits_every_width_and_says_nothing_in_the_console(
    browser: Any, few: str, path: str, width: int, *, dark: bool
) -> None:
    with opened(browser, few, width=width, dark=dark) as page:
        page.goto(few + path)
        page.wait_for_selector("main h1")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [1440, 1280, 1241, 1240, 900])
def test_the_reason_in_a_row_is_not_cut_off_at_the_edge_of_the_table(browser: Any, few: str, width: int) -> None:
    beyond = "rows => rows.map(row => row.querySelector('.why').getBoundingClientRect().right - row.clientWidth)"
    with opened(browser, few, width=width) as page:
        page.wait_for_selector(".row .why")
        left = page.eval_on_selector(".row", "row => row.getBoundingClientRect().left")
        assert max(page.eval_on_selector_all(".row:not(.group)", beyond)) <= left


def test_the_fleet_names_first_what_needs_a_person(browser: Any, few: str) -> None:
    with opened(browser, few) as page:
        page.wait_for_selector(".row .why")
        assert names(page) == ["batch", "web", HOSTILE, "api"]
        assert page.inner_text("#causes").split("\n") == [
            "1 no data no sample of a signal: see what its sentence names",
            "4 may run short: the coming peak is above what the pods carry",
        ]
        assert inked(page, ".row canvas") > 200


def test_the_reason_is_the_sentence_of_the_decision(browser: Any, few: str) -> None:
    with opened(browser, few) as page:
        page.wait_for_selector(".row .why:text('no samples for 20 min')")


def test_filters_are_part_of_the_address(browser: Any, few: str) -> None:
    with opened(browser, few) as page:
        page.wait_for_selector(".row .why")
        firsts = [page.locator(f"select[name={name}] option").first for name in ("namespace", "reason", "show")]
        assert [option.inner_text() for option in firsts] == ["All namespaces", "All reasons", "All workloads"]
        page.keyboard.press("/")
        page.keyboard.type("we")
        assert names(page) == ["web"]
        page.reload()
        page.wait_for_selector(".row .why")
        assert names(page) == ["web"]
        page.fill("input[type=search]", "")
        page.select_option("select[name=show]", "down")
        assert names(page) == ["api"]
        page.select_option("select[name=show]", "")
        page.check("input[name=group]")
        assert names(page) == ["data", "batch", "shop", "web", HOSTILE, "api"]


def test_keys_lead_to_a_workload_and_back(browser: Any, few: str) -> None:
    with opened(browser, few) as page:
        page.wait_for_selector(".row .why")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_selector("#chain li")
        assert page.inner_text("h1") == "web"
        page.keyboard.press("Escape")
        page.wait_for_selector(".row .why")


def test_a_question_mark_shows_the_keys(browser: Any, few: str) -> None:
    with opened(browser, few) as page:
        page.wait_for_selector(".row .why")
        page.keyboard.press("?")
        assert page.locator("#keys kbd").count() == 9
        assert page.is_visible("#keys dt:has-text('/')")
        page.keyboard.press("Escape")
        assert not page.is_visible("#keys")
        assert page.is_visible("#rows")


def test_a_workload_shows_demand_replicas_and_the_chain_of_its_decision(browser: Any, few: str) -> None:
    with opened(browser, few) as page:
        page.goto(few + PAGES[1])
        page.wait_for_selector("#chain li")
        assert min(inked(page, "#demand canvas"), inked(page, "#replicas canvas")) > 2000
        steps = page.locator("#chain li").all_inner_texts()
        assert steps[0].split()[0] == "3"
        assert steps[-1].split()[0] == "5"
        assert "the forecast asks for 5, the measured demand for 4" in steps[-1]
        box = page.locator("#demand canvas").bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 60)
        assert "demand" in page.inner_text("#demand .tip")
        assert page.is_visible("#replicas .cursor")


def test_a_hostile_name_is_text(browser: Any, few: str) -> None:
    with opened(browser, few) as page:
        page.wait_for_selector(".row .why")
        page.click(f"text={HOSTILE}")
        page.wait_for_selector("#chain li")
        assert page.inner_text("h1") == HOSTILE
        assert page.title().startswith("shop/<img")


def test_a_name_as_long_as_a_name_may_be_fits_a_phone(browser: Any, tmp_path: Path) -> None:
    rows = (replace(recommendation(workload_id("w" * 253)), autoscaler="h" * 253),)
    publisher(files(tmp_path / "table", rows)).publish(NOON, rows)
    with served(tmp_path / "table") as address, opened(browser, address, width=390) as page:
        page.click(".row")
        page.wait_for_selector("#chain li")
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", ["constructor", "__proto__", "%E0%A4%A", "/evil.example"])
def test_an_address_that_names_no_page_is_the_fleet(browser: Any, few: str, name: str) -> None:
    with opened(browser, few) as page:
        page.goto(f"{few}#/{name}")
        page.wait_for_selector(".row .why")


def test_the_theme_stays_as_it_was_chosen(browser: Any, few: str) -> None:
    with opened(browser, few) as page:
        page.wait_for_selector(".row .why")
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.click("#theme")
        after = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.reload()
        assert before != after == page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize(
    ("path", "drawn"),
    [("", ".row .why"), (PAGES[1], "#chain li"), ("#/nodes", "#nodes-said"), ("#/health", "#sources")],
)
def test_a_page_that_is_opened_before_the_first_cycle_says_so_and_fills_itself(
    browser: Any, tmp_path: Path, path: str, drawn: str
) -> None:
    with served(tmp_path / "table") as address, opened(browser, address) as page:
        page.goto(address + path)
        page.wait_for_selector("main >> text=Nothing is decided yet")
        publisher(files(tmp_path / "table", FEW)).publish(NOON, FEW)
        page.wait_for_selector(drawn, state="attached", timeout=POLLED_MS)


def test_a_new_table_comes_by_itself(browser: Any, tmp_path: Path) -> None:
    publish = publisher(files(tmp_path / "table", FEW)).publish
    publish(NOON, FEW)
    with served(tmp_path / "table") as address, opened(browser, address) as page:
        page.wait_for_selector(".row .why")
        publish(NOON + MINUTE, [recommendation(now=3, replicas=9, at=NOON + MINUTE), *FEW[1:]])
        page.wait_for_selector("text=3 → 9", timeout=POLLED_MS)


def test_filters_offer_what_there_is_in_a_new_table(browser: Any, tmp_path: Path) -> None:
    shop, bank = ((recommendation(workload_id("web", namespace=name)),) for name in ("shop", "bank"))
    publisher(files(tmp_path / "table", shop)).publish(NOON, shop)
    with served(tmp_path / "table") as address, opened(browser, address) as page:
        page.wait_for_selector("option >> text=shop", state="attached")
        publisher(files(tmp_path / "table", bank)).publish(NOON + MINUTE, bank)
        page.wait_for_selector("option >> text=bank", state="attached", timeout=POLLED_MS)


def test_what_answers_in_place_of_the_serving_process_is_no_fresh_table(browser: Any, few: str) -> None:
    with opened(browser, few, faults=["502"]) as page:
        page.wait_for_selector("#age .dot")
        page.route("**/dashboard/now", lambda route: route.fulfill(status=502, body="<h1>Bad Gateway</h1>"))
        page.wait_for_selector("#age >> text=what is in front of it says 502", timeout=POLLED_MS)


def test_pictures_that_follow_their_table_come_by_themselves(browser: Any, tmp_path: Path) -> None:
    """A page that was opened between the two files of a cycle would else lack the last minutes until the next cycle."""
    both = files(tmp_path / "table", FEW)
    publisher({"table": both["table"]}).publish(NOON, FEW)
    with served(tmp_path / "table") as address, opened(browser, address) as page:
        page.goto(address + PAGES[1])
        page.wait_for_selector("#replicas >> text=recommended")
        assert page.locator(MEASURED).count() == 0
        publisher({"pictures": both["pictures"]}).publish(NOON, FEW)
        page.wait_for_selector(MEASURED, timeout=POLLED_MS)


def test_ten_thousand_workloads_are_there_in_a_second_and_a_half(browser: Any, tmp_path: Path) -> None:
    rows = [recommendation(workload_id(f"web-{i:05}", namespace=f"team-{i % 100:02}")) for i in range(10_000)]
    publisher(files(tmp_path / "table", rows)).publish(NOON, rows)
    with served(tmp_path / "table") as address, opened(browser, address) as page:
        took: list[float] = []
        while len(took) < TRIES and min(took, default=inf) > INTERACTIVE_MS:
            page.goto("about:blank")
            page.goto(address)
            page.wait_for_selector(".row .why")
            took.append(page.evaluate("performance.now()"))
        assert min(took) <= INTERACTIVE_MS
        assert page.inner_text("#count") == "10,000 of 10,000"
        assert page.locator(".row").count() < 60
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_selector(".row :text('web-09999')")


def test_a_reader_who_comes_back_finds_the_list_where_it_was_left(browser: Any, tmp_path: Path) -> None:
    rows = [recommendation(workload_id(f"web-{i:04}")) for i in range(500)]
    publisher(files(tmp_path / "table", rows)).publish(NOON, rows)
    with served(tmp_path / "table") as address, opened(browser, address) as page:
        page.wait_for_selector(".row .why")
        page.evaluate("scrollTo(0, 12000)")
        page.click(".row:has-text('web-0200')")
        page.wait_for_selector("#chain li")
        assert page.evaluate("scrollY") == 0
        page.go_back()
        page.wait_for_selector(".row:has-text('web-0200')")
        assert page.evaluate("scrollY") == 12000
        page.click("nav a:text('Health')")
        page.wait_for_selector("#sources")
        page.click("nav a:text('Fleet')")
        page.wait_for_selector(".row:has-text('web-0001')")
        assert page.evaluate("scrollY") == 0


RISKS = """async () => {
  const { prepared } = await import("/static/selection.js");
  const columns = {
    name: ["a", "b"], namespaces: ["shop"], namespace: [0, 0], signals: ["cpu"], shown: [0, 0],
    modes: ["observe", "scale"], mode: [0, 1], reasons: ["forecast"], reason: [0, 0],
    measured: [1, 1], high: [6, 6], pod: [0.5, 0.5], current: [4, 4], recommended: [6, 6],
    request: [[2, null], [2, null]], resized: [[1, null], [1, null]], prices: null, spark: "", spark_size: 0,
  };
  return [...prepared(columns).risk];
}"""


def test_risk_is_that_of_the_pods_that_there_are_and_of_the_sizes_that_they_have(browser: Any, few: str) -> None:
    """The risk counts 4 pods of 2 cores in mode observe, 6 recommended ones in mode scale, no size not applied."""
    with opened(browser, few, evaluates=True) as page:
        assert page.evaluate(RISKS) == [pytest.approx(6 / 8), pytest.approx(6 / 12)]


TICKS = """async () => {
  const [{ nice }, { amount }] = await Promise.all([import("/static/chart.js"), import("/static/format.js")]);
  const ticks = (top, unit) => {
    const scale = nice(top, false, unit === "bytes");
    const count = Math.round(scale.top / scale.step) + 1;
    return Array.from({ length: count }, (_, i) => amount(i * scale.step, unit, scale.top));
  };
  return [ticks(2.9 * 2 ** 30, "bytes"), ticks(900 * 2 ** 20, "bytes"), ticks(1.6, "cores"), ticks(0.6, "cores")];
}"""


def test_the_ticks_of_an_axis_are_round_and_of_one_scale(browser: Any, few: str) -> None:
    with opened(browser, few, evaluates=True) as page:
        gibi, mebi, cores, millicores = page.evaluate(TICKS)
    assert gibi == ["0", "1Gi", "2Gi", "3Gi"]
    assert mebi == ["0", "500Mi", "1,000Mi"]
    assert cores == ["0", "0.5", "1", "1.5", "2"]
    assert millicores == ["0", "200m", "400m", "600m"]


LINE = """mark => {
  const line = getComputedStyle(mark);
  return [mark.offsetWidth, line.borderTopWidth, line.borderTopColor, line.borderTopStyle];
}"""


def test_every_stepped_series_has_its_line_in_the_legend_dashed_where_it_is_dashed(browser: Any, few: str) -> None:
    with opened(browser, few, evaluates=True) as page:
        page.goto(few + PAGES[1])
        page.wait_for_selector("#replicas .legend .mark.step")
        marks = page.locator("#replicas .legend .mark.step").all()
        lines = [mark.evaluate(LINE) for mark in marks]
    assert all(length >= 10 and width != "0px" and colour != "rgba(0, 0, 0, 0)" for length, width, colour, _ in lines)
    assert {style for *_, style in lines} == {"dashed", "solid"}


def test_what_was_not_measured_is_shaded_and_named(browser: Any, tmp_path: Path) -> None:
    """An hour without samples of a half day with them."""
    publisher(files(tmp_path / "table", FEW[:1], slice(-60, -48))).publish(NOON, FEW[:1])
    with served(tmp_path / "table") as address, opened(browser, address) as page:
        page.goto(f"{address}#/workloads/shop/Deployment/web")
        page.wait_for_selector("#demand canvas")
        for chart in ("#demand", "#replicas"):
            assert "not measured" in page.inner_text(f"{chart} .legend")
            assert page.locator(f"{chart} .mark.unknown").count() == 1


def test_pools_of_a_cluster_too_large_to_forecast_are_shown_as_they_are(browser: Any, few: str) -> None:
    pods = [resident(f"n{i % 2}", "250m", "512Mi", workload=f"shop/w{i}") for i in range(8)]
    cluster = Cluster(nodes=(node("n0", "2", "8Gi"), node("n1", "2", "8Gi")), residents=tuple(pods))
    pools = NodePools(lambda _now: cluster, timedelta(hours=1), present_pools(cluster, NOON), "it is too large")
    with opened(browser, few) as page:
        page.route("**/dashboard/nodes", lambda route: route.fulfill(body=NodesText(pools)()))
        page.goto(f"{few}#/nodes")
        page.wait_for_selector("#pools .pool")
        assert "as they are: it is too large" in page.inner_text("#nodes-said")
        assert "2 of 4 requested, 50 %" in page.inner_text("#pools .pool")
        assert page.locator("#pools canvas").count() == 0
