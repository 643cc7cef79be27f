from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.signal import CPU
from forecaster.domain.workload import WorkloadId
from forecaster.sources import blocks
from forecaster.sources.blocks import block_of, matrix_of, owner_of, single_values, workload_of
from forecaster.sources.wire import MalformedAnswer, Series, answer_of
from tests.support.http_server import matrix

if TYPE_CHECKING:
    from forecaster.domain.window import Block


def series_of(*rows: list[tuple[float, str]]) -> list[Series]:
    result = [{"metric": {}, "values": [[at, value] for at, value in row]} for row in rows]
    return answer_of(json.dumps({"status": "success", "data": {"result": result}}).encode()).series


def grid(*rows: list[tuple[float, str]], points: int = 3) -> tuple[list[list[float]], tuple[str, ...]]:
    values, remarks = matrix_of(series_of(*rows), start=100.0, step=60.0, points=points)
    return values.tolist(), remarks.sentences()


NAN = pytest.approx(math.nan, nan_ok=True)


def test_samples_land_in_the_column_of_their_time() -> None:
    assert grid([(100, "1"), (160, "2.5"), (220, "3e2")], [(160, "7")]) == (
        [[1.0, 2.5, 300.0], [NAN, 7.0, NAN]],
        (),
    )


def test_out_of_order_samples_land_where_they_belong() -> None:
    values, _ = grid([(220, "3"), (100, "1"), (160, "2")])
    assert values == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "Inf"])
def test_what_is_not_finite_is_a_gap(text: str) -> None:
    assert grid([(100, "1"), (160, text), (220, "3")]) == (
        [[1.0, NAN, 3.0]],
        ("1 samples were not finite and left as gaps",),
    )


def test_what_is_negative_is_a_gap() -> None:
    assert grid([(100, "-0.5"), (160, "2")]) == ([[NAN, 2.0, NAN]], ("1 samples were negative and left as gaps",))


def test_of_two_samples_for_one_time_the_later_counts() -> None:
    assert grid([(100, "1"), (100, "2"), (160, "3")]) == (
        [[2.0, 3.0, NAN]],
        ("1 samples came twice; the later one was used",),
    )


def test_what_was_not_asked_for_is_dropped() -> None:
    assert grid([(99, "1"), (130, "2"), (40, "3"), (280, "4"), (160, "5")]) == (
        [[NAN, 5.0, NAN]],
        ("4 samples were not at a requested time and dropped",),
    )


def test_times_are_as_exact_as_the_server_states_them() -> None:
    values, remarks = grid([(100.001, "1"), (159.9995, "2")])
    assert values == [[1.0, 2.0, NAN]]
    assert not remarks


def test_a_series_without_samples_is_all_gaps() -> None:
    native_histogram = Series(msgspec.Raw(b"{}"))
    values, _ = matrix_of([native_histogram, *series_of([], [(100, "1")])], start=100.0, step=60.0, points=1)
    assert values.tolist() == [[NAN], [NAN], [1.0]]


@pytest.mark.parametrize("text", ["one", "", "1.2.3", "0x10", "1,5"])
def test_a_sample_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(MalformedAnswer):
        grid([(100, "1"), (160, text), (220, "3")])


def test_a_sample_without_quotes_is_refused() -> None:
    body = b'{"status":"success","data":{"result":[{"metric":{},"values":[[100,1],[160,"2"]]}]}}'
    with pytest.raises(MalformedAnswer, match="expected 1 samples, found 2"):
        matrix_of(answer_of(body).series, start=100.0, step=60.0, points=2)


def test_no_series_make_an_empty_matrix() -> None:
    values, remarks = matrix_of([], start=0.0, step=60.0, points=5)
    assert values.shape == (0, 5)
    assert remarks.sentences() == ()


def test_single_values_do_not_ask_for_the_time() -> None:
    body = b'{"status":"success","data":{"result":[{"metric":{},"value":[12.5,"3"]},{"metric":{}}]}}'
    assert single_values(answer_of(body).series).tolist() == [3.0, NAN]


finite = st.floats(min_value=0, max_value=1e300, allow_nan=False)


