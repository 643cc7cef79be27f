"""Changes of a what-if, the sliders for them, and all positions of one slider.

Every number of a policy has a slider, as its field declares it (domain/policy_numbers.py). Fifty rows of a replay cost
hardly more than one, so all positions of a slider are replayed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import NamedTuple

from forecaster.domain.amounts import duration_text
from forecaster.domain.policy_numbers import PolicyNumber, as_number, policy_numbers
from forecaster.domain.workload import WorkloadId

Values = Mapping[str, float | bool | None]
"""Values in force, by name; durations in seconds."""

LEADS = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30))
"""Lead times offered beside the present one: the forecasts of each are made beforehand."""
MAX_VALUES = 64
"""Values of one slider that are replayed together: those nearest to its position."""
SLIDER_DIGITS = 6
"""Digits in which two positions are compared."""

TARGET_SHARE, GATE, LEAD_TIME = "target_share", "gate", "lead_time"


class PolicyChange(NamedTuple):
    """Other values of some settings of `policy.horizontal`, and another share of the HPA's targets, its owner's."""

    settings: tuple[tuple[str, float | bool], ...] = ()
    """Changed settings by name, sorted; durations in seconds."""
    target_share: float = 1.0

    @classmethod
    def to(cls, *, target_share: float = 1.0, **settings: float | timedelta | None) -> PolicyChange:
        """Return the change to these settings; None leaves one as it is."""
        stated = {name: value for name, value in settings.items() if value is not None}
        plain = {name: value if isinstance(value, bool) else as_number(value) for name, value in stated.items()}
        return cls(tuple(sorted(plain.items())), target_share)

    def get(self, name: str) -> float | bool | None:
        """Return the changed value of a setting or of the share; None where it stays as it is."""
        return self.target_share if name == TARGET_SHARE else dict(self.settings).get(name)

    def put(self, name: str, value: float | None) -> PolicyChange:
        """Return the change with another value of one setting or of the share; None leaves it as it is in force."""
        if name == TARGET_SHARE:
            return self._replace(target_share=1.0 if value is None else value)
        settings = {**dict(self.settings), name: value}
        stated = ((key, setting) for key, setting in settings.items() if setting is not None)
        return self._replace(settings=tuple(sorted(stated)))

    @property
    def policy_fields(self) -> dict[str, object]:
        """Return the changed fields by their names in a policy, in the types of the settings."""
        numbers = policy_numbers()
        return {name: numbers[name].value(value) if name in numbers else value for name, value in self.settings}


NO_CHANGE = PolicyChange()


def override_of(id_: WorkloadId, change: PolicyChange, before: Mapping[str, object]) -> dict[str, object]:
    """The change as an entry of `overrides` in the settings: only fields with another value than before."""
    changed = {name: value for name, value in change.policy_fields.items() if value != before.get(name)}
    texts = {name: duration_text(value) if isinstance(value, timedelta) else value for name, value in changed.items()}
    return {"match": dict(id_._asdict()), "policy": {"horizontal": texts}}


def tried_names() -> tuple[str, ...]:
    """Return all that can be changed: every number of a policy, whether there is a gate, and the targets' share."""
    return (*policy_numbers(), GATE, TARGET_SHARE)


class Slider(NamedTuple):
    """Range of a slider with its step, and their unit; durations in seconds."""

    least: float
    most: float
    step: float
    unit: str = "ratio"

    def values(self, near: float) -> list[float]:
        """Return its positions, only the nearest ones where they are many."""
        count = round((self.most - self.least) / self.step) + 1
        first = min(max(round((near - self.least) / self.step) - MAX_VALUES // 2, 0), max(count - MAX_VALUES, 0))
        places = range(first, min(first + MAX_VALUES, count))
        return [round(self.least + place * self.step, SLIDER_DIGITS) for place in places]


FEWEST_OFFERED = 10
"""Replicas that can be tried, however few there are."""


def sliders_of(now: Values) -> dict[str, Slider]:
    """Return sliders by name, for what is stated at present. Lead times have a list instead, `LEADS`."""
    stated = {name: float(value) for name, value in now.items() if value is not None}
    numbers = (number for name, number in policy_numbers().items() if name in stated and name != LEAD_TIME)
    sliders = {number.name: _slider(number, stated[number.name]) for number in numbers}
    return {TARGET_SHARE: Slider(0.5, 1.5, 0.05)} | sliders


def _slider(number: PolicyNumber, now: float) -> Slider:
    """The slider of a number: over its declared range, and at least as far as the number in force."""
    widest = max(FEWEST_OFFERED, 2 * now) if number.kind is int else number.highest
    most = number.decides.most or widest
    least = max(1, number.lowest) if number.kind is int else number.lowest
    return Slider(min(least, now), max(most, now), number.decides.step, number.unit)


def beside(change: PolicyChange, names: Iterable[str], now: Values) -> Iterator[PolicyChange]:
    """Yield all changes that one movement of these sliders can make."""
    sliders = sliders_of(now)
    for name in names:
        present, changed = now[name], change.get(name)
        if name == GATE:
            yield from (change.put(GATE, None), change.put(GATE, not present))
        elif name == LEAD_TIME:
            yield from (change.put(LEAD_TIME, lead) for lead in (None, *(lead.total_seconds() for lead in LEADS)))
        elif name in sliders and present is not None:
            slider = sliders[name]
            for value in slider.values(float(present if changed is None else changed)):
                same = abs(value - float(present)) < slider.step / 2
                yield change.put(name, None if same else value)
