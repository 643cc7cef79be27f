"""docs/api.md shows what is answered."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from forecaster.serving.app import create_app
from forecaster.serving.reader import TableReader
from tests.support.asgi import Client
from tests.support.recommendations import NOON
from tests.support.tables import publish

PAGE = Path(__file__).parents[3] / "docs" / "api.md"


@pytest.fixture
def client(tmp_path: Path) -> Client:
    reader = TableReader(publish(tmp_path / "table"))
    reader.refresh()
    return Client(create_app(reader, clock=lambda: NOON + timedelta(seconds=10)))


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
