"""Checkpoints of the VPA: their contents, and the effect of the open window's peak."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.oracles.vpa_checkpoints import CheckpointError, checkpoint_object, loaded, saved
from tests.oracles.vpa_histograms import of_unix
from tests.oracles.vpa_recommender import recommend
from tests.oracles.vpa_samples import AggregateState, ContainerState, merged, without_open_peak

BEGIN = 1_700_006_400
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def fed(days: int = 3) -> tuple[AggregateState, ContainerState]:
    """An hourly sample of a quarter of a core and 300 MB."""
    state = AggregateState()
    container = ContainerState(state)
    for hour in range(24 * days):
        container.add_cpu(250, of_unix(BEGIN + 3600 * hour))
        container.add_memory(300_000_000, of_unix(BEGIN + 3600 * hour))
    return state, container


def test_the_object_is_named_as_the_vpa_names_it() -> None:
    checkpoint = checkpoint_object("shop", "web-vpa", "app", fed()[0], NOW)
    assert checkpoint["metadata"] == {"namespace": "shop", "name": "web-vpa-app"}
    assert checkpoint["spec"] == {"vpaObjectName": "web-vpa", "containerName": "app"}
    assert checkpoint["status"]["version"] == "v3"
    assert checkpoint["status"]["firstSampleStart"] == "2023-11-15T00:00:00Z"


def test_what_is_loaded_recommends_the_same() -> None:
    state, _ = fed()
    again = loaded(saved(state, NOW))
    assert recommend({"app": again}) == recommend({"app": state})


def test_another_version_is_refused() -> None:
    with pytest.raises(CheckpointError, match="only v3"):
        loaded({"version": "v2"})


def test_the_peak_of_the_open_window_is_not_saved_and_not_lost() -> None:
    """After a restart the day's peak will be seen again; saving it would count it twice."""
    state, container = fed()
    before = state.memory.histogram.total
    totals: list[float] = []
    without_open_peak(container, lambda: totals.append(state.memory.histogram.total))
    assert totals[0] < before
    assert state.memory.histogram.total == pytest.approx(before)


def test_states_of_several_pods_are_one() -> None:
    first, other = fed()[0], fed()[0]
    whole = merged([first, other])
    assert whole.samples == first.samples + other.samples
    assert whole.first_sample == first.first_sample
    assert recommend({"app": whole})["app"].target == recommend({"app": first})["app"].target