@given(
    rows=st.lists(st.lists(st.none() | finite, min_size=4, max_size=4), max_size=6),
    chunk=st.integers(min_value=1, max_value=300),
)
def test_any_matrix_survives_the_way_through_text_whatever_the_chunks(
    rows: list[list[float | None]], chunk: int
) -> None:
    texts = [[(60.0 * at, repr(value)) for at, value in enumerate(row) if value is not None] for row in rows]
    expected = np.array([[math.nan if value is None else value for value in row] for row in rows]).reshape(-1, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_CHUNK", chunk)
        values, _ = matrix_of(series_of(*texts), start=0.0, step=60.0, points=4)
    np.testing.assert_array_equal(values, expected)


START = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
T0 = START.timestamp()
WEB = {"namespace": "shop", "workload_kind": "Deployment", "workload": "web"}


def block(*series: tuple[dict[str, str], list[tuple[float, str]]], **envelope: object) -> Block:
    answer = answer_of(matrix(*series, **envelope).body)
    return block_of(answer, CPU, START, timedelta(minutes=1), 2)


def test_a_series_becomes_a_row() -> None:
    made = block((WEB, [(T0, "1"), (T0 + 60, "2")]))
    assert made.ids == (WorkloadId("shop", "Deployment", "web"),)
    assert made.values.tolist() == [[1.0, 2.0]]
    assert made.warnings == ()


def test_a_workload_named_twice_has_one_row_with_the_larger_values() -> None:
    """A query in the settings may have a label too many; using the smaller value would be more dangerous."""
    made = block((WEB | {"x": "1"}, [(T0, "1"), (T0 + 60, "5")]), (WEB | {"x": "2"}, [(T0, "3")]))
    assert made.values.tolist() == [[3.0, 5.0]]
    assert made.warnings == ("cpu: 1 series name a workload that another one names; the larger value was used",)


@pytest.mark.parametrize("label", WEB)
def test_a_series_that_does_not_name_its_workload_is_dropped_and_counted(label: str) -> None:
    nameless = {key: value for key, value in WEB.items() if key != label}
    made = block((nameless, [(T0, "1")]))
    assert made.ids == ()
    assert made.values.shape == (0, 2)
    assert made.warnings == ("cpu: 1 series lack a usable namespace, workload_kind or workload and were dropped",)


def test_remarks_of_the_server_are_kept_short_and_few() -> None:
    made = block(warnings=["x" * 5000] * 50)
    assert len(made.warnings) == 10
    assert max(map(len, made.warnings)) < 220


def test_odd_names_stay_as_they_are() -> None:
    odd = {"namespace": "ä/ö", "workload_kind": "K", "workload": 'w"\\'}
    assert workload_of(odd) == WorkloadId("ä/ö", "K", 'w"\\')


@pytest.mark.parametrize("name", ["a\nb", "a\u2028b", "\0", "x" * 254, "=1+1", "+1", "-1", "@a"])
@pytest.mark.parametrize("label", WEB)
def test_a_name_that_makes_lines_or_is_a_formula_of_a_spreadsheet_is_none(label: str, name: str) -> None:
    assert workload_of(WEB | {label: name}) is None


def test_the_same_labels_are_the_same_workload_object() -> None:
    first, second = (Series(msgspec.Raw(msgspec.json.encode(WEB))) for _ in range(2))
    assert owner_of(first) == workload_of(first.metric)
    assert owner_of(first) is owner_of(second)
    assert owner_of(Series(msgspec.Raw(msgspec.json.encode(WEB | {"workload": "cart"})))) != owner_of(first)


@pytest.mark.parametrize("labels", [b'{"namespace":1}', b'["shop"]', b'{"namespace":"\xff"}'])
def test_labels_that_are_none_are_a_malformed_answer(labels: bytes) -> None:
    body = b'{"status":"success","data":{"result":[{"metric":%b,"values":[[100,"1"]]}]}}' % labels
    with pytest.raises(MalformedAnswer):
        block_of(answer_of(body), CPU, START, timedelta(minutes=1), 2)
