"""Whatever a server, a disk or a person hands over is an answer, or an error of ours that says so."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.config.settings import Settings, parse
from forecaster.cycle.observed import Observed
from forecaster.domain.signal import CPU
from forecaster.errors import ConfigError, StoreError
from forecaster.publish.reader import TableReader
from forecaster.sources import promql
from forecaster.sources.wire import MalformedAnswer, answer_of, facts_of, verdict_of
from forecaster.store.history import HistorySettings, HistoryStore
from forecaster.store.snapshot import Snapshots
from tests.support.builders import NOON
from tests.support.prometheus import find_binaries
from tests.support.tables import publish

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
LABELS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
HOSTILE = (
    '"',
    "\\",
    '\\"',
    '"} or vector(1) #',
    "\n",
    "\\n",
    "`",
    "'",
    "$window",
    "{{ x }}",
    "é\u2028",
    '\\"} or up{a="',
)


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """Replace, remove or add some bytes of a good body."""
    begin = draw(st.integers(0, len(good)))
    end = draw(st.integers(begin, min(len(good), begin + 64)))
    return good[:begin] + draw(st.binary(max_size=64)) + good[end:]


ANSWER = json.dumps(
    {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"pod": "a"}, "value": [1.5, "2"]}]}}
).encode()


@given(damaged(ANSWER) | JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=200))
def test_a_body_of_prometheus_is_an_answer_or_malformed(body: bytes) -> None:
    try:
        answer = answer_of(body)
        assert all(isinstance(key, str) for series in answer.series for key in series.metric)
    except MalformedAnswer:
        pass
    verdict_of(body)
    facts_of(body)


@given(st.data())
@settings(max_examples=100)
def test_a_table_that_is_damaged_is_not_read_or_says_what_it_said(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = publish(Path(folder) / "table")
        good = path.read_bytes()
        path.write_bytes(data.draw(damaged(good)))
        reader = TableReader(path, lambda: NOON)
        reader.refresh()
        if reader.table is not None:
            assert path.read_bytes() == good
        else:
            assert reader.fault


def history() -> HistoryStore:
    return HistoryStore((CPU,), HistorySettings(), now=NOON)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("snapshot") / "history"
    Snapshots(path, history()).save()
    return path.read_bytes()


@given(st.data())
@settings(max_examples=100)
def test_a_snapshot_that_is_damaged_is_refused_in_words(snapshot: bytes, data: st.DataObject) -> None:
    content = data.draw(damaged(snapshot))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "history"
        path.write_bytes(content)
        try:
            Snapshots(path, history()).load()
        except StoreError as error:
            assert str(path) in str(error)  # noqa: PT017  either is right
        else:
            assert content.startswith(snapshot)


@given(damaged(Observed().encoded()) | JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=100))
def test_a_state_that_is_damaged_is_refused_and_nothing_is_taken_over(content: bytes) -> None:
    observed = Observed()
    try:
        observed.restore(content)
    except msgspec.MsgspecError:
        assert observed.state.rows == 0


@given(st.dictionaries(st.sampled_from([*Settings.model_fields, "typo"]), JSON, max_size=3))
def test_settings_are_taken_or_refused_with_their_path(given_settings: dict[str, Any]) -> None:
    try:
        parse(given_settings, "settings.yaml")
    except ConfigError as error:
        assert any(key in str(error) for key in given_settings)  # noqa: PT017  either is right


@given(LABELS)
def test_a_label_value_is_one_string_of_promql(value: str) -> None:
    """By the rules of its lexer: no quote or line end without a backslash, and what it reads back is the value."""
    text = promql.quoted(value)
    inner = text[1:-1]
    unescaped = inner.replace("\\\\", "").replace('\\"', "").replace("\\n", "")
    assert '"' not in unescaped
    assert "\\" not in unescaped
    assert "\n" not in inner
    read = inner.replace("\\\\", "\0BS").replace('\\"', '"').replace("\\n", "\n").replace("\0BS", "\\")
    assert "\0" in value or read == value


@pytest.mark.prometheus
def test_hostile_label_values_cannot_leave_their_query() -> None:
    """The parser of Prometheus itself; a value that escaped would be a second operand, or a syntax error."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no promtool: run .ci/prometheus")
    for value in (*HOSTILE, "".join(HOSTILE)):
        query = f"up{{pod={promql.quoted(value)}}}"
        done = subprocess.run(
            [binaries.promtool, "--experimental", "promql", "format", query],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (value, done.stderr)
        assert done.stdout.startswith("up{pod="), (value, done.stdout)
        assert done.stdout.count(" or ") == value.count(" or ")
