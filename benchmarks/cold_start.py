"""The first day of a series: how a forecast does while there are only hours of history.

Each recorded series is taken as if it were born where the part begins that no prior has seen (after 60 %), and an hour
is forecast at a dozen ages up to a day. The yardstick is the better of last value and seasonal naive; before a day is
over seasonal naive has nothing to say but the last value.

Then the first two days of a newcomer with relatives: series split into three noisy shares, as replicas of one
application are, one of which is young; and, for what it costs where a name is shared and nothing else, recorded series
of one family as if they were relatives.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from models import LastValue, Panel, create, lent
from models.evaluate import coverage, pinball

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = (0.5, 0.9, 0.95)
AGES = tuple(timedelta(minutes=m) for m in (20, 30, 40, 60, 90, 120, 180, 300, 480, 720, 1080, 1440))
HOUR = timedelta(hours=1)
BORN_AT = 0.6
KIN_AGES = tuple(timedelta(minutes=m) for m in (30, 120, 480, 1080, 2160))
KIN_DAYS, KIN = 14, 3
# Shares of replicas: even to about a half, noise that lingers for hours and noise that does not.
EVENNESS, LINGERING, SLOW_NOISE, NOISE = 6.0, 0.97, 0.1, 0.05


def cold_start(bench: Path, *, quick: bool) -> str:
    """Loss relative to the last value held: geometric mean over series, by age."""
    sys.path.insert(0, str(bench.resolve().parent))
    from bench import traces  # noqa: PLC0415  lies outside this repository

    series = traces.sample(traces.load([traces.SHARED]), 24 if quick else None, 0)
    losses = np.array([loss for one in series if (loss := losses_of(one.y, one.step_s)) is not None])
    total = losses.sum(axis=1)
    young = losses[:, [age <= HOUR for age in AGES]].sum(axis=1)
    return f"""## The first day

sQL relative to the last value held: {ratio(total):.3f} over the first day (limit 0.85), {ratio(young):.3f} within the
first hour (limit 1.00), {len(losses)} series.
"""


def losses_of(values: np.ndarray, step_seconds: int) -> np.ndarray | None:
    """[age, (adaptive, last value)] summed loss of one series; None where a day is too flat or too short to tell."""
    born, step = int(BORN_AT * len(values)), timedelta(seconds=step_seconds)
    ages = [max(2, age // step) for age in AGES]
    ahead = HOUR // step
    known = values[born : born + ages[-1] + ahead]
    if len(known) < ages[-1] + ahead or np.isnan(known).mean() > 0.2 or not np.nanstd(known) > 0:
        return None
    return np.array([[loss(model, known, age, ahead, step) for model in ("adaptive", "last-value")] for age in ages])


def loss(model: str, known: np.ndarray, age: int, ahead: int, step: timedelta) -> float:
    """Summed pinball loss of one forecast; nothing where there is no sample yet."""
    past = Panel.cleaned(known[None, :age], datetime(2026, 1, 5, tzinfo=UTC), step, ("one",))
    forecast = (LastValue() if model == "last-value" else create(model)).fit(past).forecast(ahead, LEVELS)
    if not len(forecast.keys):
        return 0.0
    return float(np.nansum(pinball(known[None, age : age + ahead], forecast.values, LEVELS)))


def ratio(losses: np.ndarray) -> float:
    """Geometric mean over series of ours against the last value."""
    some = losses[(losses > 0).all(axis=1)]
    return float(np.exp(np.log(some[:, 0] / some[:, 1]).mean()))


def relatives(bench: Path, *, quick: bool) -> str:
    """Loss and coverage with half of the forecast from a relative's past, relative to without, by kind of relatives."""
    sys.path.insert(0, str(bench.resolve().parent))
    from bench import traces  # noqa: PLC0415  lies outside this repository

    rng = np.random.default_rng(0)
    series = traces.load([traces.SHARED], 300)
    some = traces.sample(series, 8 if quick else 40, 0)
    replicas = [(shares(one.y, rng), timedelta(seconds=one.step_s)) for one in some]
    by_family: dict[tuple[str, str, int, int], list[np.ndarray]] = {}
    for one in series:
        by_family.setdefault((one.family, one.metric, one.step_s, len(one)), []).append(one.y)
    families = [
        (np.stack(members[:KIN]), timedelta(seconds=key[2]))
        for key, members in by_family.items()
        if len(members) >= KIN
    ]
    return f"""## The first two days of a newcomer with relatives

Half of the forecast from the past of a relative, against none of it:

- {line("shares of one application", replicas)}
- {line("series that share a family and no application", families)}
"""


def shares(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """[replica, time] of one series."""
    noise = rng.standard_normal((KIN, len(values)))
    slow = np.zeros(KIN)
    lingering = np.empty_like(noise)
    for t, step in enumerate(rng.standard_normal((len(values), KIN))):
        slow = LINGERING * slow + np.sqrt(1 - LINGERING**2) * step
        lingering[:, t] = slow
    parts = rng.dirichlet([EVENNESS] * KIN)[:, None]
    return np.asarray(values * parts * np.exp(SLOW_NOISE * lingering + NOISE * noise))


def line(name: str, groups: list[tuple[np.ndarray, timedelta]]) -> str:
    """One sentence about groups of series [series, time]; the first of each group is the newcomer."""
    found = [both for values, step in groups if (both := of_newcomer(values, step)) is not None]
    losses = np.array([loss for loss, _ in found])
    covered = np.nanmean([hits for _, hits in found], axis=0)
    said = ", ".join(f"p{100 * level:.0f} {share:.3f}" for level, share in zip(LEVELS, covered, strict=True))
    return f"{name}: sQL {ratio(losses):.3f} of that without, {said} covered, {len(losses)} newcomers"


def of_newcomer(values: np.ndarray, step: timedelta) -> tuple[np.ndarray, np.ndarray] | None:
    """Loss (with, without) of the first series, summed over ages, and coverage with; None where it is too short."""
    born, day, ahead = int(BORN_AT * values.shape[1]), timedelta(days=1) // step, HOUR // step
    ages = [max(3, age // step) for age in KIN_AGES]
    if born < day * (KIN_DAYS // 2) or born + ages[-1] + ahead > values.shape[1]:
        return None
    lost, hits = np.zeros(2), []
    for age in ages:
        actual = values[:1, born + age : born + age + ahead]
        own, both = newcomer(values[:, max(0, born - KIN_DAYS * day) : born + age], age, step, ahead)
        if np.isnan(actual).all() or own is None:
            continue
        lost += [np.nansum(pinball(actual, found, LEVELS)) for found in (both, own)]
        hits.append(coverage(actual, both)[0])
    return (lost, np.mean(hits, axis=0)) if hits else None


def newcomer(known: np.ndarray, age: int, step: timedelta, ahead: int) -> tuple[np.ndarray | None, np.ndarray]:
    """[1, level, step] of the first series alone, and averaged with what the past of a relative says."""
    young = known.copy()
    young[0, :-age] = np.nan
    panel = Panel.cleaned(young, datetime(2026, 1, 5, tzinfo=UTC), step, tuple(map(str, range(len(known)))))
    own = create("prior").fit(panel.take([0])).forecast(ahead, LEVELS)
    if not len(own.keys):
        return None, np.empty(0)
    found = lent(panel, ("kin",) * len(known))
    borrowed = create("prior").fit(found.panel.take([0])).forecast(ahead, LEVELS) if found.lenders else own
    return own.values, (own.values + borrowed.values) / 2
