from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.domain.signal import CPU
from forecaster.domain.workload import WorkloadId
from forecaster.sources.blocks import block_of, owner_of, workload_of
from forecaster.sources.wire import MalformedAnswer, Series, answer_of
from tests.support.http_server import matrix

if TYPE_CHECKING:
    from forecaster.domain.window import Block

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
    """A query of one's own with a label too many; the smaller value would be the more dangerous mistake."""
    made = block((WEB | {"x": "1"}, [(T0, "1"), (T0 + 60, "5")]), (WEB | {"x": "2"}, [(T0, "3")]))
    assert made.values.tolist() == [[3.0, 5.0]]
    assert made.warnings == ("cpu: 1 series name a workload that another one names; the larger value was kept",)


@pytest.mark.parametrize("label", WEB)
def test_a_series_that_does_not_name_its_workload_is_dropped_and_counted(label: str) -> None:
    nameless = {key: value for key, value in WEB.items() if key != label}
    made = block((nameless, [(T0, "1")]))
    assert made.ids == ()
    assert made.values.shape == (0, 2)
    assert made.warnings == ("cpu: 1 series lack namespace, workload_kind or workload and were dropped",)


def test_remarks_of_the_server_are_kept_short_and_few() -> None:
    made = block(warnings=["x" * 5000] * 50)
    assert len(made.warnings) == 10
    assert max(map(len, made.warnings)) < 220


def test_odd_names_stay_as_they_are() -> None:
    odd = {"namespace": "ä/ö", "workload_kind": "K", "workload": 'w"\\\n'}
    assert workload_of(odd) == WorkloadId("ä/ö", "K", 'w"\\\n')


def test_the_same_labels_are_the_same_workload_object() -> None:
    one, again = (Series(msgspec.Raw(msgspec.json.encode(WEB))) for _ in range(2))
    assert owner_of(one) == workload_of(one.metric)
    assert owner_of(one) is owner_of(again)
    assert owner_of(Series(msgspec.Raw(msgspec.json.encode(WEB | {"workload": "cart"})))) != owner_of(one)


@pytest.mark.parametrize("labels", [b'{"namespace":1}', b'["shop"]', b'{"namespace":"\xff"}'])
def test_labels_that_are_none_are_a_malformed_answer(labels: bytes) -> None:
    body = b'{"status":"success","data":{"result":[{"metric":%b,"values":[[100,"1"]]}]}}' % labels
    with pytest.raises(MalformedAnswer):
        block_of(answer_of(body), CPU, START, timedelta(minutes=1), 2)
