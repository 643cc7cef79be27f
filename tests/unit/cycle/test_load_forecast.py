"""The coming load of a pod: forecast totals divided by the pods that there will be."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.cycle.containers import Containers
from forecaster.cycle.load_forecast import PodLoads, carried_at
from forecaster.cycle.sizes import PodSizes
from forecaster.demand.fresh import FreshHistory
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import BUILT_IN, CPU
from forecaster.domain.window import FIVE_MINUTES, Block
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.horizontal.targets import UtilizationTarget
from forecaster.store.history import HistoryStore
from forecaster.vertical.sizing.pod import size
from tests.support.builders import GIB, NOON, workload
from tests.support.fakes import SHORT

if TYPE_CHECKING:
    from forecaster.domain.workload import Workload
    from forecaster.vertical.sizing.load_forecast import PodLoad

DAYS = 6
REQUESTED = Resources(1.0, None, GIB, GIB)
ALONE = workload("web", autoscaler=None, resources=REQUESTED, replicas=2)
SOON = PeakSpan(timedelta(minutes=3), timedelta(minutes=3))


def rising() -> np.ndarray:
    """Total of two pods: half a core on quiet days, three cores since this morning."""
    total = np.full(DAYS * 288, 0.5)
    total[-144:] = 3.0
    return total


def kept(total: np.ndarray, pods: float = 2.0) -> HistoryStore:
    history = HistoryStore(BUILT_IN.measured, SHORT.model_copy(update={"weeks_kept": timedelta(days=DAYS)}), now=NOON)
    start = NOON - (len(total) - 1) * FIVE_MINUTES
    for signal, values in (("cpu", total), ("memory", total * 0 + GIB), ("pods", total * 0 + pods)):
        history.write(Block(BUILT_IN.by_name[signal], (ALONE.id,), start, FIVE_MINUTES, values[None]))
    return history


def loads(history: HistoryStore, policies: Policies | None = None, *, fitted: bool = True) -> PodLoads:
    """Loads with the last value as forecast, so that the test knows it."""
    forecaster = Forecaster("last-value")
    weeks = history.window(CPU, FIVE_MINUTES)
    if fitted:
        whole = FreshHistory(weeks, np.empty((len(weeks.keys), 0), np.float32), weeks.end)
        forecaster.peaks(CPU, whole, [SOON], NOON)
    return PodLoads(history, forecaster, policies or Policies(Policy()))


def load_of(workload: Workload, total: np.ndarray, **vertical: object) -> PodLoad | None:
    policy = Policy.model_validate({"vertical": vertical})
    return loads(kept(total), Policies(policy)).of([workload], policy.vertical).get(workload.id)


def test_more_load_than_on_the_days_before_is_expected() -> None:
    load = load_of(ALONE, rising())
    assert load is not None
    assert load.ratio > 1.5
    assert load.likeness[0] > load.likeness[-1]


def test_less_lowers_only_where_the_policy_says_so() -> None:
    falling = rising()[::-1].copy()
    falling[:144] = 0.5
    falling[144:-10] = 3.0
    raising, following = (load_of(ALONE, falling, load_forecast=effect) for effect in ("raise", "follow"))
    assert raising is not None
    assert following is not None
    assert (raising.ratio, raising.growth) == (1.0, 1.0)
    assert following.ratio < 1


def test_a_signal_that_came_from_another_process_is_the_same_signal() -> None:
    """Shards get policies by pickle; a target remembers the first signal of a name."""
    elsewhere = pickle.loads(pickle.dumps(CPU))  # noqa: S301  our own
    assert elsewhere is not CPU
    assert carried_at(UtilizationTarget(elsewhere, 25, 1.0), CPU) == 0.25


def test_what_an_hpa_adds_pods_for_is_no_load_of_one_pod() -> None:
    hpa = Autoscaler("web", 1, 20, (Target("cpu", TargetType.UTILIZATION, 0.25),))
    load = load_of(workload("web", autoscaler=hpa, resources=REQUESTED, replicas=2), rising())
    assert load is not None
    assert (load.ratio, load.growth) == (pytest.approx(1.0, rel=0.01), pytest.approx(1.0, rel=0.01))


def test_a_policy_that_ignores_the_forecast_asks_for_none() -> None:
    assert load_of(ALONE, rising(), load_forecast="ignore") is None


def test_a_model_that_is_not_fitted_yet_expects_no_load() -> None:
    policy = Policy()
    assert loads(kept(rising()), fitted=False).of([ALONE], policy.vertical) == {}


def test_sizes_say_what_the_forecast_changed() -> None:
    history, policies = kept(rising()), Policies(Policy())
    plain, informed = PodSizes(), PodSizes()
    plain.renew(history, Containers(), policies, [ALONE])
    informed.renew(history, Containers(), policies, [ALONE], loads(history))
    before, after = (size(ALONE, sizes.of(ALONE.id), Policy().vertical) for sizes in (plain, informed))
    assert "times that of the days it was learned from" in after.message
    assert "times that of the days" not in before.message
    (now,), (then,) = informed.of(ALONE.id), plain.of(ALONE.id)
    assert now.cpu is not None
    assert then.cpu is not None
    assert now.cpu.request >= then.cpu.request
