"""HealthHistory: how the computing process fares, for the dashboard: last cycles, sources, forecasts by lead."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from forecaster.domain.report import CycleReport, Effected, ForecastScore
from forecaster.domain.window import MINUTE
from forecaster.errors import shown_url
from forecaster.publish.decision_history import AccuracyView, DecisionHistory, FadingSums

MAX_CYCLES = 60
MAX_MOVES = 20
"""Promotions and demotions."""
MAX_FAILURES = 5
"""Failures kept of each cycle, as many as its log has; a metric counts all."""
MAX_WORST = 20
MAX_GROUPS = 200
"""Largest number of groups of signal, model and lead. Owners choose leads: beyond this, groups with the fewest
forecasts are dropped."""


class CycleView(msgspec.Struct, frozen=True):
    """One cycle: seconds by step, failures, and steps that found no time."""

    at: datetime
    steps: dict[str, float]
    failures: tuple[str, ...]
    late: tuple[str, ...]


class SourceView(msgspec.Struct, frozen=True, gc=False):
    """One signal: workloads with history, seconds since the latest sample, incomplete workloads by cause.

    The age is null where there is no sample at all.
    """

    signal: str
    workloads: int
    age_seconds: float | None
    incomplete: dict[str, int]


class LeadAccuracy(msgspec.Struct, frozen=True, gc=False):
    """Accuracy of one model's forecasts with a window that ended so many minutes after they were made.

    Ratios as in `AccuracyView`, newer ones counting more.
    """

    signal: str
    model: str
    minutes: int
    forecasts: float
    coverage: float
    quantile: float
    error_ratio: float | None


class WorstForecast(msgspec.Struct, frozen=True, gc=False):
    """A workload and signal with the largest forecast errors."""

    namespace: str
    kind: str
    name: str
    accuracy: AccuracyView


class MoveView(msgspec.Struct, frozen=True, gc=False):
    """A forecast that was promoted or demoted on a workload."""

    at: datetime
    said: str


class ActuatorView(msgspec.Struct, frozen=True, gc=False):
    """Effect of one actuator in the last cycle: its writes, and objects by result."""

    name: str
    leading: bool
    writes: tuple[tuple[str, str, int], ...]
    states: dict[str, int]


class SettingView(msgspec.Struct, frozen=True, gc=False):
    """A setting that is in force, and where it is stated: a file, `environment`, `command line` or `default`."""

    path: str
    value: str
    origin: str


DEFAULT_ORIGIN = "default"
"""Origin of a setting that nothing states."""


class HealthView(msgspec.Struct, frozen=True):
    """Health of the service. `verdicts` counts workloads by verdict and reason, `states` by state and forecaster."""

    since: datetime | None
    cycles: tuple[CycleView, ...] = ()
    sources: tuple[SourceView, ...] = ()
    verdicts: tuple[tuple[str, str, int], ...] = ()
    states: tuple[tuple[str, str, int], ...] = ()
    moves: tuple[MoveView, ...] = ()
    accuracy: tuple[LeadAccuracy, ...] = ()
    worst: tuple[WorstForecast, ...] = ()
    """The largest error first."""
    acting: tuple[ActuatorView, ...] = ()
    settings: tuple[SettingView, ...] = ()


class _Group(NamedTuple):
    signal: str
    model: str
    minutes: int


class HealthHistory:
    """Reports of all cycles since the start, in memory."""

    def __init__(self, settings: Sequence[SettingView] = ()) -> None:
        self.settings = tuple(settings)
        """Settings in force; replaced on reload."""
        self._cycles: deque[CycleView] = deque(maxlen=MAX_CYCLES)
        self._moves: deque[MoveView] = deque(maxlen=MAX_MOVES)
        self._sums: dict[_Group, FadingSums] = {}
        self._since: datetime | None = None
        self._latest: CycleReport | None = None

    def follow(self, report: CycleReport | None) -> None:
        """Add a report, unless it was added before."""
        if report is None or (self._latest is not None and report.at == self._latest.at):
            return
        self._latest, self._since = report, self._since or report.at
        steps = {name: round(seconds, 4) for name, seconds in report.steps.items()}
        self._cycles.append(CycleView(report.at, steps, report.failures[:MAX_FAILURES], report.late_steps))
        self._moves.extend(MoveView(report.at, sentence) for sentence in report.gates)
        self._score(report.scores)

    def view(self, history: DecisionHistory) -> HealthView:
        """Return the present health, the latest cycles and moves first."""
        report = self._latest
        if report is None:
            return HealthView(None, settings=self.settings)
        return HealthView(
            since=self._since,
            cycles=tuple(reversed(self._cycles)),
            sources=tuple(_sources(report)),
            verdicts=tuple((*key, count) for key, count in report.verdicts.most_common()),
            states=tuple((*key, count) for key, count in report.states.most_common()),
            moves=tuple(reversed(self._moves)),
            accuracy=tuple(_accuracy(group, sums) for group, sums in sorted(self._sums.items())),
            worst=tuple(WorstForecast(*id_, accuracy) for id_, accuracy in history.worst(MAX_WORST)),
            acting=tuple(_actuator(name, effected) for name, effected in report.effected.items()),
            settings=self.settings,
        )

    def _score(self, scores: Iterable[ForecastScore]) -> None:
        for score in scores:
            group = _Group(str(score.signal), score.model, (score.matured_at - score.made_at) // MINUTE)
            if group not in self._sums and len(self._sums) == MAX_GROUPS:
                del self._sums[min(self._sums, key=lambda candidate: self._sums[candidate].forecasts)]
            self._sums.setdefault(group, FadingSums()).add(score)


def _sources(report: CycleReport) -> Iterator[SourceView]:
    for signal, workloads in report.series.items():
        parts = {cause: count for (part_signal, cause), count in report.incomplete.items() if part_signal == signal}
        yield SourceView(str(signal), workloads, report.newest_sample_age.get(signal), parts)


def _actuator(name: str, effected: Effected) -> ActuatorView:
    writes = tuple((change, outcome, count) for (change, outcome), count in effected.writes.most_common())
    return ActuatorView(name, effected.leading, writes, dict(effected.states.most_common()))


def _accuracy(group: _Group, sums: FadingSums) -> LeadAccuracy:
    view = sums.view(group.signal)
    return LeadAccuracy(*group, view.forecasts, view.coverage, view.quantile, view.error_ratio)


SECRETS = re.compile(
    r"(^|\.)(headers|database|database_file|username|kubeconfig|(\w+_)?(token|password|secret|key)(_file)?)(\.|$)"
)
"""Settings that are, or lead to, what not every reader of the dashboard may know."""
URL_PATTERN = re.compile(r"\w+://[^\s\"']+")


MASKED = "(not shown)"
LONGEST_VALUE = 200
"""Characters of a setting that is shown; queries are longer."""


def settings_in_force(
    settings: Mapping[str, object], origins: Mapping[str, str], longest: int | None = LONGEST_VALUE
) -> tuple[SettingView, ...]:
    """Return all settings, stated ones first; `origins` by path, the default where there is none."""
    shown = shown_settings(settings)
    views = (SettingView(path, _cut(value, longest), _origin(path, origins)) for path, value in shown.items())
    return tuple(sorted(views, key=lambda view: (view.origin == DEFAULT_ORIGIN, view.path)))


def _origin(path: str, origins: Mapping[str, str]) -> str:
    """Return the origin of the setting, or of the section that contains it."""
    while path and path not in origins:
        path = path.rpartition(".")[0]
    return origins.get(path, DEFAULT_ORIGIN)


def shown_settings(settings: Mapping[str, object], before: str = "") -> dict[str, str]:
    """Nested settings as texts by path, secrets masked.

    >>> shown_settings({"prometheus": {"url": "http://me:secret@prometheus:9090", "headers": {"a": "b"}}})
    {'prometheus.url': 'http://prometheus:9090', 'prometheus.headers.a': '(not shown)'}
    """
    texts: dict[str, str] = {}
    for name, value in settings.items():
        path = f"{before}{name}"
        if isinstance(value, dict) and value:
            texts |= shown_settings(value, f"{path}.")
        else:
            texts[path] = MASKED if value and SECRETS.search(path) else _shown(value)
    return texts


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return URL_PATTERN.sub(lambda address: shown_url(address[0]), text)


def _cut(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else f"{text[: longest - 1]}…"
