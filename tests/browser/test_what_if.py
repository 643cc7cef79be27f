"""Trying other settings in a real browser: the service's own history behind it, answers while a slider moves."""

from __future__ import annotations

import os
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from forecaster.app.facts import FactsServer
from forecaster.app.outlets import table_path
from forecaster.app.serve import known_of
from forecaster.cycle.workload_facts import encoded_facts
from tests.browser.conftest import inked, opened, served
from tests.support.builders import NOON, hpa, workload
from tests.support.composed import composed, recorded_cluster, tick

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.browser
ANSWER_MS = 200
CPU_MS = 20
"""Milliseconds of CPU for a replay of one position of a slider."""
FIRST_MS = 20_000
SLIDER = "input[name={}]"
SET = "(one, value) => { one.value = value; one.dispatchEvent(new Event('input')); }"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("s")
    web = workload("web", autoscaler=hpa(lowest=2, highest=20))
    with recorded_cluster((web,), cores=4.0) as cluster, composed(cluster, directory) as running:
        tick(running, NOON)
        facts = FactsServer(partial(encoded_facts, running.cycle), directory)
        facts.start()
        with served(table_path(directory), facts=str(facts.path)) as address:
            yield f"{address}#/workloads/shop/Deployment/web"
        facts.close()


class Took(NamedTuple):
    """Milliseconds until the page has the answer, and of the CPU that it took."""

    wall: float
    cpu: float


def moved(page: Any, name: str, value: str) -> Took:
    """Move a slider, and wait for the answer."""
    page.eval_on_selector("#what-if", "one => delete one.dataset.milliseconds")
    page.eval_on_selector(SLIDER.format(name), SET, value)
    page.wait_for_selector("#what-if[data-milliseconds]")
    return Took(*(float(page.get_attribute("#what-if", f"data-{name}")) for name in ("milliseconds", "cpu")))


def test_a_slider_is_answered_while_it_moves_and_its_policy_can_be_copied(browser: Any, service: str) -> None:
    """A page that is refused while the process replays for somebody else tries again."""
    with opened(browser, service.partition("#")[0], faults=["429"]) as page:
        page.goto(service)
        page.click("#what-if-open")
        page.wait_for_selector("#what-if-accounts table", timeout=FIRST_MS)
        assert page.inner_text("#what-if-yaml").strip() == "# No setting of the policy is changed."
        page.uncheck("#what-if .check input")
        page.wait_for_selector("#what-if-yaml:text('gate: false')")
        took = [moved(page, "quantile", value) for value in ("0.93", "0.95", "0.97", "0.98", "0.99")]
        assert median(answer.cpu for answer in took) <= CPU_MS
        assert median(answer.wall for answer in took) <= ANSWER_MS or os.getloadavg()[0] > (os.cpu_count() or 1)
        assert "quantile: 0.99" in page.inner_text("#what-if-yaml")
        assert "gate: false" in page.inner_text("#what-if-yaml")
        assert inked(page, "#what-if-chart canvas") > 2000
        now, changed = page.locator("#what-if-accounts tbody tr").all_inner_texts()[1:]
        assert float(now.split("\t")[1]) < float(changed.split("\t")[1].split()[0])


def test_a_value_that_is_out_of_bounds_is_said(browser: Any, service: str) -> None:
    with opened(browser, service.partition("#")[0], faults=["422"]) as page:
        page.goto(service)
        page.click("#what-if-open")
        page.wait_for_selector("#what-if-accounts table", timeout=FIRST_MS)
        moved(page, "max_replicas", "5")
        page.eval_on_selector(SLIDER.format("min_replicas"), SET, "9")
        page.wait_for_selector("#what-if-said:text('must not be below min_replicas 9')")


def test_a_page_says_why_it_cannot_look_back(browser: Any, service: str) -> None:
    with opened(browser, service.partition("#")[0], faults=["422"]) as page:
        page.route("**/dashboard/past/**", lambda route: route.fulfill(status=422, json={"detail": "it is gone"}))
        page.goto(service)
        page.wait_for_selector("#outcomes:has-text('it is gone')")
        assert inked(page, "#demand canvas") > 1000


def test_the_page_of_a_workload_in_a_shard_is_drawn_from_the_answer_of_its_worker(
    browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The forecast and the measured demand are the worker's: there is no picture of the fleet."""
    directory = tmp_path_factory.mktemp("s")
    web, sharding = workload("web", autoscaler=hpa(lowest=2, highest=20)), {"enabled": True, "shards": 2}
    with recorded_cluster((web,), cores=4.0) as cluster, composed(cluster, directory, sharding=sharding) as running:
        tick(running, NOON)
        facts = FactsServer(known_of(running.cycle), directory)
        facts.start()
        with served(table_path(directory), facts=str(facts.path)) as address, opened(browser, address) as page:
            page.goto(f"{address}#/workloads/shop/Deployment/web")
            page.wait_for_selector("#demand:has-text('the peak that came')", timeout=3 * FIRST_MS)
            assert inked(page, "#demand canvas") > 2000
            page.click("#what-if-open")
            page.wait_for_selector("#what-if-accounts table", timeout=3 * FIRST_MS)
            page.goto(f"{address}#/nodes")
            page.wait_for_selector("#nodes-said:has-text('`forecaster nodes` reads them itself')")
        facts.close()
