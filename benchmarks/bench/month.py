"""A month of real services: the plain HPA and ours by the minute, on every scalable series that has four weeks.

The page says first where ours does not help, then shows four of them, the first of each publisher, and lists all.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.bench.frontier import NEGLIGIBLE, NOTABLE, REFERENCE_TARGET, at_cost, compared
from benchmarks.bench.loads import DAY_SECONDS, load
from benchmarks.bench.month_picture import pictured
from benchmarks.bench.ours import our_counts
from benchmarks.bench.peers import PEERS
from benchmarks.bench.replay import BIN, TARGETS, TICK, Counts, account, hpa_counts, replay_of, scalable
from benchmarks.bench.tables import Table
from benchmarks.record import measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.bench.frontier import Comparison
    from benchmarks.bench.replay import Account, Replay

DAYS = 25
"""The most that every series of four weeks has behind two days of history."""
START_UP = 2
TICKS_A_DAY = DAY_SECONDS // TICK
HELPS = 0.95
"""Ratio of unserved demand below which ours counts as a help."""
UNSEEN_DAYS = 10
"""The last days, which are none that the weights of the model were trained on: those saw at most 60 % of a series."""
DOCS = Path(__file__).parents[2] / "docs"
PAGE = """# A month of real services

{series} recorded services and machines of {publishers} publishers, {days} days each, minute by minute; a pod serves
{start_up} minutes after it is requested. Both begin as a fresh install does, with the two days of history or more that
lie before. Ours stands beside a plain HPA with a target of {target} *at the same pod-hours*; [the bench](benchmark.md)
has the metrics and their formulas. **{helped} of {series} are helped.**

Two things to know. To spend as little as the HPA, ours also gives pods back by its forecast, which the default policy
does not: that one only adds. And the weights of its model were trained on up to 60 % of each series, so the last
{unseen} days, new to them, have a column of their own.

Made by `./dev bench month --write`, about ten minutes of CPU. {measured}

## Where it does not help

{no_help}

## Four of them

The first series of each publisher in the catalogue, nothing chosen. Above, the last week: pods that the demand needs,
and pods that were ready; below, demand that was not served on each of the {days} days.

{pictures}

{table}

Unserved is a share of the demand, the HPA's → ours, and `ratio` ours over the HPA's; `changes` of the count are a ratio
to the HPA's; `pod-hours saved` are those at equal shortage, beside an HPA with a target of 70 %.
"""


class Month(NamedTuple):
    """One series with the counts of both, a setting a row."""

    replay: Replay
    forecaster: Counts
    hpa: Counts


class Line(NamedTuple):
    """Result of a month at the pod-hours of the HPA with a target of 80 %."""

    replay: Replay
    comparison: Comparison
    minutes_short: tuple[float, float]
    """Minutes a day with a shortage: of the HPA, and of the forecaster."""
    unseen: Comparison
    """On the last days alone, which the weights of the model have not seen."""

    @property
    def ratio(self) -> float:
        """Unserved demand of ours over the HPA's; NaN where the HPA leaves none, or nothing costs as much."""
        return ratio_of(self.comparison)

    @property
    def is_longer(self) -> bool:
        """Whether less is unserved, but in more minutes."""
        hpa, forecaster = self.minutes_short
        return self.ratio <= HELPS and forecaster > (1 + NOTABLE) * hpa


def ratio_of(comparison: Comparison) -> float:
    """Unserved demand as a ratio to the HPA's; NaN where the HPA leaves none."""
    nothing = comparison.hpa_unserved <= NEGLIGIBLE
    return float("nan") if nothing else comparison.unserved / comparison.hpa_unserved


def month_replays() -> list[Replay]:
    """The series that are load behind an autoscaler and long enough for a month."""
    fine = {item.name: item for item in load(TICK)}
    made = (replay_of(fine[item.name], DAYS) for item in scalable(load(BIN)))
    return [replay for replay in made if replay is not None]


def months(replays: Sequence[Replay]) -> list[Month]:
    """Play the forecaster and the HPA on each series."""
    forecaster, alone = our_counts(replays, START_UP), PEERS["HPA alone"]
    return [
        Month(replay, forecaster[replay.name], hpa_counts(replay, alone(replay, START_UP), TARGETS, START_UP))
        for replay in replays
    ]


def line_of(month: Month) -> Line:
    """The two of a month at equal cost."""
    own, hpa = accounts(month)
    place = TARGETS.index(REFERENCE_TARGET)
    short = float(hpa.minutes_short[place]), at_cost(own, float(hpa.pod_hours[place]), own.minutes_short)
    unseen = compared(*accounts(since(month, (DAYS - UNSEEN_DAYS) * TICKS_A_DAY)))
    return Line(month.replay, compared(own, hpa), (short[0] * TICKS_A_DAY, short[1] * TICKS_A_DAY), unseen)


