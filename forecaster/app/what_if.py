"""`python -m forecaster.app.what_if FACTS`: replays single workloads for the dashboard, one question a line.

A process of its own, started by the serving one when a reader first moves a slider and ended with its standard input.
It yields to every other process: neither a cycle nor an answer to an HPA waits for it.
"""

from __future__ import annotations

import gc
import os
import select
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import ValidationError
from threadpoolctl import threadpool_limits

from forecaster.app.facts import requested_facts
from forecaster.app.past_view import PastView, past_view
from forecaster.cycle.workload_facts import EncodedSeries, WorkloadFacts
from forecaster.domain.policy import Policy
from forecaster.domain.signal import Signal, Signals
from forecaster.domain.window import FIVE_MINUTES, MINUTE, MINUTES_A_POINT
from forecaster.domain.workload import WorkloadId
from forecaster.horizontal.gate_states import Gate, GateForecaster, GateState
from forecaster.replay.account import RunResult
from forecaster.replay.setup import Setup
from forecaster.replay.sliders import LEADS, NO_CHANGE, PolicyChange, Slider, override_of, sliders_of, tried_names
from forecaster.replay.traces import Traces
from forecaster.replay.what_if import WhatIf, WhatIfFacts, settings_of
from models import Calendar

NICE = 5
MAX_LEAD_SECONDS = 3600.0
"""Longest lead at which the last half day may be looked back at, in seconds."""
IDLE_BEFORE_PREPARING = 0.06
"""Seconds without a question after which the next ones are prepared: a page asks every 0.05 s while a slider moves."""
MAX_PREPARED = 4
"""Workloads that are made ready: a reader looks at one."""
HISTORY_INTERVAL = timedelta(minutes=5)
"""Time after which the latest hours are read again."""


class Question(msgspec.Struct, frozen=True):
    """One workload, and other values of what `sliders.tried_names` lists; durations in seconds."""

    id: WorkloadId
    changes: dict[str, float | bool] = {}
    at: datetime | None = None
    """Instant of the table that the reader sees; a prepared answer is used as long as it is not much older."""
    past: str = ""
    """Signal whose last half day is requested, instead of the effect of changes."""
    zone: str = "UTC"
    countries: tuple[str, ...] = ()
    """Countries whose holidays are marked."""
    lead_seconds: float = 0.0
    """Lead of the forecast in seconds; 0: the lead time in force."""


class StrategyView(msgspec.Struct, frozen=True):
    """Result of one policy: pods minute by minute, and its account; shares are ratios."""

    asked: list[int]
    ready: list[int]
    pod_hours: float
    short_minutes: float
    missing_share: float | None
    changes: int


class WhatIfView(msgspec.Struct, frozen=True):
    """The HPA alone, the present policy and the changed one over the same minutes; `demand` in the unit of `pod`."""

    begin: datetime
    until: datetime
    signal: str
    unit: str
    pod: float
    """Full load of one pod."""
    demand: list[float | None]
    runs: dict[str, StrategyView]
    settings: dict[str, float | bool | None]
    sliders: dict[str, Slider]
    """Least and most value, the step and the unit; by the names of settings."""
    leads: list[float]
    acting: bool
    """Whether the forecast acts at present, where the policy asks for a gate."""
    targets: str
    yaml: str
    milliseconds: float
    """CPU time of this answer, in milliseconds."""


class RefusedView(msgspec.Struct, frozen=True):
    """Reason why there is no answer."""

    refused: str


@dataclass(slots=True)
class PreparedWorkload:
    """One prepared workload, with the parts that all questions share."""

    facts: WorkloadFacts
    what_if: WhatIf
    hpa: RunResult | None = None
    """The HPA alone, once it was requested."""
    present: RunResult | None = None
    """The present policy, once it was requested."""
    past: dict[tuple[str, float], PastView] = field(default_factory=dict)

    def alone(self) -> RunResult | None:
        """Return the result of the HPA alone; None where there is no replay."""
        if self.hpa is None and isinstance(self.what_if.setup, Setup):
            self.hpa = self.what_if.alone()
        return self.hpa

    def before(self) -> tuple[RunResult, RunResult]:
        """Return both runs that no change affects. Raises `ValueError` where nothing can be replayed."""
        if self.hpa is None or self.present is None:
            self.hpa, self.present = self.what_if.alone(), self.what_if.changed()
        return self.hpa, self.present


