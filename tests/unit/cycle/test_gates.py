"""Gates in the cycle: a workload whose policy asks for one is judged in its turn, by its own days."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.cycle.gates import JUDGING_INTERVAL, ROUND, SOONEST, ForecastGates
from forecaster.cycle.observed import Observed
from forecaster.cycle.targets import Targets
from forecaster.demand.latest import DayAgo
from forecaster.domain.policies import Policies
from forecaster.domain.policy import PolicySelector
from forecaster.domain.signal import CPU, REQUESTS, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Inventory, Window
from forecaster.domain.workload import Target, TargetType
from forecaster.errors import StoreError
from forecaster.horizontal.gate_states import GateState
from forecaster.replay.judging import full_pods
from forecaster.store.state import ObservedFile
from tests.support.builders import CPU_HALF, NOON, hpa, minutes, policy, workload

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.domain.workload import Workload

GATED = Policies(policy(gate=True))
WEB, CART = workload("web"), workload("cart")


class Weeks:
    """A history of five-minute points, and of minutes if `by_minute` is given."""

    def __init__(
        self, values: np.ndarray, *names: str, requests: np.ndarray | None = None, by_minute: np.ndarray | None = None
    ) -> None:
        keys = tuple(workload(name).id for name in names)
        unknown = np.full((len(keys), 10), np.nan) if by_minute is None else by_minute
        self.minutes = Window(keys, NOON - (unknown.shape[1] - 1) * MINUTE, MINUTE, unknown.astype(np.float32))
        start = NOON - (values.shape[1] - 1) * FIVE_MINUTES
        self.weeks = Window(keys, start, FIVE_MINUTES, values.astype(np.float32))
        self.requests = self.weeks if requests is None else replace(self.weeks, values=requests.astype(np.float32))

    def window(self, signal: Signal, step: timedelta) -> Window:
        if step == MINUTE:
            return self.minutes
        return self.requests if signal == REQUESTS else self.weeks


def hours(count: float) -> timedelta:
    return timedelta(hours=count)


def judged(gates: ForecastGates) -> set[str]:
    """Names of the workloads that have been judged."""
    return {id_.name for id_ in gates.fleet.row if gates.judged(id_)}


def same(first: ForecastGates, second: ForecastGates) -> bool:
    """Whether both have equal gates for equal workloads."""
    columns, others = first.gates.arrays(), second.gates.arrays()
    known = {name: columns[name] == others[name] for name in columns if columns[name].dtype.kind != "f"}
    floats = (name for name in columns if name not in known)
    return (
        first.fleet.row == second.fleet.row
        and all(np.all(equal) for equal in known.values())
        and all(np.array_equal(columns[name], others[name], equal_nan=True) for name in floats)
    )


def daily(days: int) -> np.ndarray:
    """A peak of five pods for ten minutes at the same time each day, on a load of one and a half."""
    bins = np.arange(days * 288)
    return np.where(bins % 288 % 144 < 2, 2.4, 0.7) + 0.01 * np.sin(bins)


def renewed(
    gates: ForecastGates, history: Weeks, *workloads: Workload, under: Policies = GATED, at: datetime = NOON
) -> list[str]:
    """Run the gates of one cycle, and return its lines for the log."""
    moved, failures = gates.renew(history, under, Targets(Inventory(NOON, workloads)), at)
    assert failures == []
    return moved


def test_without_a_gate_in_its_policy_a_workload_is_not_judged() -> None:
    gates = ForecastGates()
    assert renewed(gates, Weeks(daily(6)[None], "web"), WEB, under=Policies(policy(gate=False))) == []
    assert len(gates.fleet.row) == 0


def test_a_workload_without_days_behind_it_is_observed() -> None:
    gates = ForecastGates()
    assert renewed(gates, Weeks(daily(1)[None], "web"), WEB) == []
    assert gates.of(WEB.id).standing is GateState.OBSERVE


def test_a_forecast_that_sees_the_daily_peak_coming_is_let_in_and_logged() -> None:
    gates = ForecastGates()
    lines = renewed(gates, Weeks(daily(8)[None], "web"), WEB)
    assert gates.of(WEB.id).standing is GateState.ACTING
    assert gates.states() == {("acting", str(gates.of(WEB.id).forecaster)): 1}
    assert lines[0].startswith("shop/web: learning to acting")
    assert renewed(gates, Weeks(daily(8)[None], "web"), WEB, at=NOON + timedelta(days=1)) == []


def hourly_spike(days: int) -> np.ndarray:
    """Load by the minute: 1.75 pods, and 3.5 in the last minute of each hour."""
    minute = np.arange(days * 1440)
    return np.where(minute % 60 == 59, 3.5, 1.75) + 0.01 * np.sin(minute)


def test_a_shortage_of_a_minute_counts_where_minutes_are_kept() -> None:
    """Means of five minutes show 2.1 pods, which the three that the HPA has carry."""
    spikes = hourly_spike(8)
    means = spikes.reshape(-1, 5).mean(axis=1)[None]
    by_means, by_minutes = ForecastGates(), ForecastGates()
    renewed(by_means, Weeks(means, "web"), WEB)
    renewed(by_minutes, Weeks(means, "web", by_minute=spikes[None, -3 * 1440 :]), WEB)
    assert "nothing of the cpu demand was short on" in by_means.of(WEB.id).why
    assert float(by_minutes.gates.reactive[0]) > 0.001


def test_a_few_new_workloads_at_a_time_and_each_has_its_turn() -> None:
    gates, history = ForecastGates(most_new=1), Weeks(np.stack([daily(4), daily(4)]), "web", "cart")
    renewed(gates, history, WEB, CART)
    assert judged(gates) == {"cart"}
    renewed(gates, history, WEB, CART, at=NOON + hours(0.5))
    assert judged(gates) == {"cart", "web"}


def test_publishing_workloads_come_first_then_those_with_an_hpa_and_before_all_those_that_are_waited_for() -> None:
    alone, named = workload("alone", autoscaler=None), workload("named", autoscaler=None)
    mine = Policies(policy(gate=True), ((PolicySelector(name="web"), {"mode": "publish"}),))
    gates = ForecastGates(most_new=1, first=lambda id_: id_ == named.id)
    history = Weeks(np.stack([daily(4)] * 4), "alone", "cart", "web", "named")
    order = []
    for _ in range(4):
        renewed(gates, history, alone, CART, WEB, named, under=mine)
        order += judged(gates) - set(order)
    assert order == ["named", "web", "cart", "alone"]


def test_each_workload_is_judged_again_within_a_day() -> None:
    gates, history = ForecastGates(), Weeks(daily(4)[None], "web")
    renewed(gates, history, WEB)
    renewed(gates, history, WEB, at=NOON + hours(3))
    assert gates.judged(WEB.id) == NOON
    renewed(gates, history, WEB, at=NOON + hours(4))
    assert gates.judged(WEB.id) == NOON + hours(4)


def test_a_gate_that_was_judged_while_the_clock_was_ahead_is_judged_again_when_it_is_right() -> None:
    gates, history = ForecastGates(), Weeks(daily(8)[None], "web")
    renewed(gates, history, WEB, at=NOON + timedelta(days=30))
    renewed(gates, history, WEB)
    assert gates.judged(WEB.id) == NOON


@pytest.mark.parametrize("count", [1, 49, 50, 51, 110])
def test_none_waits_longer_than_a_day(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judging takes no time in this test."""
    monkeypatch.setattr("forecaster.cycle.gates.cases_of", lambda workload, _policy, _past: [workload.id])
    monkeypatch.setattr("forecaster.cycle.gates.judged_gates", lambda gates, _cases, _now, _model: gates)
    gates, many, longest = ForecastGates(), [workload(f"w{i:03}") for i in range(count)], timedelta(0)
    history = Weeks(daily(1)[None], "w000")
    for turn in range(4 * 24 * 6):
        now = NOON + turn * JUDGING_INTERVAL
        renewed(gates, history, *many, at=now)
        if now - NOON >= hours(24):
            longest = max(longest, now - datetime.fromtimestamp(float(gates.gates.judged_at.min()), UTC))
    assert longest <= hours(24)
    assert hours(24) > ROUND + SOONEST


