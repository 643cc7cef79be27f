"""Pictures of every page at three widths in both themes, for the documents.

forecaster demo --serve &    # until it has played
python -m tests.browser.pictures http://127.0.0.1:8080/ docs/pictures
"""

from __future__ import annotations

import json
import shutil
import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from PIL import Image
from playwright.sync_api import sync_playwright

from forecaster.app.demo import staged
from forecaster.cycle.node_document import document
from forecaster.cycle.node_forecast import node_forecast
from forecaster.vertical.admission.cluster import Cluster
from tests.browser.conftest import NAMES, QUIET, opened
from tests.browser.made_of import MADE_OF, WIDTHS, drawn_by
from tests.support.cluster_rules import node, resident

if TYPE_CHECKING:
    from collections.abc import Callable

COLOURS = 200
FIRST_MS = 30_000
TALL = 1100
NODES = 8


def _workload(page: Any) -> None:
    page.wait_for_selector("#outcomes canvas", timeout=FIRST_MS)


def _what_if(page: Any) -> None:
    _workload(page)
    page.click("#what-if-open")
    page.wait_for_selector("#what-if-accounts table", timeout=FIRST_MS)
    page.uncheck("#what-if .check input")
    page.wait_for_selector("#what-if-yaml:text('gate: false')")
    page.eval_on_selector("input[name=quantile]", "one => { one.value = 0.98; one.dispatchEvent(new Event('input')); }")
    page.wait_for_selector("#what-if-yaml:text('quantile: 0.98')", timeout=FIRST_MS)
    page.eval_on_selector("#what-if", "one => one.scrollIntoView()")


PAGES: dict[str, tuple[str, Callable[[Any], None]]] = {
    "fleet": ("", lambda page: page.wait_for_selector(".row .why")),
    "workload": ("#/workloads/shop/Deployment/checkout", _workload),
    "what-if": ("#/workloads/shop/Deployment/checkout", _what_if),
    "accuracy": ("#/accuracy", lambda page: page.wait_for_selector("#models")),
    "nodes": ("#/nodes", lambda page: page.wait_for_selector("#pools canvas")),
    "health": ("#/health", lambda page: page.wait_for_selector("#sources table")),
}


def nodes_of_the_demo() -> bytes:
    """The workloads of the demo on nodes that are made up: behind recorded load there are none."""
    with staged() as stage:
        cycle = stage.cycle
        workloads = cycle.run(stage.begin).inventory.workloads
        owners = [workload.id.path for workload in workloads for _ in range(workload.replicas)]
        pods = [resident(f"n{i % NODES}", "1", "1Gi", workload=owner) for i, owner in enumerate(owners)]
        pool = {"karpenter.sh/nodepool": "general"}
        nodes = [node(f"n{i}", "16", "64Gi", labels=pool) for i in range(NODES)]
        cluster = Cluster(nodes=tuple(nodes), residents=tuple(pods))
        ahead = node_forecast(workloads, cycle.history, cycle.forecaster, cycle.policies, cluster, stage.begin)
    return msgspec.json.encode(document(ahead))


def taken(chromium: Any, address: str, name: str, suffix: str, theme: str, nodes: bytes) -> bytes:
    """A picture of a page that stands still."""
    width, (path, ready) = WIDTHS[suffix], PAGES[name]
    with opened(chromium, address, width=width, dark=theme == "dark", faults=["429"]) as page:
        page.route("**/dashboard/nodes", lambda route: route.fulfill(body=nodes))
        page.set_viewport_size({"width": width, "height": TALL})
        page.goto(address + path)
        ready(page)
        page.wait_for_selector("#age:not(:empty)")
        page.wait_for_timeout(800)
        picture: bytes = page.screenshot()
        return picture


def main(address: str, folder: Path) -> None:
    """Take all of them."""
    program, nodes = next(filter(None, map(shutil.which, NAMES))), nodes_of_the_demo()
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=[*QUIET])
        for name in PAGES:
            for suffix in WIDTHS:
                for theme in ("light", "dark"):
                    picture = taken(chromium, address, name, suffix, theme, nodes)
                    _keep(picture, folder / f"{name}{suffix}-{theme}.png")
        chromium.close()
    (folder / MADE_OF).write_text(json.dumps(drawn_by(), indent=1) + "\n", encoding="utf-8")


def _keep(picture: bytes, file: Path) -> None:
    """With few colours: a page has few."""
    image = Image.open(BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(file, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
