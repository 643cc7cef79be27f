"""What learning between fits is worth: `python -m benchmarks.rolling [--families NAME ...]`; a quarter of an hour.

Each recorded series is forecast an hour ahead from every hour of its last 40 %, with a fit every six hours as in the
service, and an update every hour in between. From the same fits speak two: one that follows what comes true, and one
whose weights wait for the next fit. Said for both: loss against seasonal naive's scale, coverage, coverage by the
hours since a shift of level, and per family the coverage of each level with its standard error.

The standard error draws days with all series of a family together: what they do on one day they often do in common.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.accuracy import table
from models import Adaptive, Panel
from models.evaluate import pinball

if TYPE_CHECKING:
    from collections.abc import Iterator

    from models import Forecast

LEVELS = (0.5, 0.9, 0.95, 0.99)
HITS, LOST = [f"cov{round(100 * level)}" for level in LEVELS], slice(0, 3)
SHARES = (*HITS, "under50")
BORN_AT, DAYS, HOURS_BETWEEN_FITS = 0.6, 14, 6
SINCE = ((1, 3), (3, 6), (6, 12), (12, 24))
# A shift: six hours this much off the six before, and off the same hours a day (and, less, a week) ago, from one hour
# to the next, on a day that was as the day before until then.
FACTOR, WEEKLY, ABRUPT, CALM = np.log([1.4, 1.25, 1.3, 1.25])
DRAWS = 400


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--bench", type=Path, default=Path("../shared/bench"))
    arguments.add_argument("--families", nargs="*", default=())
    asked = arguments.parse_args()
    sys.path.insert(0, str(asked.bench.resolve().parent))
    from bench import traces  # noqa: PLC0415  lies outside this repository

    together: dict[tuple[str, int, int], list] = {}
    for one in traces.load([traces.SHARED]):
        if not asked.families or one.family in asked.families:
            together.setdefault((one.family, one.step_s, len(one)), []).append(one)
    with threadpool_limits(1):
        rows = pd.concat([pd.DataFrame(scores(group)) for group in together.values()])
    print(*(f"{name}\n\n{table(found)}\n" for name, found in summaries(rows).items()), sep="\n")


def scores(group: list) -> Iterator[dict[str, object]]:
    """One row per series, hour and way."""
    first = group[0]
    values = Panel.cleaned(
        np.stack([one.y for one in group]),
        datetime.fromtimestamp(first.t0, UTC),
        timedelta(seconds=first.step_s),
        [one.series_id for one in group],
    )
    hour = first.day // 24
    moments = [shifts(row, hour) for row in values.values]
    for turn, origin in enumerate(range(int(BORN_AT * len(first)), len(first) - hour, hour)):
        past = values.until(values.start + origin * values.step).last(timedelta(days=DAYS))
        if turn % HOURS_BETWEEN_FITS == 0:
            fitted = Adaptive().fit(past)
            learned = fitted.learned
        else:
            fitted = fitted.update(past)
        waiting = replace(fitted, learned=learned)
        said = {"follows": fitted.forecast(hour, LEVELS), "waits": waiting.forecast(hour, LEVELS)}
        actual = values.values[:, origin : origin + hour]
        scale = np.nanmean(np.abs(past.values[:, first.day :] - past.values[:, : -first.day]), axis=1)
        for way, forecast in said.items():
            for row, key in enumerate(values.keys):
                since = min(((origin - at) // hour for at in moments[row] if at < origin), default=10**6)
                about = {"family": first.family, "series": key, "way": way, "day": origin // first.day, "since": since}
                yield about | score(forecast, key, actual[row], scale[row])


def score(forecast: Forecast, key: str, actual: np.ndarray, scale: float) -> dict[str, float]:
    """Samples, hits by level and scaled loss of one series in one hour."""
    if key in forecast.unknown or not scale > 0:
        return {"n": 0, "under50": 0, "loss": 0.0, **dict.fromkeys(HITS, 0)}
    said = forecast.values[forecast.provenance.row(key)]
    hits = (actual <= said + 1e-12).sum(axis=1)
    lost = np.nansum(pinball(actual, said, LEVELS)[LOST]) / scale
    found = {"n": np.isfinite(actual).sum(), "under50": (actual < said[0] - 1e-12).sum(), "loss": lost}
    return found | dict(zip(HITS, hits.tolist(), strict=True))


def shifts(values: np.ndarray, hour: int) -> list[int]:
    """Bins at which a series moved to another level, in hindsight; the most abrupt of a day."""
    day, half = 24 * hour, 6 * hour
    found = []
    for at in range(8 * day, len(values) - half, hour):
        if np.isnan(values[at - 2 * day : at + half]).mean() > 0.1:
            continue
        after, before, yesterday = (level(values[t : t + half]) for t in (at, at - half, at - day))
        week, calm = level(values[at - 7 * day :][:half]), before - level(values[at - day - half :][:half])
        jump = abs(level(values[at : at + 2 * hour]) - level(values[at - 2 * hour : at]))
        moved = np.array([after - before, after - yesterday, after - week]) * np.sign(after - before)
        if (moved > [FACTOR, FACTOR, WEEKLY]).all() and jump > ABRUPT and abs(calm) < CALM:
            found.append((jump, at))
    kept: list[int] = []
    for _, at in sorted(found, reverse=True):
        if all(abs(at - other) >= day for other in kept):
            kept.append(at)
    return kept


def level(values: np.ndarray) -> float:
    """Logarithm of the median; of next to nothing where there is none."""
    known = values[np.isfinite(values)]
    return float(np.log(max(np.median(known), 1e-12))) if len(known) else np.nan


def summaries(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables by name."""
    rows = rows[rows.n > 0]
    series = rows.groupby(["way", "series"])[[*HITS, "n", "loss"]].sum()
    shares = series[HITS].div(series.n, axis=0)
    overall = shares.groupby("way").mean()
    overall["spread_cov90"] = shares.cov90.groupby("way").std()
    overall["loss"] = np.exp(np.log(series.loss / series.n + 1e-12).groupby("way").mean())
    hours = {f"{a} to {b} h": rows[(rows.since >= a) & (rows.since < b)] for a, b in SINCE}
    after = pd.concat({name: _pooled(some) for name, some in hours.items()}, names=["after a shift"])
    families = rows[rows.way == "follows"].groupby("family").apply(_covered)
    return {"All hours": overall, "After a shift of level": after, "By family, following": families}