class WhatIfAnswers:
    """Answers questions; the last few workloads stay ready."""

    def __init__(self, facts: str) -> None:
        self._facts = facts
        self.ready: OrderedDict[WorkloadId, PreparedWorkload] = OrderedDict()

    def answer(self, line: bytes) -> bytes:
        """Answer one line of JSON by one line of JSON."""
        began = time.process_time()
        view: WhatIfView | PastView | RefusedView
        try:
            question = msgspec.json.decode(line, type=Question)
            view = self._past(question) if question.past else self._view(question, began)
        except ValidationError as error:
            faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
            view = RefusedView("; ".join(faults))
        except (ValueError, msgspec.MsgspecError) as error:
            view = RefusedView(str(error))
        return msgspec.json.encode(view) + b"\n"

    def prepare(self, overtaken: Callable[[], bool] | None = None) -> bool:
        """Prepare the probable next requests until one arrives; return whether there was anything to prepare."""
        newest = next(reversed(self.ready.values()), None)
        return newest is not None and newest.present is not None and newest.what_if.prepare(overtaken)

    def _view(self, question: Question, began: float) -> WhatIfView:
        ready, change = self._prepared(question), change_of(question.changes)
        ready.before()
        changed = ready.what_if.changed(change)
        return view_of(ready, change, changed, time.process_time() - began)

    def _past(self, question: Question) -> PastView:
        ready, key = self._prepared(question), (question.past, question.lead_seconds)
        signals = ready.what_if.facts.policy.horizontal.signals.by_name
        if question.past not in signals or not 0 <= question.lead_seconds <= MAX_LEAD_SECONDS:
            raise ValueError(f"{question.past} at a lead of {question.lead_seconds:g} s is nothing that is forecast")
        if key not in ready.past:
            lead = timedelta(seconds=question.lead_seconds) or None
            ready.past[key] = past_view(
                ready.facts,
                ready.what_if,
                signals[question.past],
                lead,
                ready.alone(),
                Calendar(question.zone, question.countries),
            )
        return ready.past[key]

    def _prepared(self, question: Question) -> PreparedWorkload:
        id_ = question.id
        known = self.ready.get(id_)
        if known is None or (question.at and question.at - known.what_if.facts.traces.end > HISTORY_INTERVAL):
            known = self.ready[id_] = self._fetched(id_)
        self.ready.move_to_end(id_)
        while len(self.ready) > MAX_PREPARED:
            self.ready.popitem(last=False)
        return known

    def _fetched(self, id_: WorkloadId) -> PreparedWorkload:
        try:
            facts = requested_facts(self._facts, id_)
        except OSError as error:
            raise ValueError(f"the computing process does not send its history: {error.strerror or error}") from error
        if facts is None or not facts.series:
            raise ValueError(f"nothing is known of {id_.kind} {id_} yet; it is new, or the first cycle still runs")
        return PreparedWorkload(facts, WhatIf(what_if_facts(facts)))


def change_of(given: Mapping[str, float | bool]) -> PolicyChange:
    """Return the change that a question requests.

    Raises:
        ValueError: it names a setting that is none of these.
    """
    unknown = sorted(set(given) - set(tried_names()))
    if unknown:
        raise ValueError(f"{unknown[0]} is no setting that can be tried; they are {', '.join(tried_names())}")
    change = NO_CHANGE
    for name, value in given.items():
        change = change.put(name, value)
    return change


def view_of(ready: PreparedWorkload, change: PolicyChange, changed: RunResult, seconds: float) -> WhatIfView:
    """The answer to one change."""
    what_if, (alone, present) = ready.what_if, ready.before()
    setup, measured = what_if.setup, what_if.measurements
    if not isinstance(setup, Setup):
        raise TypeError("a workload without a setup was replayed")
    signal, settings = setup.capacity.signal, settings_of(what_if)
    demand = measured.of(signal, 1, 0).tolist()
    return WhatIfView(
        begin=measured.begin,
        until=measured.instant(measured.minutes),
        signal=str(signal),
        unit=signal.unit,
        pod=setup.capacity.amount,
        demand=[None if amount != amount else float(f"{amount:.4g}") for amount in demand],  # noqa: PLR0124  NaN
        runs={"hpa": _strategy(alone), "now": _strategy(present), "changed": _strategy(changed)},
        settings=dict(settings),
        sliders=sliders_of(settings),
        leads=[lead.total_seconds() for lead in LEADS],
        acting=what_if.facts.gate.standing.value == "acting",
        targets=", ".join(map(str, setup.targets)),
        yaml=yaml_of(what_if, change),
        milliseconds=round(seconds * 1000, 1),
    )


