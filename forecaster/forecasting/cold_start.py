"""Cold start: workloads without two days of their own get half their forecast from the past of a donor.

Donors bear one name but for an ending: `web-v2` and `web`, `worker-1` and `worker-2`, `api` in another namespace. Half,
because it is not sure which workloads are related: on recorded load split among three replicas the loss of the first
two days falls by 7 %, among series that share a family and no application it stays what it was, and two views averaged
are wider where they disagree (`python -m benchmarks.accuracy`, newcomers with relatives).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.fresh import FreshHistory
from forecaster.domain.window import DAY
from forecaster.domain.workload import WorkloadId
from forecaster.forecasting.peaks import LEVELS, PeakForecasts, panel_of
from forecaster.horizontal.columns import TextCodes
from models import Lent, Prior, StepWindow, lent
from models.donors import GROWN_DAYS, YOUNG_DAYS

ENDING = re.compile(r"(?:-(?>(?:v?\d+|[a-f\d]{8,10}|blue|canary|green|preview|primary|stable)(?=-|$)))+$")
"""Each part is read in one way only: two ways for each of two dozen parts would be millions for one name."""
DONORS = 16
"""Compared with each other before one lends."""
DONOR_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class BorrowedHistory:
    """Newcomers and the panel in which they have a past."""

    ids: tuple[WorkloadId, ...]
    lent: Lent


@lru_cache(maxsize=2**16)
def family(id_: WorkloadId) -> tuple[str, str]:
    """Return the part of an identity that donors share: kind, and name without a suffix for version or part."""
    return id_.kind, ENDING.sub("", id_.name)


def borrowed(history: FreshHistory) -> BorrowedHistory | None:
    """Return the cold starts of a signal that have a donor; None when there are none, as in most cycles."""
    young, grown = _ages(history)
    if not (len(young) and len(grown)):
        return None
    keys = history.weeks.keys
    families: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in grown.tolist():
        families[family(keys[row])].append(row)
    young_rows = [row for row in young.tolist() if family(keys[row]) in families]
    lenders = {row for family_key in {family(keys[row]) for row in young_rows} for row in families[family_key][:DONORS]}
    rows = [*young_rows, *sorted(lenders)]
    values = history.rows(np.array(rows, np.intp))
    panel = panel_of(history, values, tuple(keys[row].path for row in rows))
    loan = lent(panel, [family(keys[row]) for row in rows])
    ids = [keys[row] for row in young_rows if keys[row].path in loan.lenders]
    return BorrowedHistory(tuple(ids), loan) if ids else None


def with_borrowed(peaks: PeakForecasts, borrowed: BorrowedHistory, window: StepWindow) -> PeakForecasts:
    """Return forecasts averaged with those of donors during cold start; a note names a donor of the same namespace."""
    ids = [id_ for id_ in borrowed.ids if id_ in peaks.row]
    if not ids:
        return peaks
    other = Prior().fit(borrowed.lent.panel.select([id_.path for id_ in ids])).forecast_peak(window, LEVELS)
    values, note, table = peaks.values.copy(), peaks.note.copy(), TextCodes(peaks.notes)
    for id_, row in zip(ids, other.provenance.rows([id_.path for id_ in ids]).tolist(), strict=True):
        if row >= 0:
            at = peaks.row[id_]
            values[at] = (1 - DONOR_SHARE) * values[at] + DONOR_SHARE * other.values[row]
            note[at] = table[_note(peaks.notes[note[at]], id_, borrowed.lent.lenders[id_.path])]
    return replace(peaks, values=values, note=note, notes=tuple(table))


def _note(own: str, id_: WorkloadId, lender: str) -> str:
    donor = lender if lender.startswith(f"{id_.namespace}/") else "a workload of this name in another namespace"
    half = f"half of it from the past of {donor}, at this workload's level"
    return f"{own}; {half}" if own else half


def _ages(history: FreshHistory) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows with less than two days, and rows present five days ago: samples of an hour decide."""
    day = DAY // history.weeks.step
    recent = history.weeks.values[:, -GROWN_DAYS * day :]
    if recent.shape[1] < GROWN_DAYS * day:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    absent = np.isnan(recent[:, : max(1, day // 24)]).all(axis=1)
    late, grown = np.flatnonzero(absent), np.flatnonzero(~absent)
    if not (len(late) and len(grown)):
        return late, grown
    unknown = np.isnan(recent[late])
    return late[unknown[:, : -YOUNG_DAYS * day].all(axis=1) & ~unknown.all(axis=1)], grown
