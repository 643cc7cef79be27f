"""From a decision about a workload at zero to KEDA's question whether it is active."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from forecaster.domain.workload import Target, TargetType
from forecaster.publish.reader import TableReader
from forecaster.publish.values import OfferedValue
from forecaster.serving.keda.service import Trigger, TriggerValues, parse_trigger
from tests.support.builders import NO_FORECAST, NOON, hpa, outlooks, workload
from tests.support.horizontal import decided
from tests.support.integrate_page import of_kind
from tests.support.tables import publish

if TYPE_CHECKING:
    from forecaster.domain.signal import Unknown
    from forecaster.publish.values import Answer
    from forecaster.serving.answers import NotThere

OF_KEDA = Target("s0-forecaster-requests", TargetType.AVERAGE_VALUE, 100.0)
EXAMPLE = Path(__file__).parents[4] / "deploy" / "examples" / "keda-scaledobject.yaml"


def shipped_triggers() -> list[dict[str, str]]:
    """The metadata of the triggers of ours that are shipped: of the example, and of docs/integrate.md."""
    metadata = []
    for text in (EXAMPLE.read_text(encoding="utf-8"), *of_kind("kubectl")):
        for document in yaml.safe_load_all(text):
            triggers = document["spec"].get("triggers", []) if document["kind"] == "ScaledObject" else []
            metadata += [trigger["metadata"] for trigger in triggers if trigger["type"] == "external-push"]
    return metadata


def is_active(folder: Path, now: float | Unknown, coming: float | Unknown, metadata: dict[str, str]) -> bool:
    """Whether KEDA is told to wake a workload at zero."""
    trigger = parse_trigger("shop", "web", metadata)
    assert isinstance(trigger, Trigger)
    asleep = workload(replicas=0, autoscaler=hpa(OF_KEDA))
    row = decided(outlooks(requests=now, requests_ahead=coming), workload=asleep)
    reader = TableReader(publish(folder / "table", row, mode="publish"), lambda: NOON + timedelta(seconds=10))
    reader.refresh()
    values = TriggerValues(reader)
    value = values.value(trigger)
    assert isinstance(value, OfferedValue)
    return values.active(trigger, value)


@pytest.mark.parametrize("metadata", shipped_triggers(), ids=["example", "page"])
@pytest.mark.parametrize(
    ("now", "coming", "expected"),
    [
        pytest.param(0.0, 350.0, True, id="load is coming"),
        pytest.param(350.0, 0.0, True, id="load is there, and no forecast lowers it"),
        pytest.param(0.0, 0.2, False, id="less than the activation is coming"),
        pytest.param(0.0, NO_FORECAST, False, id="nothing is there, and nothing is forecast"),
        pytest.param(NO_FORECAST, NO_FORECAST, False, id="nothing is known"),
    ],
)
def test_a_workload_at_zero_is_woken_by_what_is_there_or_coming(
    tmp_path: Path, now: float | Unknown, coming: float | Unknown, metadata: dict[str, str], *, expected: bool
) -> None:
    assert is_active(tmp_path, now, coming, metadata) is expected


class CountedValues(TriggerValues):
    """Values of a fleet; counts how often one is made."""

    made = 0

    def value(self, trigger: Trigger) -> Answer | NotThere:
        self.made += 1
        return super().value(trigger)


def test_a_stream_says_what_changes_and_asks_a_table_that_stays_only_now_and_then(tmp_path: Path) -> None:
    def published(requests: float) -> None:
        row = decided(outlooks(requests=requests), workload=workload(replicas=0, autoscaler=hpa(OF_KEDA)))
        publish(tmp_path / "table", row, mode="publish")
        reader.refresh()

    reader = TableReader(tmp_path / "table", lambda: NOON + timedelta(seconds=10))
    values = CountedValues(reader)
    trigger = parse_trigger("shop", "web", {"signal": "requests", "target": "100"})
    assert isinstance(trigger, Trigger)
    news = values.news(trigger)
    assert next(news) is None  # no table yet
    published(0.0)
    assert [next(news) for _ in range(58)] == [False, *[None] * 57]
    published(350.0)
    assert next(news) is True
    assert values.made == 8