def _strategy(result: RunResult) -> StrategyView:
    account = result.account
    return StrategyView(
        asked=result.track.desired.tolist(),
        ready=result.track.ready.tolist(),
        pod_hours=account.pod_hours,
        short_minutes=account.short / MINUTE,
        missing_share=account.missing_share,
        changes=account.changes,
    )


def yaml_of(what_if: WhatIf, change: PolicyChange) -> str:
    """Return the change as settings; values that only an HPA can state are remarks."""
    workload, lines = what_if.facts.workload, []
    hpa = workload.autoscaler
    changed = change.policy_fields
    bounds = {"minReplicas": changed.get("min_replicas"), "maxReplicas": changed.get("max_replicas")}
    if hpa and change.target_share != 1.0:
        lines.append(f"# In HPA {hpa.name}: every target at {change.target_share:.0%} of what it is.")
    if hpa and (named := ", ".join(f"{name}: {value}" for name, value in bounds.items() if value is not None)):
        lines.append(f"# In HPA {hpa.name}: {named}, where its own bounds are tighter.")
    entry = override_of(workload.id, change, what_if.present.horizontal.model_dump())
    if entry["policy"] == {"horizontal": {}}:
        return "\n".join([*lines, "# No setting of the policy is changed."]) + "\n"
    lines.append(yaml.safe_dump({"overrides": [entry]}, sort_keys=False).rstrip())
    return "\n".join(lines) + "\n"


def main() -> int:
    """Answer until standard input ends; between questions, prepare forecasts for the next ones."""
    os.nice(NICE)
    threadpool_limits(1)
    gc.freeze()
    answers, read = WhatIfAnswers(sys.argv[1]), sys.stdin.buffer
    while line := read.readline():
        sys.stdout.buffer.write(answers.answer(line))
        sys.stdout.buffer.flush()
        quiet = IDLE_BEFORE_PREPARING
        while not asked(quiet) and answers.prepare(asked):
            quiet = 0.0
    return 0


def asked(within: float = 0.0) -> bool:
    """Whether a question waits, or arrives within so many seconds."""
    return bool(select.select([0], [], [], within)[0])


def what_if_facts(facts: WorkloadFacts) -> WhatIfFacts:
    """Return the facts in the form that a replay reads."""
    signals = Signals(
        tuple(Signal(name, **{**stated, "metrics": tuple(stated["metrics"])}) for name, stated in facts.signals)
    )
    policy = Policy.model_validate(facts.policy)
    horizontal = policy.horizontal.reading(signals).with_observed(None, facts.filled)
    return WhatIfFacts(
        workload=facts.workload,
        policy=policy.model_copy(update={"horizontal": horizontal}),
        traces=_traces(facts, signals),
        model=facts.model,
        start_ups=tuple(timedelta(seconds=seconds) for seconds in facts.start_ups),
        gate=Gate(GateState(facts.standing), GateForecaster(facts.forecaster)),
        behavior=facts.behavior,
    )


def _traces(facts: WorkloadFacts, signals: Signals) -> Traces:
    """Return the history by the minute up to the latest instant: five equal minutes where only a mean is stored."""
    known = {signals.by_name[name]: series for name, series in facts.series.items() if name in signals.by_name}
    end = max(series.minutes.end for series in known.values())
    oldest = min(series.weeks.end - series.weeks.points().size * FIVE_MINUTES + MINUTE for series in known.values())
    columns = (end - oldest) // MINUTE + 1
    values = {signal: _by_minute(series, oldest, columns)[None] for signal, series in known.items()}
    return Traces((facts.workload,), oldest, values)


def _by_minute(series: EncodedSeries, start: datetime, columns: int) -> NDArray[np.float64]:
    values = np.full(columns, np.nan)
    five = np.repeat(series.weeks.points(), MINUTES_A_POINT)
    _put(values, five, (series.weeks.end - start) // MINUTE)
    _put(values, series.minutes.points(), (series.minutes.end - start) // MINUTE)
    return values


def _put(into: NDArray[np.float64], points: NDArray[np.float64], last: int) -> None:
    """Put the known points so that the last one is in column `last`."""
    first = last - points.size + 1
    points = points[max(-first, 0) :]
    np.copyto(into[max(first, 0) : last + 1], points, where=~np.isnan(points))


if __name__ == "__main__":
    sys.exit(main())