def accounts(month: Month) -> tuple[Account, Account]:
    """Accounts of the forecaster and of the HPA, a setting a place."""
    return account(month.replay, month.forecaster), account(month.replay, month.hpa)


def since(month: Month, tick: int) -> Month:
    """The month from a tick on."""
    replay = month.replay
    later = replace(replay, measured=replay.measured[tick:], demand=replay.demand[tick:])
    forecaster, hpa = (
        Counts(counts.requested[:, tick:], counts.ready[:, tick:]) for counts in (month.forecaster, month.hpa)
    )
    return Month(later, forecaster, hpa)


def month_table(lines: Sequence[Line]) -> Table:
    """Table with a line for each series, beginning with the series that is helped least."""
    last = f"last {UNSEEN_DAYS} days"
    columns = ("series", "unserved", "ratio", last, "minutes short a day", "changes", "pod-hours saved")
    table = Table("All of them", columns)
    for line in sorted(lines, key=lambda line: -np.nan_to_num(line.ratio, nan=np.inf)):
        comparison = line.comparison
        table.add(
            line.replay.name,
            f"{comparison.hpa_unserved:.3%} → {comparison.unserved:.3%}",
            f"{line.ratio:.2f}",
            f"{ratio_of(line.unseen):.2f}",
            "{:.1f} → {:.1f}".format(*line.minutes_short),
            f"{comparison.changes:.2f}",
            f"{comparison.saved:.0%}",
        )
    return table


def no_help(lines: Sequence[Line]) -> list[str]:
    """A sentence for each series on which ours leaves about as much unserved as the HPA, or harms in another way."""
    return [_no_help(line) for line in lines if not helps(line)]


def helps(line: Line) -> bool:
    """Whether notably less is unserved, not in more minutes, and without more pod-hours at equal shortage."""
    return line.ratio <= HELPS and not line.is_longer and not line.comparison.saved < 0


def _no_help(line: Line) -> str:
    comparison = line.comparison
    if np.isnan(line.ratio):
        unserved = f"{comparison.hpa_unserved:.3%}"
        return f"`{line.replay.name}`: the HPA alone leaves {unserved} unserved; there is nothing to win."
    word = "worse" if comparison.is_worse else "less" if line.ratio <= HELPS else "the same"
    minutes = ", in {:.0f} minutes a day instead of {:.0f}".format(*reversed(line.minutes_short))
    cost = f"; at equal shortage it takes {-comparison.saved:.0%} more pod-hours" if comparison.saved < 0 else ""
    share = f"{comparison.hpa_unserved:.3%} unserved becomes {comparison.unserved:.3%}"
    return f"`{line.replay.name}`: {word}, {share}{minutes if line.is_longer else ''}{cost}."


def firsts(months: Sequence[Month]) -> list[Month]:
    """The first series of each publisher, in the order of the catalogue."""
    return list({month.replay.family: month for month in reversed(months)}.values())[::-1]


def page(lines: Sequence[Line], pictures: Sequence[tuple[str, str]]) -> str:
    """The page in Markdown; `pictures` are titles and paths beside it."""
    worse = no_help(lines)
    return PAGE.format(
        series=len(lines),
        publishers=len({line.replay.family for line in lines}),
        days=DAYS,
        start_up=START_UP,
        target=f"{REFERENCE_TARGET:.0%}",
        helped=len(lines) - len(worse),
        unseen=UNSEEN_DAYS,
        measured=measured(),
        no_help="\n".join(f"- {sentence}" for sentence in worse) or "- There is none among these.",
        pictures="\n\n".join(f"![{title}]({path})" for title, path in pictures),
        table=str(month_table(lines)).replace("### ", "## "),
    )


def write_page(played: Sequence[Month], lines: Sequence[Line], docs: Path = DOCS) -> None:
    """The page with its pictures, below `docs`."""
    shown = []
    for month in firsts(played):
        path = f"pictures/month-{month.replay.family.replace('_', '-')}.svg"
        (docs / path).write_text(pictured(month.replay, *equal_cost(month)), encoding="utf-8")
        shown.append((month.replay.name, path))
    (docs / "month.md").write_text(page(lines, shown), encoding="utf-8")


def equal_cost(month: Month) -> tuple[Counts, Counts]:
    """One setting of each: the HPA with a target of 80 %, and the most that ours has for no more pod-hours."""
    own, hpa = accounts(month)
    place = TARGETS.index(REFERENCE_TARGET)
    return _row(month.hpa, place), _row(month.forecaster, _affordable(own, float(hpa.pod_hours[place])))


def _affordable(own: Account, pod_hours: float) -> int:
    return int(np.argmax(np.where(own.pod_hours <= pod_hours, own.pod_hours, -1.0)))


def _row(counts: Counts, place: int) -> Counts:
    return type(counts)(counts.requested[place : place + 1], counts.ready[place : place + 1])