def test_a_workload_that_comes_later_is_judged_with_others_some_minutes_later() -> None:
    gates, history = ForecastGates(), Weeks(np.stack([daily(4), daily(4)]), "web", "cart")
    renewed(gates, history, CART)
    renewed(gates, history, WEB, CART, at=NOON + minutes(1))
    assert judged(gates) == {"cart"}
    renewed(gates, history, WEB, CART, at=NOON + JUDGING_INTERVAL)
    assert judged(gates) == {"cart", "web"}


def test_after_a_start_without_state_every_cycle_judges_as_many_as_it_has_time_for() -> None:
    names = [f"w{number}" for number in range(5)]
    gates, history = ForecastGates(most_new=1), Weeks(np.stack([daily(4)] * 5), *names)
    fleet = Targets(Inventory(NOON, tuple(map(workload, names))))
    two_more = iter([True, True, False])
    gates.renew(history, GATED, fleet, NOON, two_more.__next__)
    assert (len(judged(gates)), gates.waiting) == (3, 2)
    gates.renew(history, GATED, fleet, NOON + minutes(1), lambda: True)
    assert (len(judged(gates)), gates.waiting) == (5, 0)


def test_a_short_history_is_the_reason_and_is_read_again_in_an_hour() -> None:
    gates = ForecastGates()
    renewed(gates, Weeks(daily(8)[: 288 * 2 + 30][None], "web"), WEB)
    assert gates.of(WEB.id).why == "2.1 days of cpu history; 3 are the least"
    renewed(gates, Weeks(daily(4)[None], "web"), WEB, at=NOON + hours(0.5))
    assert gates.of(WEB.id).why.startswith("2.1 days")
    renewed(gates, Weeks(daily(4)[None], "web"), WEB, at=NOON + hours(1))
    assert judged(gates) == {"web"}


