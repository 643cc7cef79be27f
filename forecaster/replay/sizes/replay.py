"""A recommender over recorded usage, point by point: it sees what was used, never what was wanted above the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from forecaster.replay.sizes.account import Account
from forecaster.replay.sizes.load import BEGIN, STEP_SECONDS, Load

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]
    Flags = NDArray[np.bool_]


class Held(NamedTuple):
    """[row] what the containers have, and for how many seconds."""

    request: Doubles
    limit: Doubles
    age: Doubles


class Sizer(Protocol):
    """A recommender and its rule of when to change."""

    every: int
    """Points between two looks."""

    def observe(self, used: Doubles, at: int) -> None:
        """[row] usage of one point, NaN where there is none; `at` in seconds since 1970."""

    def killed(self, rows: NDArray[np.intp], limit: Doubles, at: int) -> None:
        """Containers that were killed at their limit [row]."""

    def size(self, held: Held, at: int) -> tuple[Doubles, Doubles, Flags]:
        """[row] requests, limits and which containers get them now."""


def replay(load: Load, sizer: Sizer) -> Account:
    """What would have come of it, after the warm-up. A killed container restarts with what is recommended by then."""
    rows, points = load.wanted.shape
    account, everyone = Account.empty(rows), np.ones(rows, bool)
    for column in range(load.warm):
        sizer.observe(load.wanted[:, column], _at(column))
    nothing = np.full(rows, np.nan)
    held = _changed(Held(nothing, nothing, np.zeros(rows)), sizer, load.warm, everyone)
    for column in range(load.warm, points):
        wanted, at = load.wanted[:, column], _at(column)
        account.count(wanted, held.request, held.limit)
        over = wanted > held.limit
        sizer.observe(np.minimum(wanted, np.fmin(held.limit, np.inf)), at)
        killed = over & (load.resource == "memory")
        if killed.any():
            sizer.killed(np.flatnonzero(killed), held.limit, at)
        due = everyone if (column - load.warm) % sizer.every == sizer.every - 1 else killed
        before = held.request
        held = _changed(held, sizer, column + 1, due, restarted=killed) if due.any() else held
        account.changes += held.request != before
        held = held._replace(age=np.where(held.request != before, 0.0, held.age + STEP_SECONDS))
    return account


def _changed(held: Held, sizer: Sizer, column: int, due: Flags, restarted: Flags | None = None) -> Held:
    """What the containers have after a look: those that are due and that the rule changes, or that restart anyway."""
    request, limit, moves = sizer.size(held, _at(column - 1))
    first = np.isnan(held.request)
    moving = due & ~np.isnan(request) & (moves | first | (False if restarted is None else restarted))
    return Held(np.where(moving, request, held.request), np.where(moving, limit, held.limit), held.age)


def _at(column: int) -> int:
    return BEGIN + column * STEP_SECONDS
