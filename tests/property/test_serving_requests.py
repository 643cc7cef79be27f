"""Every request at every address gets an answer or a refusal: none ends in an error of ours."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette

from forecaster.publish.reader import TableReader
from forecaster.publish.table import pictures_path
from forecaster.serving.app import create_app
from forecaster.serving.replicas import ReplicaFiles
from tests.support.asgi import Client
from tests.unit.serving.test_dashboard import NOON, ROWS, publish

if TYPE_CHECKING:
    from pathlib import Path

REFUSALS = {400, 403, 404, 405, 406, 412, 413, 415, 422, 503}
KNOWN = st.sampled_from([*ROWS[0].id, ROWS[1].id.name, "cpu", "demand", "forecaster_demand", "table", "..", "%2e%2e"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PARAMETERS = st.sampled_from(
    ["limit", "continue", "kind", "namespace", "verdict", "reason", "rows", "since", "signal", "at", "tag", "host", "q"]
)
VALUES = TEXTS | KNOWN | st.integers(-(10**30), 10**30).map(str) | st.sampled_from(["nan", "1e999", "-0", "²", "\0"])
HEADERS = st.dictionaries(
    st.sampled_from(["accept", "accept-encoding", "if-none-match", "content-type", "range", "origin"]),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
    max_size=3,
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[Client, list[str]]:
    """Client of a replica's plain port, and all addresses that answer there."""
    table: Path = tmp_path_factory.mktemp("requests") / "table"
    publish(table, *ROWS)
    now = (NOON + timedelta(seconds=10)).replace
    readers = TableReader(table, now), TableReader(pictures_path(table))
    for reader in readers:
        reader.refresh()
    app = create_app(readers[0], pictures=readers[1], replicas=ReplicaFiles(table, now))
    assert isinstance(app.pages, Starlette)
    return Client(app), sorted(route.path_format for route in app.pages.routes if hasattr(route, "path_format"))


@given(st.data())
@settings(max_examples=200)
def test_every_request_is_answered(served: tuple[Client, list[str]], data: st.DataObject) -> None:
    client, addresses = served
    path = data.draw(st.sampled_from(addresses))
    while "{" in path:
        before, _, rest = path.partition("{")
        name = quote(data.draw(KNOWN | TEXTS), safe=data.draw(st.sampled_from(["", "/"])))
        path = before + name + rest.partition("}")[2]
    parameters = data.draw(st.dictionaries(PARAMETERS | TEXTS, VALUES, max_size=3))
    query = "&".join(f"{quote(name)}={quote(value)}" for name, value in parameters.items())
    method = data.draw(st.sampled_from(["GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]))
    body = data.draw(st.none() | st.binary(max_size=100)) if method in {"POST", "PUT"} else None
    answer = client.request(method, f"{path}?{query}", body, data.draw(HEADERS))  # type: ignore[arg-type]
    assert answer.status_code < 400 or answer.status_code in REFUSALS, (method, path, query, answer.text)
