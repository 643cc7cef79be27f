"""Groups of rows drawn at random: every number of every policy, loads with holes, forecasts, events, gates."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.horizontal.events import NO_EVENTS, EventColumns
from forecaster.horizontal.inputs import Inputs, Kind, PolicyColumns, Rules, TargetColumns
from forecaster.hpa.numbers import MAX_INT32

if TYPE_CHECKING:
    from numpy.random import Generator

    from forecaster.horizontal.inputs import Sizing

LEVELS = (0.1, 0.5, 0.9, 0.99)
KINDS = (
    Kind("cpu", of_request=True),
    Kind("memory", of_request=True),
    Kind("cpu", of_request=False),
    Kind("requests", of_request=False, of_all_pods=True),
)


def rules_of(random: Generator) -> Rules:
    """The rules of a group: up to three targets."""
    sizing: Sizing = random.choice(["quantile", "newsvendor"])
    kinds = tuple(KINDS[index] for index in random.choice(len(KINDS), random.integers(0, 4), replace=False))
    return Rules(str(sizing), bool(random.integers(2)), kinds, LEVELS)


def policy_of(random: Generator, rows: int, rules: Rules) -> PolicyColumns:
    """Policies [row]."""

    def chosen_from(*values: float) -> Any:
        return random.choice(np.array(values), rows)

    least = random.integers(0 if rules.wakes else 1, 4, rows)
    highest = least + random.integers(1, 60, rows)
    return PolicyColumns.usual(
        rows,
        tolerance=chosen_from(0.0, 0.1, 0.35),
        surge=chosen_from(np.nan, 0.05, 0.5, 2.0),
        scale_down_stabilization=chosen_from(0.0, 60.0, 300.0) if random.integers(2) else np.full(rows, 300.0),
        outage_hold=chosen_from(0.0, 120.0, 1800.0),
        quantile=chosen_from(0.5, 0.9, 0.95) if random.integers(2) else np.full(rows, 0.9),
        min_replicas=least,
        max_replicas=highest,
        own_max_replicas=np.where(random.integers(2, size=rows), highest, MAX_INT32),
        lead_time=chosen_from(60.0, 180.0),
        max_sample_age=np.full(rows, 300.0),
    )


def targets_of(random: Generator, rows: int, rules: Rules) -> TargetColumns:
    """Targets [target, row]."""
    shape = (len(rules.kinds), rows)
    of_request = np.array([[kind.of_request] for kind in rules.kinds], np.bool_).reshape(-1, 1)
    goal = np.where(of_request, random.integers(1, 200, shape), random.integers(1, 5000, shape))
    request = np.where(of_request, random.integers(1, 4000, shape), 1)
    return TargetColumns(goal, request, random.uniform(0.05, 4.0, shape))


def inputs_of(random: Generator, rules: Rules, policy: PolicyColumns, targets: TargetColumns) -> Inputs:
    """Inputs from which rows are decided in one cycle."""
    rows = len(policy.min_replicas)
    shape = (len(rules.kinds), rows)
    current = np.where(random.random(rows) < 0.1, 0, random.integers(1, 40, rows))
    measured = _with_holes(random, random.uniform(0.0, 30.0, shape))
    quantiles = [
        np.where(random.random(rows) < 0.2, np.nan, np.sort(random.uniform(0.0, 60.0, (len(LEVELS), rows)), axis=0))
        for _ in rules.kinds
    ]
    return Inputs(
        rules=rules,
        policy=policy,
        targets=targets,
        current=current,
        ready=np.maximum(current + random.integers(-3, 2, rows), 0),
        measured=measured,
        unseen=random.integers(0, 6, shape).astype(np.int8),
        age=random.uniform(0.0, 900.0, shape),
        peak=_with_holes(random, random.uniform(0.0, 60.0, shape)),
        low=_with_holes(random, random.uniform(0.0, 40.0, shape)),
        quantiles=quantiles,
        acting=random.random(rows) < 0.8,
        events=EventColumns(
            np.where(random.random(rows) < 0.1, 12, 0),
            np.where(random.random(rows) < 0.1, 9, MAX_INT32),
            np.where(random.random(rows) < 0.1, 15, MAX_INT32),
            random.random(rows) < 0.05,
            (NO_EVENTS,),
            np.zeros(rows, np.int64),
        ),
        lost=np.where(random.random(rows) < 0.1, random.random(rows), 0.0),
        unreadable=np.zeros(rows, np.bool_),
    )


def _with_holes(random: Generator, amounts: Any) -> Any:
    return np.where(random.random(amounts.shape) < 0.2, np.nan, amounts)


def take(inputs: Inputs, rows: Any) -> Inputs:
    """The inputs of these rows."""
    return replace(
        inputs,
        policy=inputs.policy.take(rows),
        targets=inputs.targets.take(rows),
        events=inputs.events.take(rows),
        quantiles=[quantile[:, rows] for quantile in inputs.quantiles],
        **{name: getattr(inputs, name)[..., rows] for name in COLUMNS},
    )


COLUMNS = (
    "current",
    "ready",
    "measured",
    "unseen",
    "age",
    "peak",
    "low",
    "acting",
    "lost",
    "unreadable",
)
POISONS = (np.nan, np.inf, -np.inf, -1.0, 1e300, -1e300, 1e16, 0.0, 5e-324)
WHOLE = (-1, 0, 2**31, 2**53 + 1, 2**62, -(2**63), 2**63 - 1)


def poisoned(random: Generator, inputs: Inputs, rows: Any) -> Inputs:
    """The inputs with nonsense in some column of these rows."""

    def spoilt(column: Any) -> Any:
        if column.dtype.kind not in "fi" or column.dtype == np.int8 or random.integers(3):
            return column
        values = np.array(POISONS if column.dtype.kind == "f" else WHOLE, column.dtype)
        bad = column.copy()
        bad[..., rows] = random.choice(values, bad[..., rows].shape)
        return bad

    def all_of(columns: Any) -> Any:
        return type(columns)(**{column.name: all_in(getattr(columns, column.name)) for column in fields(columns)})

    def all_in(column: Any) -> Any:
        return {name: spoilt(each) for name, each in column.items()} if isinstance(column, dict) else spoilt(column)

    return replace(
        inputs,
        policy=all_of(inputs.policy),
        targets=all_of(inputs.targets),
        events=EventColumns(*map(spoilt, inputs.events[:4]), inputs.events.each, inputs.events.place),
        quantiles=[spoilt(quantile) for quantile in inputs.quantiles],
        **{name: spoilt(getattr(inputs, name)) for name in COLUMNS},
    )