def test_without_any_history_nothing_can_be_judged_either() -> None:
    gates = ForecastGates()
    renewed(gates, Weeks(daily(4)[None], "cart"), WEB)
    assert gates.of(WEB.id).why == "no history yet; 3 days are the least"


def test_all_targets_count_and_the_worst_one_is_named() -> None:
    """CPU has a daily peak that can be seen coming; requests jump where nothing says so."""
    jumps = np.full(8 * 288, 20.0)
    jumps[np.random.default_rng(3).integers(0, len(jumps), 200)] = 90.0
    both = workload("web", autoscaler=hpa(CPU_HALF, Target("rate", TargetType.AVERAGE_VALUE, 10.0)))
    under = Policies(policy(gate=True, requests_metric="rate"))
    history = Weeks(daily(8)[None], "web", requests=jumps[None])
    gates, alone = ForecastGates(), ForecastGates()
    renewed(gates, history, both, under=under)
    renewed(alone, history, WEB, under=under)
    assert alone.of(WEB.id).standing is GateState.ACTING
    assert gates.of(WEB.id).standing is GateState.OBSERVE
    assert "requests" in gates.of(WEB.id).why


def test_of_two_targets_on_one_signal_the_tighter_one_counts() -> None:
    two = workload(autoscaler=hpa(CPU_HALF, Target("cpu", TargetType.AVERAGE_VALUE, 0.4)))
    assert full_pods(two, policy().horizontal) == {CPU: 0.4}


def test_a_workload_that_cannot_be_judged_is_one_line_and_the_others_are() -> None:
    gates, history = ForecastGates(), Weeks(np.stack([daily(4), daily(4)]), "web", "cart")
    broken = workload("cart", autoscaler=hpa(Target("cpu", TargetType.UTILIZATION, float("nan"))))
    _, failures = gates.renew(history, GATED, Targets(Inventory(NOON, (WEB, broken))), NOON)
    assert judged(gates) == {"web"}
    assert [line.split(":")[0] for line in failures] == ["shop/cart"]


def test_a_workload_that_is_away_for_a_moment_stands_where_it_stood_and_one_that_is_gone_is_forgotten() -> None:
    gates, history = ForecastGates(), Weeks(np.stack([daily(8), daily(8)]), "web", "cart")
    renewed(gates, history, WEB, CART)
    renewed(gates, history, CART, at=NOON + minutes(1))
    assert gates.of(WEB.id).standing is GateState.ACTING
    renewed(gates, history, CART, at=NOON + hours(28))
    assert set(gates.fleet.row) == {CART.id}


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    before, after = Observed(), Observed()
    history = Weeks(np.stack([daily(8), daily(8)]), "web", "cart")
    renewed(before.gates, history, WEB, CART, workload("new"))
    ObservedFile(tmp_path / "observed.json", before).save()
    assert ObservedFile(tmp_path / "observed.json", after).load()
    assert same(after.gates, before.gates)
    for hour in (1, 4, 5):
        at = NOON + hours(hour)
        assert renewed(after.gates, history, WEB, CART, at=at) == renewed(before.gates, history, WEB, CART, at=at)
        assert same(after.gates, before.gates)


@pytest.mark.parametrize(
    "content", [b"", b'{"gates":[{"id"', b"[1]", b'{"version":9}', b'{"gates":[{"id":["a","b","c"]}]}']
)
def test_what_is_torn_or_foreign_is_refused_in_a_sentence_and_nothing_is_taken_over(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "observed.json").write_bytes(content)
    file = ObservedFile(tmp_path / "observed.json", Observed())
    with pytest.raises(StoreError, match="anew"):
        file.load()
    assert len(file.observed.gates.fleet.row) == 0


def test_from_a_source_that_is_down_none_is_judged() -> None:
    gates = ForecastGates()
    gates.renew(Weeks(daily(4)[None], "web"), GATED, Targets(Inventory(NOON, (WEB,)), "no answer"), NOON)
    assert len(gates.fleet.row) == 0


def test_yesterday_is_the_largest_of_the_same_minutes_a_day_ago() -> None:
    values = np.zeros((1, 600))
    values[0, 600 - 1 - 288 + 1] = 7.0
    yesterday = DayAgo(Weeks(values, "web").weeks)
    assert yesterday.peak(WEB.id, NOON + minutes(3), NOON + minutes(6)) == 7.0
    assert yesterday.peak(WEB.id, NOON + minutes(20), NOON + minutes(26)) == 0.0
    assert yesterday.peak(CART.id, NOON, NOON + minutes(6)) is None
    assert yesterday.peak(WEB.id, NOON - minutes(1800), NOON - minutes(1700)) is None
