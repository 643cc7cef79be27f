"""Replay of the last hours of one workload under another policy, replayed again for every change of a setting.

Engine, decisions, pods and HPA are those of every replay. Forecasts are made once for each span and stored; the results
of the next movement of a slider are replayed beforehand. The recommended count is the floor of the HPA, as in mode
`floor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import isnan

import numpy as np

from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.policy_numbers import as_number, stated_numbers
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import Workload
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.horizontal.gate_states import Gate, GateForecaster, GateState
from forecaster.horizontal.lead_time import lead_time
from forecaster.hpa.behavior import Behavior
from forecaster.replay.account import Run, RunResult, with_targets_at
from forecaster.replay.assumptions import START_UP, Assumptions
from forecaster.replay.engine import OvertakenError, replay_runs
from forecaster.replay.forecasts import ForecastRequest, ReplayForecasts, forecast_minutes
from forecaster.replay.gated import DailyGates, GateSince, with_seasonal
from forecaster.replay.setup import Setup, first_pods, setup_or_reason
from forecaster.replay.sliders import GATE, LEAD_TIME, LEADS, NO_CHANGE, TARGET_SHARE, PolicyChange, beside, tried_names
from forecaster.replay.strategies import at_share, with_horizontal
from forecaster.replay.traces import Measurements, Traces, measurements_of

WHAT_IF_LENGTH = timedelta(hours=3)
"""Replayed span: the hours that history has by the minute, and short enough to take 0.07 s of CPU."""
FORECAST_INTERVAL = 5
"""Minutes from one forecast to the next, as history has them beyond its latest hours."""
MAX_REPLAYED = 1000
"""Replayed changes in memory, of 5 kB each; a reader that stands still has some 300 beside the present one."""


@dataclass(frozen=True, slots=True, eq=False)
class WhatIfFacts:
    """One workload, the policy in force, and its measurements: `traces` has this row alone and ends now."""

    workload: Workload
    policy: Policy
    traces: Traces
    model: str
    start_ups: tuple[timedelta, ...] = ()
    """Start-up times of its scale-ups; without any, the usual ones are assumed."""
    gate: Gate = field(default_factory=Gate)
    behavior: Behavior | None = None
    """Behavior of its HPA; without one, the default is assumed."""


class WhatIf:
    """The replay of one workload, made ready for changes."""

    def __init__(self, facts: WhatIfFacts) -> None:
        self.facts = facts
        end = facts.traces.end
        self.measurements: Measurements = measurements_of(
            facts.traces, end - WHAT_IF_LENGTH, WHAT_IF_LENGTH // MINUTE, [(facts.workload.id, facts.policy)]
        )
        behaviors = {facts.workload.id: facts.behavior} if facts.behavior else {}
        self._assumed = Assumptions(start_ups=facts.start_ups or (START_UP,), behaviors=behaviors)
        self.forecasts: dict[PeakSpan, ReplayForecasts] = {}
        self._by_yesterday: dict[PeakSpan, ReplayForecasts] = {}
        """Forecasts with yesterday's load in place of the model, where a gate chose that."""
        self.present = with_horizontal(facts.policy, {"lead_time": lead_time(facts.policy.horizontal).value})
        """The policy with the lead time that is in force, measured or not."""
        self.setup = self._setup(facts.workload, self.present)
        """The replayed setup, or the reason why there is none."""
        self.replayed: dict[PolicyChange, RunResult] = {}
        self._last = NO_CHANGE
        self._beside: PolicyChange | None = None
        """The change beside which all others were replayed."""

    def alone(self) -> RunResult:
        """Return the result of the HPA alone."""
        run = self._run(self.facts.workload, self._replayable(self.setup))
        return replay_runs([run], self.measurements, tracks=True)[0]

    def changed(self, change: PolicyChange = NO_CHANGE) -> RunResult:
        """Return the result of the change; without one, of the present policy.

        A result that is not known yet is replayed together with all positions of the slider that leads to it.

        Raises:
            ValueError: a value is out of range, or values contradict each other.
        """
        if change not in self.replayed:
            moved = [name for name in tried_names() if change.get(name) != self._last.get(name)]
            self._replay(change, self._changed_run(change), moved)
        self._last = change
        return self.replayed[change]

    def prepare(self, overtaken: Callable[[], bool] | None = None) -> bool:
        """Do one thing that the next question needs: all replays beside the last change, then forecasts of `LEADS`.

        Gives whether there was anything left. Where `overtaken` says that the next question is there, replays are
        given up for it.
        """
        if not isinstance(self.setup, Setup):
            return False
        if self._beside != self._last:
            with suppress(OvertakenError):
                self._replay(self._last, self._changed_run(self._last), tried_names(), overtaken)
                self._beside = self._last
            return True
        missing = [span for span in map(self._span, LEADS) if span not in self.forecasts]
        if not missing:
            return False
        self._forecast(missing[0])
        if len(missing) == 1:
            self._beside = None  # now also those that differ in the lead time can be replayed
        return True

    def _replay(
        self, change: PolicyChange, run: Run, moved: Iterable[str], overtaken: Callable[[], bool] | None = None
    ) -> None:
        """Replay the change, and with it what sliders lead to that settings would take."""
        runs = {change: run}
        for other in beside(change, moved, settings_of(self)):
            if overtaken and overtaken():
                raise OvertakenError
            lead = other.get(LEAD_TIME)
            ahead = lead is None or self._span(timedelta(seconds=lead)) in self.forecasts
            if ahead and other not in runs and other not in self.replayed:
                with suppress(ValueError):
                    runs[other] = self._changed_run(other)
        if len(self.replayed) + len(runs) > MAX_REPLAYED:
            self.replayed.clear()
        results = replay_runs([*runs.values()], self.measurements, tracks=True, overtaken=overtaken)
        self.replayed.update(zip(runs, results, strict=True))

    def _changed_run(self, change: PolicyChange) -> Run:
        policy = changed_policy(self.present, change)
        workload = with_bounds(with_targets_at(self.facts.workload, change.target_share), change)
        setup = self._replayable(self._setup(workload, policy))
        return self._run(workload, setup, at_share(policy, change.target_share))

    def _setup(self, workload: Workload, policy: Policy) -> Setup | str:
        return setup_or_reason(0, workload, policy, self.measurements, self._assumed)

    def _replayable(self, setup: Setup | str) -> Setup:
        if isinstance(setup, str):
            raise ValueError(setup)  # noqa: TRY004  it is the value that is at fault
        return setup

    def _run(self, workload: Workload, setup: Setup, policy: Policy | None = None) -> Run:
        replicas = first_pods(0, setup, self.measurements)
        if policy is None:
            return Run(0, workload, setup, replicas)
        span = self._span(lead_time(policy.horizontal).value)
        acting = np.full(self.measurements.minutes, self.facts.gate.standing is GateState.ACTING)
        forecasts = self._forecast(span)
        if policy.horizontal.gate and acting.any() and self.facts.gate.forecaster is GateForecaster.SEASONAL:
            forecasts = self._seasonal(span, forecasts)
        return Run(0, workload, setup, replicas, policy, forecasts, acting=acting)

    def _seasonal(self, span: PeakSpan, forecasts: ReplayForecasts) -> ReplayForecasts:
        if span not in self._by_yesterday:
            gates = DailyGates(self.measurements, self._assumed, self.facts.model)
            self._by_yesterday[span] = with_seasonal(forecasts, {0: (GateSince(0, self.facts.gate),)}, gates)
        return self._by_yesterday[span]

    def _span(self, lead: timedelta) -> PeakSpan:
        return PeakSpan(lead, self.present.horizontal.window)

    def _forecast(self, span: PeakSpan) -> ReplayForecasts:
        if span not in self.forecasts:
            request = ForecastRequest(self.facts.model, span, every=FORECAST_INTERVAL)
            signals = sorted({target.signal for target in self._replayable(self.setup).targets})
            self.forecasts[span] = forecast_minutes(self.measurements, signals, request)
        return self.forecasts[span]


