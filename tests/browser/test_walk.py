"""A walk over every page of a running service that reads a real Prometheus: pages draw, look up and update."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from forecaster.app.facts import FactsServer
from forecaster.app.outlets import table_path
from forecaster.cycle.workload_facts import encoded_facts
from forecaster.domain.window import MINUTE
from forecaster.report.page import document
from forecaster.vertical.admission.cluster import Cluster as NodesOfCluster
from tests.browser.conftest import inked, opened, served
from tests.integration.conftest import filled_week, prometheus_binaries  # noqa: F401  fixtures
from tests.support.cluster_rules import node, resident
from tests.support.composed import Cluster, composed, tick
from tests.support.prometheus import RealPrometheus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.app.service import Service
    from tests.integration.conftest import FilledWeek
    from tests.support.prometheus import Binaries

pytestmark = [pytest.mark.browser, pytest.mark.prometheus, pytest.mark.slow]
AXE = Path(__file__).parent / "axe" / "axe.min.js"
WORKLOAD = "#/workloads/shop/Deployment/checkout"
PAGES = {"fleet": "", "workload": WORKLOAD, "accuracy": "#/accuracy", "nodes": "#/nodes", "health": "#/health"}
FIRST_MS = 20_000
POLLED_MS = 10_000
SERIOUS = {"serious", "critical"}


class Walked(NamedTuple):
    """A service and where its dashboard is."""

    service: Service
    address: str
    week: FilledWeek


@pytest.fixture(scope="module")
def walked(
    filled_week: FilledWeek,  # noqa: F811
    prometheus_binaries: Binaries,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Walked]:
    directory, now = tmp_path_factory.mktemp("w"), filled_week.week.now
    report = directory / "report.html"
    report.write_text(document("A week", ["<h1>What forecaster was worth</h1>"]), encoding="utf-8")
    with RealPrometheus(prometheus_binaries, filled_week.data) as server:
        cluster = Cluster(server.url, None)  # type: ignore[arg-type]  # no story changes its workloads
        given = {
            "forecast": {"model": "adaptive"},
            "serving": {"forecast_path": True, "report": str(report)},
            "prices": {"core_hour": 0.03, "gib_hour": 0.004, "currency": "EUR"},
        }
        with composed(cluster, directory, **given) as service:
            service.cycle.nodes.cluster = lambda _now: nodes_of(filled_week)
            for minutes in (5, 1, 0):
                tick(service, now - minutes * MINUTE)
            facts = FactsServer(partial(encoded_facts, service.cycle), directory)
            facts.start()
            with served(table_path(directory), facts=str(facts.path), report=str(report)) as address:
                yield Walked(service, address, filled_week)
            facts.close()


def nodes_of(filled: FilledWeek) -> NodesOfCluster:
    """Two nodes with a pod of each workload on them, because the week has no nodes."""
    owners = ["/".join(workload.id) for workload in filled.week.workloads]
    residents = [resident(f"n{i % 2}", "250m", "512Mi", workload=owner) for i, owner in enumerate(owners)]
    return NodesOfCluster(nodes=(node("n0"), node("n1")), residents=tuple(residents))


def faults_of(page: Any) -> list[str]:
    """Violations that axe calls serious or worse: the rule, and the element."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    report = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{violation['id']}: {node['target']} {node.get('failureSummary', '')}"
        for violation in report["violations"]
        if violation["impact"] in SERIOUS
        for node in violation["nodes"][:3]
    ]


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False)], ids=["light", "dark", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(browser: Any, walked: Walked, name: str, width: int, *, dark: bool) -> None:
    with opened(browser, walked.address, width=width, dark=dark, evaluates=True) as page:
        page.goto(walked.address + PAGES[name])
        page.wait_for_selector("main h1")
        page.wait_for_load_state("networkidle")
        assert faults_of(page) == []


def test_the_fleet_has_every_workload_its_cost_and_its_risk(browser: Any, walked: Walked) -> None:
    with opened(browser, walked.address) as page:
        page.wait_for_selector(".row .why")
        assert page.inner_text("#count") == f"{len(walked.week.week.workloads)} of {len(walked.week.week.workloads)}"
        first = page.locator(".row").first
        assert inked(page, ".row canvas") > 200
        assert first.locator(".risk").inner_text().split()[0] in {"low", "tight", "above"}
        page.select_option("select[name=sort]", "cost")
        dearest = page.locator(".row .cost").first.inner_text()
        assert dearest[0].isdigit()
        page.select_option("select[name=show]", "risk")
        risks = [text.split()[0] for text in page.locator(".row .risk").all_inner_texts()]
        assert set(risks) <= {"tight", "above"}


def test_every_chart_of_a_workload_is_drawn_and_looks_back_at_a_lead_of_choice(browser: Any, walked: Walked) -> None:
    with opened(browser, walked.address) as page:
        page.goto(walked.address + WORKLOAD)
        page.wait_for_selector("#outcomes canvas", timeout=FIRST_MS)
        before = inked(page, "#demand canvas")
        assert min(inked(page, f"{chart} canvas") for chart in ("#demand", "#replicas", "#outcomes")) > 2000
        assert page.locator("#containers figure").count() >= 2
        assert inked(page, "#containers canvas") > 1000
        assert "plain HPA" in page.inner_text("#replicas .legend")
        assert "not scored a forecast of its own yet; the hours above are forecast anew" in page.inner_text("#accuracy")
        page.click("#leads button:text('60 min')")
        page.wait_for_selector("#demand .legend:has-text('forecast 60 min before')", timeout=FIRST_MS)
        assert inked(page, "#demand canvas") != before


def test_what_if_is_replayed_from_the_history_of_prometheus(browser: Any, walked: Walked) -> None:
    with opened(browser, walked.address) as page:
        page.goto(walked.address + WORKLOAD)
        page.click("#what-if-open")
        page.wait_for_selector("#what-if-accounts table", timeout=FIRST_MS)
        assert inked(page, "#what-if-chart canvas") > 2000


def test_accuracy_and_health_show_what_was_read(browser: Any, walked: Walked) -> None:
    with opened(browser, walked.address) as page:
        page.goto(walked.address + "#/health")
        page.wait_for_selector("#sources td:text('cpu')")
        assert page.locator("#cycles .bars div").count() >= 1
        verdicts = page.locator("#verdicts td:first-child").all_inner_texts()
        assert verdicts
        assert set(verdicts) <= {"count decided", "held"}
        page.goto(walked.address + "#/accuracy")
        page.wait_for_selector("#models")
        assert "as the gate judges it; in mode observe nothing acts" in page.inner_text("main")


def test_each_pool_of_nodes_is_drawn_over_the_coming_day(browser: Any, walked: Walked) -> None:
    with opened(browser, walked.address) as page:
        page.goto(walked.address + "#/nodes")
        page.wait_for_selector("#pools figure canvas")
        assert "2" in page.inner_text("#totals div:first-child dd")
        assert page.locator("#pools figure").count() == 2 * page.locator("#pools .pool").count()
        assert inked(page, "#pools canvas") > 1000
        page.click("#pools summary")
        assert page.locator("#pools details[open] tbody tr").count() >= 8


def test_the_fleet_speaks_of_money_where_prices_are_stated(browser: Any, walked: Walked) -> None:
    with opened(browser, walked.address) as page:
        page.wait_for_selector(".row .why")
        assert page.inner_text("#cost-head") == "Cost a month, EUR"
        assert "Cost a month, EUR" in page.inner_text("#totals")


def test_health_says_where_each_setting_is_stated(browser: Any, walked: Walked) -> None:
    with opened(browser, walked.address) as page:
        page.goto(walked.address + "#/health")
        page.press("summary:has-text('default')", "Enter")  # a click would miss it while the page still grows
        page.wait_for_selector("#defaults :text('serving.nodes_every')")
        assert "it computes and serves" in page.inner_text("#leader")


def test_a_forecast_acts_only_where_a_mode_lets_it(browser: Any, walked: Walked) -> None:
    """Compare one fleet in mode publish and, with the answer changed on its way, in mode observe."""

    def observed(route: Any) -> None:
        fleet = route.fetch().json()
        states = [min(state, 1) for state in fleet["state"]]
        route.fulfill(json={**fleet, "mode": [0] * len(fleet["mode"]), "state": states})

    shown = []
    for change in (None, observed):
        with opened(browser, walked.address) as page:
            if change:
                page.route("**/dashboard/fleet", change)
                page.reload()
            page.wait_for_selector(".row .why")
            texts = set(page.locator(".row .say").all_inner_texts())
            shown.append((page.inner_text("#totals div:nth-child(4)").split("\n"), texts))
    (acting, words), (observing, others) = shown
    assert acting[0] == observing[0] == "Forecasts"
    assert {text.partition(" · ")[0] for text in words} == {"publish"}
    assert {text.partition(" · ")[0] for text in others} == {"observe"}
    assert {text.partition(" · ")[2] for text in words | others} <= {"learning", "observing", "acting", "held back"}
    assert observing[1] == "0 acting"


def test_a_coming_peak_above_the_pods_is_shown_as_a_coming_one(browser: Any, walked: Walked) -> None:
    """Show a fleet with one pod a workload, by an answer that is changed on its way."""

    def with_one_pod(route: Any) -> None:
        fleet = route.fetch().json()
        ones = [1] * len(fleet["current"])
        route.fulfill(json={**fleet, "current": ones, "recommended": ones})

    with opened(browser, walked.address) as page:
        page.route("**/dashboard/fleet", with_one_pod)
        page.reload()
        page.wait_for_selector(".row .risk.bad")
        assert page.locator(".row .risk.bad").first.inner_text().startswith("above ")
        assert "may run short: the coming peak is above what the pods carry" in page.inner_text("#causes")


def test_the_newest_report_is_one_click_away(browser: Any, walked: Walked) -> None:
    with opened(browser, walked.address) as page:
        with page.expect_popup() as opened_beside:
            page.click("#report", timeout=POLLED_MS)
        opened_beside.value.wait_for_selector("h1:text('What forecaster was worth')")
        assert page.is_visible("h1:text('Fleet')")


def test_the_next_cycle_is_on_the_page_without_reloading(browser: Any, walked: Walked) -> None:
    with opened(browser, walked.address) as page:
        page.wait_for_selector(".row .why")
        before = page.get_attribute("#age span", "title")
        tick(walked.service, walked.week.week.now + MINUTE)
        newer = "before => document.querySelector('#age span').title !== before"
        page.wait_for_function(newer, arg=before, timeout=POLLED_MS)


@pytest.mark.parametrize(("hours", "title"), [(11, "Last 11 h"), (60, "Last 3 days"), (163, "Last week")])
def test_a_week_that_is_not_over_is_called_by_its_length(browser: Any, walked: Walked, hours: int, title: str) -> None:
    """A service that was installed this morning has no week behind it."""
    four = {"unserved_share": 0.0, "short_minutes": 0, "pod_hours": 1.0, "money": None}
    until = datetime(2026, 3, 10, 12, tzinfo=UTC)
    span = {"since": (until - timedelta(hours=hours)).isoformat(), "until": until.isoformat()}
    period = {**span, "hpa": four, "forecaster": four, "workloads": {"same": 1}, "said": "The same."}

    def with_benefit(route: Any) -> None:
        benefit = {"periods": {"day": period, "week": period}, "unknown": ""}
        route.fulfill(json={**route.fetch().json(), "benefit": benefit})

    with opened(browser, walked.address) as page:
        page.route("**/dashboard/fleet", with_benefit)
        page.reload()
        page.wait_for_selector("#benefit :text('forecaster, as decided')")
        assert page.inner_text("#benefit tbody td:first-child") == title
