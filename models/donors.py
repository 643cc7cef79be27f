"""Donors: a newcomer borrows the past of the series of its group that moves most like it, at its own level.

Two replicas of an application, a canary and what it replaces, the same service in another region: their days have one
shape. So until a newcomer has seen two days itself, what a grown donor did before the newcomer's first sample stands
for what the newcomer would have done. Values are those of one donor and not a mean of many: a mean is calmer than
any of them, and quantiles learned from it would be too narrow.

A common name is no proof. On recorded load, series of one provider that lent to each other at first sight made
forecasts of the first two days worse by a fifth to a third. So a series lends when it is shown that shapes are
shared: by another grown series that it follows, or by the newcomer's own samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .clean import bins_seen
from .panel import DAY, Floats, Panel, trusted

# A series with fewer days is a newcomer: one day is no rhythm. A donor has more than twice as many.
YOUNG_DAYS, GROWN_DAYS = 2, 5
# Skill is what is left of the distance to a level of one's own: 0 is no better, 1 is the same shape. Below a third the
# shape of a donor says little; a quarter of a day of own samples is enough to show more.
PROOF, PROVING_DAYS = 0.3, 0.25
# By two days, as many as a newcomer may have, it shows whether grown donors move together.
COMPARED_DAYS = YOUNG_DAYS


@dataclass(frozen=True, eq=False)
class Lent:
    """A panel with a past for newcomers, and where it is from: key of the newcomer to key of the donor."""

    panel: Panel
    lenders: Mapping[str, str]


def lent(panel: Panel, groups: Sequence[Hashable | None]) -> Lent:
    """Give newcomers the past of a donor; a series of group None has no donors.

    What a newcomer measured itself is left as it is. It borrows nothing where no series of its group is grown or
    was active at the same time, or where nothing shows that shapes are shared.

    >>> from datetime import UTC, datetime, timedelta
    >>> from models import Panel
    >>> days = np.tile([1.0, 3.0, 5.0, 3.0], 6)
    >>> newcomer = np.where(np.arange(24) < 21, np.nan, 2 * days)
    >>> values = np.array([days, 5 * days, newcomer])
    >>> panel = Panel(values, datetime(2026, 1, 5, tzinfo=UTC), timedelta(hours=6), ("web-1", "web-2", "web-3"))
    >>> filled = lent(panel, ("web", "web", "web"))
    >>> filled.panel.values[2, -8:].tolist(), filled.lenders
    ([2.0, 6.0, 10.0, 6.0, 2.0, 6.0, 10.0, 6.0], {'web-3': 'web-1'})
    """
    day = panel.bins(DAY)
    observed = bins_seen(panel.values)
    young, grown = (observed > 0) & (observed < YOUNG_DAYS * day), observed >= GROWN_DAYS * day
    values, lenders = panel.values, {}
    newcomers = np.flatnonzero(young).tolist()
    donors = _donors(panel.values, groups, grown, {groups[row] for row in newcomers} - {None}, day)
    for row in newcomers:
        if groups[row] not in donors:
            continue
        group_donors = donors[groups[row]]
        donor = _donor(panel.values[row, -observed[row] :], group_donors, day)
        if donor is not None:
            values = values.copy() if values is panel.values else values
            nth, factor = donor
            values[row, : -observed[row]] = factor * panel.values[group_donors.rows[nth], : -observed[row]]
            lenders[panel.keys[row]] = panel.keys[group_donors.rows[nth]]
    return Lent(trusted(values, panel.start, panel.step, panel.keys), lenders)


class GroupDonors(NamedTuple):
    """The grown series of a group.

    Attributes:
        rows: where they are in the panel.
        latest: [donor, time] their latest two days.
        agreement: [donor] how well each follows the other that it follows best; 0 where there is no other.
    """

    rows: list[int]
    latest: Floats
    agreement: Floats


def _donors(
    values: Floats,
    groups: Sequence[Hashable | None],
    grown: npt.NDArray[np.bool_],
    borrowers: Container[Hashable | None],
    day: int,
) -> dict[Hashable | None, GroupDonors]:
    """Return the donors of each group with a newcomer, read once however many newcomers there are."""
    rows: dict[Hashable | None, list[int]] = defaultdict(list)
    for row in np.flatnonzero(grown).tolist():
        if groups[row] in borrowers:
            rows[groups[row]].append(row)
    latest = {group: values[each, -COMPARED_DAYS * day :] for group, each in rows.items()}
    return {group: GroupDonors(each, latest[group], _agreement(latest[group])) for group, each in rows.items()}


def _donor(own: Floats, group_donors: GroupDonors, day: int) -> tuple[int, float] | None:
    """Return the donor for a newcomer with `own` samples, and the factor to its level."""
    own_skill, factor = followed(own, group_donors.latest[:, -len(own) :])
    shown = own_skill if len(own) >= PROVING_DAYS * day else group_donors.agreement
    best = int(np.argmax(np.where(factor > 0, shown, -np.inf)))
    return (best, float(factor[best])) if factor[best] > 0 and shown[best] >= PROOF else None


def followed(own: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Skill [other] of others [other, time] at the level of `own`, and the factor to that level; 0 where there is none.

    1 - mean |own - factor * other| / mean |own - mean of own|, over the samples that both have.
    """
    known = np.isfinite(own) & np.isfinite(others)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    own_known, others_known = np.where(known, own, 0.0), np.where(known, others, 0.0)
    level, other_level = (part.sum(axis=1, dtype=np.float64, keepdims=True) for part in (own_known, others_known))
    factor = np.divide(level, other_level, out=np.zeros_like(level), where=other_level > 0)
    apart = np.abs(own_known - factor * others_known).sum(axis=1)
    alone = np.where(known, np.abs(own_known - level / count), 0.0).sum(axis=1)
    skill = 1 - np.divide(apart, alone, out=np.ones_like(alone), where=alone > 0)
    return skill, factor[:, 0]


def _agreement(donors: Floats) -> Floats:
    """[donor] how well it follows the other that it follows best; 0 where there is no other."""
    skills = np.stack([followed(donor, donors)[0] for donor in donors], axis=1)
    np.fill_diagonal(skills, 0.0)
    return np.asarray(skills.max(axis=1))
