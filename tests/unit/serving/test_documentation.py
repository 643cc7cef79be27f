"""docs/api.md and docs/external-metrics.md show what is answered."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from forecaster.hpa.proposals import DEFAULT_TOLERANCE, from_average, per_pod_value
from forecaster.hpa.selectors import SELECTOR_MAX
from forecaster.publish.reader import TableReader
from forecaster.publish.values import ORDER
from forecaster.serving.access_control import (
    DIRECT_HOLD,
    DIRECT_OPEN_MAX,
    PATH_MAX,
    PROXIED_HOLD,
    PROXIED_OPEN_MAX,
)
from forecaster.serving.answers import COMMAS_MAX
from forecaster.serving.app import create_app
from forecaster.serving.connection import BODY_MAX, HEADER_LINES_MAX, HEADERS_MAX, PATIENCE_SECONDS, URL_MAX
from forecaster.serving.metrics import FAMILIES
from forecaster.serving.server import (
    HANDSHAKE_SECONDS,
    KEEP_ALIVE_SECONDS,
    LISTENER_SILENCE_SECONDS,
    MAX_CONNECTIONS,
    MAX_HANDSHAKES,
    SILENT_MAX,
)
from tests.support.asgi import Client
from tests.support.recommendations import NOON
from tests.support.tables import publish

PAGE = Path(__file__).parents[3] / "docs" / "api.md"
EXTERNAL = PAGE.with_name("external-metrics.md")


@pytest.fixture
def client(tmp_path: Path) -> Client:
    reader = TableReader(publish(tmp_path / "table"), lambda: NOON + timedelta(seconds=10))
    reader.refresh()
    return Client(create_app(reader))


def test_the_example_is_an_answer_cut_to_one_signal_and_one_clamp(client: Client) -> None:
    shown = re.search(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    answer = client.get("/api/v1/recommendations/shop/web").json()
    for cut in ("signals", "clamps"):
        answer["recommendation"][cut] = answer["recommendation"][cut][:1]
    assert json.loads(shown[1]) == answer


def test_every_metric_of_the_serving_process_is_listed(client: Client) -> None:
    listed = PAGE.read_text(encoding="utf-8")
    names = re.findall(r"# TYPE (forecaster_\w+)", client.get("/metrics").text)
    assert names
    assert [name for name in names if name not in listed and not name.endswith("_created")] == []


def test_every_gauge_of_the_workloads_is_listed() -> None:
    listed = PAGE.read_text(encoding="utf-8")
    assert [name for name in FAMILIES if name not in listed] == []


def test_shares_of_pods_would_run_away_where_the_total_stays() -> None:
    """This is why `type: Pods` is not offered, in the HPA's own arithmetic."""
    demand, target, published_for = 8000, 1000, 4
    share, count, counts = demand // published_for, published_for, []
    for _ in range(3):  # all pods become Ready before the next table
        count = from_average(count * share, count, target, count, count, DEFAULT_TOLERANCE).replicas
        counts.append(count)
    assert counts == [8, 16, 32]
    assert per_pod_value(demand, target, 4, DEFAULT_TOLERANCE).replicas == 8
    assert per_pod_value(demand, target, 8, DEFAULT_TOLERANCE).replicas == 8
    assert "8, then 16, then 32" in EXTERNAL.read_text(encoding="utf-8")


def test_every_word_of_abstaining_has_its_row() -> None:
    rows = re.findall(r"^\| `(\w+)`(?: \(default\))? \|", EXTERNAL.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(ORDER) <= set(rows)


@pytest.mark.parametrize(
    "stated",
    [
        f"{LISTENER_SILENCE_SECONDS:g} s, outside of TLS; {SILENT_MAX:,} at a time",
        f"{HANDSHAKE_SECONDS:g} s; {MAX_HANDSHAKES} at a time",
        f"| {PATIENCE_SECONDS:g} s each |",
        f"{KEEP_ALIVE_SECONDS} s; strangers go first when there are {MAX_CONNECTIONS:,} connections",
        f"{URL_MAX // 1024} KiB, {HEADERS_MAX // 1024} KiB in {HEADER_LINES_MAX} lines, {BODY_MAX // 1024} KiB",
        f"{PATH_MAX:,} characters; {SELECTOR_MAX:,} characters with {COMMAS_MAX} commas",
        f"{PROXIED_OPEN_MAX} open ones of a user of the front proxy; {DIRECT_OPEN_MAX} of any other user or address",
        f"for {PROXIED_HOLD.positive / 60:g} minutes",
        f"for {DIRECT_HOLD.positive:g} s on other connections",
        f"refused for {DIRECT_HOLD.negative:g} s",
    ],
)
def test_limits_are_as_stated(stated: str) -> None:
    assert stated in EXTERNAL.read_text(encoding="utf-8")
