"""A new workload is forecast with the past of workloads that have its name."""

from __future__ import annotations

import numpy as np
import pytest

from forecaster.demand.fresh import FreshHistory
from forecaster.domain.signal import CPU, PeakForecast
from forecaster.domain.window import FIVE_MINUTES, Window
from forecaster.domain.workload import WorkloadId
from forecaster.forecasting.cold_start import borrowed, family
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from tests.support.builders import NOON, minutes
from tests.support.recommendations import ahead_of

DAYS, DAY = 8, 288
SOON = PeakSpan(minutes(3), minutes(30))


def workload(name: str, namespace: str = "shop") -> WorkloadId:
    return WorkloadId(namespace, "Deployment", name)


def history(*ids: WorkloadId, young: int = 24) -> FreshHistory:
    """A history with steep rises at noon; the last workload has its newest `young` points only."""
    bins = np.arange(DAYS * DAY)
    rng = np.random.default_rng(1)
    rise = 1 + 9 * (bins % DAY < DAY // 4)
    values = (rise * (1 + 0.02 * rng.standard_normal((len(ids), len(bins))))).astype(np.float32)
    values[-1, :-young] = np.nan
    weeks = Window(ids, NOON - (DAYS * DAY - 1) * FIVE_MINUTES, FIVE_MINUTES, values)
    return FreshHistory(weeks, np.empty((len(ids), 0), np.float32), NOON)


def newcomer_of(history: FreshHistory) -> PeakForecast:
    peaks = Forecaster("last-value").peaks(CPU, history, [SOON], NOON)[SOON]
    ahead = ahead_of(peaks, history.weeks.keys[-1], 0.5)
    assert isinstance(ahead, PeakForecast)
    return ahead


@pytest.mark.parametrize("name", ["web", "web-v2", "web-12", "web-canary", "web-5d4f8c7b9a", "web-v2-canary"])
def test_versions_and_parts_of_one_application_are_one_family(name: str) -> None:
    assert family(workload(name)) == family(workload("web", "other"))


@pytest.mark.parametrize("name", ["web-api", "webv2", "v2", "canary"])
def test_other_applications_are_another_family(name: str) -> None:
    assert family(workload(name)) != family(workload("web"))


def test_the_coming_rise_of_a_newcomer_is_known_from_its_relatives() -> None:
    related = newcomer_of(history(workload("web-1"), workload("web-2"), workload("web-3")))
    alone = newcomer_of(history(workload("web-1"), workload("web-2"), workload("batch")))
    assert alone.median == pytest.approx(1.0, rel=0.1)
    assert related.median > 3
    assert related.note.startswith("half of it from the past of shop/Deployment/web-")


def test_a_donor_of_another_namespace_lends_without_its_name_being_shown() -> None:
    """Readers of the newcomer's namespace see the note, and may not know other namespaces."""
    related = newcomer_of(history(workload("web-1", "bank"), workload("web-2", "bank"), workload("web-3")))
    assert related.median > 3
    assert related.note.startswith("half of it from the past of a workload of this name in another namespace")


def test_a_forecast_with_borrowed_past_is_wider_than_one_without() -> None:
    related = newcomer_of(history(workload("web-1"), workload("web-2"), workload("web-3")))
    alone = newcomer_of(history(workload("web-1"), workload("web-2"), workload("batch")))
    assert related.high - related.low > alone.high - alone.low


def test_after_two_days_a_workload_stands_on_its_own() -> None:
    assert borrowed(history(workload("web-1"), workload("web-2"), workload("web-3"), young=2 * DAY)) is None


def test_in_a_young_history_no_workload_can_lend() -> None:
    whole = history(workload("web-1"), workload("web-2"), workload("web-3"))
    weeks = Window(whole.weeks.keys, whole.weeks.start, FIVE_MINUTES, whole.weeks.values[:, -3 * DAY :])
    assert borrowed(FreshHistory(weeks, whole.recent, whole.end)) is None


def test_a_name_of_many_parts_that_could_be_endings_is_read_at_once() -> None:
    """Each of 28 parts could be a number or a hash, so there are 2**28 ways to read the name."""
    name = "a" + "-12345678" * 27 + "-x"
    assert family(workload(name)) == ("Deployment", name)
    assert family(workload(name.removesuffix("-x"))) == ("Deployment", "a")