def _pooled(rows: pd.DataFrame) -> pd.DataFrame:
    sums = rows.groupby("way")[[*HITS, "n", "loss"]].sum()
    found = sums[HITS].div(sums.n, axis=0)
    return found.assign(loss=sums.loss / sums.n, hours=rows.groupby("way").size())


def _covered(rows: pd.DataFrame) -> pd.Series:
    """Share at or below each level, mean over series, its standard error over days, and the share below the median.

    A series that is often 0, or another value that is its median, lies on its median as often, and not above it.
    """
    by_day = {name: rows.pivot_table(name, "series", "day", "sum", fill_value=0).to_numpy() for name in (*SHARES, "n")}
    known = by_day["n"]
    rng, days = np.random.default_rng(0), known.shape[1]
    drawn = rng.multinomial(days, np.full(days, 1 / days), DRAWS).T
    found: dict[str, object] = {"series": f"{len(known)}", "days": f"{days}"}
    for name in SHARES:
        found[name] = (by_day[name].sum(axis=1) / known.sum(axis=1)).mean()
        with np.errstate(invalid="ignore"):
            found[f"{name} ±"] = np.nanmean((by_day[name] @ drawn) / (known @ drawn), axis=0).std()
    return pd.Series(found)


if __name__ == "__main__":
    main()
