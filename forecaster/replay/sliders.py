"""What a reader of a what-if may change, the sliders for it, and all that one movement of a slider leads to.

Fifty rows of a replay cost hardly more than one, so all positions of a slider are replayed together.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Values = Mapping[str, float | bool | None]
    """What is in force, by the names of `WhatIfChange`; durations in seconds."""

LEADS = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30))
"""Lead times that are offered beside the present one: forecasts of each are made before they are asked for."""
MOST_VALUES = 64
"""Values of one slider that are replayed together: those nearest to its position."""
SLIDER_DIGITS = 6
"""After which two positions are the same."""


class WhatIfChange(NamedTuple):
    """Other values of some settings; None leaves one as it is. The share is that of the HPA's targets, its owner's."""

    quantile: float | None = None
    tolerance: float | None = None
    stabilization: timedelta | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    lead_time: timedelta | None = None
    target_share: float = 1.0
    gate: bool | None = None

    @property
    def policy_fields(self) -> dict[str, object]:
        """Return the changed fields by their names in a policy."""
        named = {
            "quantile": self.quantile,
            "tolerance": self.tolerance,
            "scale_down_stabilization": self.stabilization,
            "min_replicas": self.min_replicas,
            "max_replicas": self.max_replicas,
            "lead_time": self.lead_time,
            "gate": self.gate,
        }
        return {name: value for name, value in named.items() if value is not None}


NO_CHANGE = WhatIfChange()


DURATIONS, COUNTS = {"stabilization", "lead_time"}, {"min_replicas", "max_replicas"}


def with_value(change: WhatIfChange, name: str, value: float) -> WhatIfChange:
    """The change with one more value, as a slider has it: durations in seconds."""
    typed = timedelta(seconds=float(value)) if name in DURATIONS else int(value) if name in COUNTS else value
    return change._replace(**{name: typed})  # type: ignore[arg-type]  # numbers, which the policy checks


class Slider(NamedTuple):
    """Range of a slider with its step; durations in seconds."""

    least: float
    most: float
    step: float

    def values(self, near: float) -> list[float]:
        """Return its positions, only the nearest ones where they are many."""
        count = round((self.most - self.least) / self.step) + 1
        first = min(max(round((near - self.least) / self.step) - MOST_VALUES // 2, 0), max(count - MOST_VALUES, 0))
        places = range(first, min(first + MOST_VALUES, count))
        return [round(self.least + place * self.step, SLIDER_DIGITS) for place in places]


FIXED = {
    "quantile": Slider(0.5, 0.99, 0.01),
    "target_share": Slider(0.5, 1.5, 0.05),
    "stabilization": Slider(0, 3600, 60),
    "tolerance": Slider(0, 0.5, 0.01),
}
FEWEST_OFFERED = 10
"""Replicas that can be tried, however few there are."""


def sliders_of(now: Values) -> dict[str, Slider]:
    """Return sliders by the names of `WhatIfChange`, for what is stated at present. Lead times have a list, `LEADS`."""
    stated = {name: float(value) for name, value in now.items() if value is not None}
    wide = {
        name: slider._replace(least=min(slider.least, stated[name]), most=max(slider.most, stated[name]))
        for name, slider in FIXED.items()
    }
    counts = {name: Slider(1, max(FEWEST_OFFERED, 2 * stated[name]), 1) for name in sorted(COUNTS & set(stated))}
    return wide | counts


def beside(change: WhatIfChange, names: Iterable[str], now: Values) -> Iterator[WhatIfChange]:
    """All that one movement of these sliders leads to."""
    sliders = sliders_of(now)
    for name in names:
        present, changed = now[name], getattr(change, name)
        if name == "gate":
            yield from (change._replace(gate=None), change._replace(gate=not present))
        elif name == "lead_time":
            yield from (change._replace(lead_time=lead) for lead in (None, *LEADS))
        elif name in sliders and present is not None:
            slider = sliders[name]
            here = present if changed is None else changed
            near = here.total_seconds() if isinstance(here, timedelta) else float(here)
            for value in slider.values(near):
                same = abs(value - float(present)) < slider.step / 2
                yield with_value(change, name, value) if not same else _as_present(change, name)


def _as_present(change: WhatIfChange, name: str) -> WhatIfChange:
    return change._replace(**{name: getattr(NO_CHANGE, name)})