def changed_policy(policy: Policy, change: PolicyChange) -> Policy:
    """The policy with other values, checked as settings are.

    Raises:
        ValueError: a value is out of range, or values contradict each other.
    """
    before = policy.horizontal
    checked = HorizontalPolicy.model_validate(before.model_dump() | change.policy_fields)
    horizontal = checked.reading(before.signals).with_observed(None, before.filled)
    return policy.model_copy(update={"horizontal": horizontal})


def with_bounds(workload: Workload, change: PolicyChange) -> Workload:
    """Return the workload with an HPA and bounds that allow the changed ones."""
    hpa = workload.autoscaler
    bounds = {name: value for name, value in change.policy_fields.items() if name in {"min_replicas", "max_replicas"}}
    if hpa is None or not bounds:
        return workload
    return replace(workload, autoscaler=replace(hpa, **bounds))  # type: ignore[arg-type]  # counts


def settings_of(what_if: WhatIf) -> Mapping[str, float | bool | None]:
    """The values that are in force, by what can be changed; durations in seconds, None for what nothing states."""
    horizontal, hpa = what_if.present.horizontal, what_if.facts.workload.autoscaler
    least, most = horizontal.min_replicas, horizontal.max_replicas
    stated = {name: as_number(getattr(horizontal, name)) for name in stated_numbers()}
    return {
        **{name: None if isnan(number) else number for name, number in stated.items()},
        "min_replicas": (hpa.min_replicas if hpa else None) if least is None else least,
        "max_replicas": (hpa.max_replicas if hpa else None) if most is None else most,
        LEAD_TIME: lead_time(horizontal).value.total_seconds(),
        TARGET_SHARE: 1.0,
        GATE: horizontal.gate,
    }
