"""The contract of every model; public, so that the author of a model can test it before use.

check_model(model) runs all of it and raises ContractError with the promise that broke, the panel that broke it and the
remedy.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from .errors import ContractError
from .forecast import Forecast, Peak, StepWindow
from .model import Fitted, Model, Stacks
from .panel import Floats, Panel

CHECKED_LEVELS = (0.1, 0.5, 0.9, 0.95, 0.99)
STEPS, WINDOW = 6, StepWindow(2, 5)
CHECKED_SHAPE = len(CHECKED_LEVELS), STEPS
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
STEP = timedelta(minutes=30)
DAY_BINS = 48
# Relative difference that rounding to float32 and another order of summing may make.
ROUNDING = 2e-3
ORDINARY = "an ordinary panel"


def check_model(model: Model) -> None:
    """Run all checks, one after the other.

    A model with `pooled = True` learns from all series of a panel together. Its forecast of a series alone may differ
    from that among others; units, order and names of other series must not matter.

    Raises:
        ContractError: the first broken promise, its panel, and the remedy; also where the model raises.
    """
    for check, remedy in CHECKS.items():
        try:
            with answering(model, ORDINARY):
                check(model)
        except ContractError as error:
            raise ContractError(f"{error}; {remedy}") from None


@contextmanager
def answering(model: Model, panel: str) -> Iterator[None]:
    """Turn the model's exceptions into a broken promise, with the line that raised them.

    Raises:
        ContractError: it raised something.
    """
    try:
        yield
    except ContractError:
        raise
    except Exception as error:  # noqa: BLE001  a model may do anything
        *_, last = traceback.extract_tb(error.__traceback__)
        cause = f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
        raise ContractError(f"{model.name} breaks the contract: it raises {cause}, on {panel}") from None


def check_answers_are_quantiles(model: Model) -> None:
    """Shapes, order, sign, finiteness, origin; on ordinary and on bad series."""
    for name, panel in {"ordinary": ordinary(), **bad_panels()}.items():
        with answering(model, f"the panel {name!r}"):
            fitted = model.fit(panel)
            check_forecast(model, name, panel, fitted.forecast(STEPS, CHECKED_LEVELS))
            _check_peak(model, name, panel, fitted.forecast_peak(WINDOW, CHECKED_LEVELS))


def check_fitting_repeats(model: Model) -> None:
    """Check that the same panel gives the same numbers, to the last bit, and stays unchanged."""
    panel = ordinary()
    before = panel.values.copy()
    first, second = _numbers(model.fit(panel)), _numbers(model.fit(panel))
    _require(model, "fitting twice gives the same numbers", np.array_equal(first, second))
    _require(model, "fitting leaves the panel alone", np.array_equal(before, panel.values, equal_nan=True))


def check_scale(model: Model) -> None:
    """Demand in other units gives the forecast in those units."""
    panel = ordinary()
    for factor in (1e-6, 1e6):
        scaled = replace(panel, values=panel.values * factor)
        same = _close(_numbers(model.fit(scaled)) / factor, _numbers(model.fit(panel)))
        _require(model, f"{factor:g} times the demand gives {factor:g} times the forecast", same)


def check_whole_weeks(model: Model) -> None:
    """The calendar matters only through the time of the week."""
    panel = ordinary()
    later = replace(panel, start=panel.start + timedelta(weeks=5))
    same = _close(_numbers(model.fit(later)), _numbers(model.fit(panel)))
    _require(model, "five weeks later the same history gives the same forecast", same)


def check_no_future(model: Model) -> None:
    """Check that values after the origin change nothing."""
    panel = ordinary()
    origin = panel.end - timedelta(hours=12)
    known = panel.until(origin)
    other = panel.values.copy()
    other[:, known.length :] *= 7
    altered = replace(panel, values=other).until(origin)
    same = np.array_equal(_numbers(model.fit(altered)), _numbers(model.fit(known)))
    _require(model, "another future gives the same forecast", same)


def check_update(model: Model) -> None:
    """New bins move the origin; a window handed over whole and the bins alone give the same."""
    panel = ordinary()
    origin = panel.end - timedelta(hours=3)
    fitted = model.fit(panel.until(origin))
    before = _numbers(fitted)
    latest = Panel(panel.values[:, -6:], origin, panel.step, panel.keys)
    by_bins, by_window = fitted.update(latest), fitted.update(panel)
    _require(model, "an update moves the origin", by_bins.forecast(STEPS, CHECKED_LEVELS).origin == panel.end)
    _require(model, "new bins and the whole window give the same", _close(_numbers(by_bins), _numbers(by_window)))
    _require(model, "an update leaves the old fitted model alone", np.array_equal(before, _numbers(fitted)))


def check_series_alone(model: Model) -> None:
    """Check that a series gets the same forecast alone as among others; for a pooled model, after the same training."""
    panel, rows = ordinary(), np.array([1])
    fitted = model.fit(panel)
    if not getattr(model, "pooled", False):
        lone = model.fit(panel.take(rows))
    elif isinstance(fitted, Stacks):
        lone = fitted.part(rows).update(panel.take(rows))
    else:
        return
    alone, among = (fit.forecast(STEPS, CHECKED_LEVELS) for fit in (lone, fitted))
    _require(model, "a series alone gets the forecast it gets among others", _close(alone.values[0], among.values[1]))


def check_units_of_others(model: Model) -> None:
    """A series in other units changes the forecast of no other: a fleet measures cores beside bytes."""
    panel = ordinary()
    values = panel.values * np.array([1.0, 1.0, 1e6])[:, None]
    mixed, same = _numbers(model.fit(replace(panel, values=values))), _numbers(model.fit(panel))
    _require(model, "other units of one series leave the others alone", _close(mixed[:2], same[:2]))


def check_order_of_series(model: Model) -> None:
    """Series in another order, and under other names, get the same forecasts."""
    panel = ordinary()
    turned = replace(panel, values=panel.values[::-1].copy(), keys=("x", "y", "z"))
    same = _close(_numbers(model.fit(turned))[::-1], _numbers(model.fit(panel)))
    _require(model, "order and names of the series do not matter", same)


def check_gap(model: Model) -> None:
    """Check that a gap changes forecasts after it, and none before it."""
    panel = ordinary()
    first, last = panel.length - 3 * DAY_BINS, panel.length - 2 * DAY_BINS
    values = panel.values.copy()
    values[:, first:last] = np.nan
    gapped = replace(panel, values=values)
    before = panel.start + first * panel.step
    same = np.array_equal(_numbers(model.fit(gapped.until(before))), _numbers(model.fit(panel.until(before))))
    _require(model, "a gap to come gives the same forecast", same)
    check_forecast(model, "a gap of a day", gapped, model.fit(gapped).forecast(STEPS, CHECKED_LEVELS))


def ordinary(series: int = 3, days: int = 16) -> Panel:
    """A day wave with noise, growing from series to series."""
    rng = np.random.default_rng(7)
    bins = np.arange(days * DAY_BINS)
    wave = 2 + np.sin(2 * np.pi * bins / DAY_BINS)
    values = (wave + 0.2 * rng.standard_normal((series, len(bins)))) * (1 + np.arange(series)[:, None])
    return Panel(np.maximum(values, 0), MONDAY, STEP, tuple(f"ordinary/{i}" for i in range(series)))


def bad_panels() -> dict[str, Panel]:
    """Return difficult histories, by name."""
    base = ordinary(1).values[0]
    bins = np.arange(len(base))
    day = bins // DAY_BINS
    series: dict[str, Floats] = {
        "all gaps": np.full(len(base), np.nan),
        "constant": np.full(len(base), 5.0),
        "gap of days": np.where(np.isin(day, (4, 5, 6, 7)), np.nan, base),
        "huge integers": 2.0**53 - bins % 3,
        "newest bins missing": np.where(bins > len(base) - 4, np.nan, base),
        "only the newest bin": np.where(bins == len(base) - 1, base, np.nan),
        "silent for three days": np.where(bins > len(base) - 3 * DAY_BINS, np.nan, base),
        "spike of 1e12": np.where(bins == 10 * DAY_BINS, 1e12, base),
        "three points": np.where(bins >= len(base) - 3, base, np.nan),
        "tiny": base * 1e-30,
        "zero": np.zeros(len(base)),
    }
    panels = {name: Panel(values[None], MONDAY, STEP, (name,)) for name, values in series.items()}
    together = Panel(np.stack(list(series.values())), MONDAY, STEP, tuple(series))
    short = {f"{n} bins": ordinary(2).last(n * STEP) for n in (1, 2, 5, DAY_BINS, 3 * DAY_BINS)}
    single = Panel(together.values.astype(np.float32), MONDAY, STEP, together.keys)
    empty = {"no series": ordinary().take([]), "no bins": ordinary().last(timedelta(0))}
    return panels | short | empty | {"all bad ones together": together, "all of them as float32": single}


_OWN_ROW = "forecast each row from itself, or say `pooled = True`"
CHECKS: dict[Callable[[Model], None], str] = {
    check_answers_are_quantiles: "return models.fitted.FittedRule from `fit`: it orders, bounds and falls back",
    check_fitting_repeats: "seed random generators from the spec, and copy an array before you change it",
    check_gap: "look at nothing after the panel's end, and fill no gap from later values",
    check_no_future: "look at nothing after the panel's end",
    check_order_of_series: _OWN_ROW,
    check_scale: "divide by a size of the series before the arithmetic and multiply afterwards",
    check_series_alone: _OWN_ROW,
    check_units_of_others: _OWN_ROW,
    check_update: "return a new object from `update`, as FittedRule does, and leave the old one as it is",
    check_whole_weeks: "let a time count by its place in the week alone",
}
"""Each check, with the remedy where it fails."""


def check_forecast(
    model: Model, name: str, panel: Panel, forecast: Forecast, counts: tuple[int, int] = CHECKED_SHAPE
) -> None:
    """Check a forecast of these levels and steps that was made from this panel."""
    shape = (len(forecast.keys), *counts)
    _require(model, f"shape {shape}", forecast.values.shape == shape, name)
    _require(model, "the forecast begins where the panel ends", forecast.origin == panel.end, name)
    _check_values(model, name, panel, forecast)


def _check_peak(model: Model, name: str, panel: Panel, peak: Peak) -> None:
    _require(model, "shape of the peak", peak.values.shape == (len(peak.keys), len(CHECKED_LEVELS)), name)
    _check_values(model, name, panel, peak)


def _check_values(model: Model, name: str, panel: Panel, answer: Forecast | Peak) -> None:
    values = answer.values
    _require(model, "finite numbers", bool(np.isfinite(values).all()), name)
    _require(model, "no negative demand", bool((values >= 0).all()), name)
    _require(model, "quantiles in order", bool((np.diff(values, axis=1) >= 0).all()), name)
    answered = sorted((*answer.keys, *answer.unknown)) == sorted(panel.keys)
    _require(model, "every series is forecast or unknown", answered, name)
    _require(model, "a reason for every unknown series", all(answer.unknown.values()), name)


def _numbers(fitted: Fitted) -> Floats:
    """All numbers of a forecast and a peak, in one row per series."""
    path, peak = fitted.forecast(STEPS, CHECKED_LEVELS).values, fitted.forecast_peak(WINDOW, CHECKED_LEVELS).values
    return np.concatenate([path.reshape(len(path), -1), peak], axis=1)


def _close(first: Floats, second: Floats) -> bool:
    scale = np.maximum(np.abs(second).max(initial=0.0), 1e-300)
    return first.shape == second.shape and bool((np.abs(first - second) <= ROUNDING * scale).all())


def _require(model: Model, promise: str, holds: bool, panel: str = ORDINARY) -> None:  # noqa: FBT001  "require that ..."
    if not holds:
        raise ContractError(f"{model.name} breaks the contract: {promise}, on {panel}")
