from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forecaster.domain.signal import CPU, MEMORY, PODS, REQUESTS
from forecaster.sources.recorded import COMPOSED, LOAD, MINUTE, Recording, load_recording


@pytest.fixture(scope="module")
def recording() -> Recording:
    return load_recording()


def test_there_is_a_week_to_learn_from_and_more_to_play(recording: Recording) -> None:
    assert recording.end - recording.start > timedelta(days=12)


def test_every_workload_has_cpu_for_every_minute(recording: Recording) -> None:
    cpu = recording.values[CPU]
    assert cpu.shape == (len(COMPOSED), recording.minutes)
    assert np.isfinite(cpu).all()
    assert (cpu >= 0).all()


def test_no_pod_uses_more_memory_than_its_limit(recording: Recording) -> None:
    """A cluster would have killed it."""
    limits = np.array([[workload.resources.memory_limit] for workload in recording.workloads], float)
    assert np.nanmax(recording.values[MEMORY] / recording.values[PODS] / limits) < 1


def test_a_recorded_minute_is_stamped_with_its_end(recording: Recording) -> None:
    assert recording.start == datetime(2021, 10, 8, 0, 1, tzinfo=UTC)


def test_gaps_stay_gaps(recording: Recording) -> None:
    (row,) = [index for index, workload in enumerate(recording.workloads) if workload.id.name == "storefront"]
    requests = recording.values[REQUESTS][row]
    assert np.isnan(requests).sum() == 7 * 5  # seven five-minute samples that CloudWatch did not have


def test_a_signal_that_was_not_recorded_is_not_there(recording: Recording) -> None:
    (row,) = [index for index, workload in enumerate(recording.workloads) if workload.id.name == "checkout"]
    assert np.isnan(recording.values[MEMORY][row]).all()


def test_pods_keep_within_the_bounds_of_their_hpa(recording: Recording) -> None:
    for workload, pods in zip(recording.workloads, recording.values[PODS], strict=True):
        if workload.autoscaler:
            assert pods.min() >= workload.autoscaler.min_replicas
            assert pods.max() <= workload.autoscaler.max_replicas


def test_the_fleet_begins_with_the_pods_of_its_time(recording: Recording) -> None:
    at = recording.start + timedelta(days=7)
    fleet = recording.fleet(at)
    assert [workload.replicas for workload in fleet.workloads()] == recording.at(PODS, at).tolist()


def test_before_and_after_the_recording_nothing_is_known(recording: Recording) -> None:
    for at in (recording.start - MINUTE, recording.end + MINUTE):
        assert np.isnan(recording.at(CPU, at)).all()


def test_the_notice_names_the_origin_of_every_series() -> None:
    notice = LOAD.with_name("NOTICE.md").read_text(encoding="utf-8")
    with np.load(LOAD, allow_pickle=False) as arrays:
        series = set(arrays.files)
    assert series == {part.series for composed in COMPOSED for part in composed.parts.values()}
    for name in series:
        family, _, rest = name.partition("/")
        assert family in notice
        assert rest.removeprefix("input").removesuffix("_memory") in notice


def test_the_bundle_is_small() -> None:
    assert LOAD.stat().st_size < 1_000_000
