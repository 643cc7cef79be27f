"""What the options of `forecaster recommend` mean: prices, an earlier run, filters."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import typer

from forecaster.app.serve import database_address
from forecaster.domain.workload import Resources
from forecaster.errors import StoreError, UnknownName
from forecaster.report.advice_view import read_previous
from forecaster.store.ledger import SqlLedger
from forecaster.vertical.admission.advice import ResourcePrices
from forecaster.vertical.recommenders.krr import Severity
from forecaster.vertical.sizing.joint import ResourceCosts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from forecaster.config.settings import Settings
    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.settings import PriceSettings
    from forecaster.vertical.admission.advice import Advice

_FROM_BAD = (Severity.CRITICAL, Severity.WARNING, Severity.OK)


def prices_of(core_hour: float | None, gib_hour: float | None, stated: PriceSettings) -> ResourcePrices | None:
    """Return the prices of CPU and memory from both options, else from the settings; one option alone is refused."""
    if core_hour is None and gib_hour is None:
        core_hour, gib_hour = stated.core_hour, stated.gib_hour
    if (core_hour is None) != (gib_hour is None):
        raise typer.BadParameter("give both --price-core-hour and --price-gib-hour", param_hint="--price-core-hour")
    return None if core_hour is None or gib_hour is None else ResourcePrices(core_hour, gib_hour)


def writable_folder(folder: Path) -> None:
    """Make the folder that is going to be written to, before the work rather than after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"{folder}: {error.strerror}", param_hint="--to") from error
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"{folder} may not be written to", param_hint="--to")


def costs_of(prices: ResourcePrices | None, pod_start: float) -> ResourceCosts:
    """What joint choices are weighed by; without prices a GiB costs 0.13 of a core, about what clouds ask."""
    if prices is None:
        return ResourceCosts(pod_start=pod_start)
    return ResourceCosts(core_hour=prices.core_hour, gib_hour=prices.gib_hour, pod_start=pod_start)


def previous_of(file: Path | None, settings: Settings | None) -> dict[WorkloadId, Resources]:
    """What was recommended before: from a file, or from the ledger of the service."""
    if file is not None:
        try:
            return read_previous(json.loads(file.read_bytes()))
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"{file}: {error}", param_hint="--previous") from error
    return {} if settings is None else _from_ledger(settings)


def _from_ledger(settings: Settings) -> dict[WorkloadId, Resources]:
    try:
        ledger = SqlLedger(database_address(settings.state), keep=settings.state.keep)
        try:
            found = ledger.newest()
        finally:
            ledger.close()
    except StoreError as error:
        raise typer.BadParameter(str(error), param_hint="--since-ledger") from error
    return {
        id_: Resources(one.cpu_request, one.cpu_limit, one.memory_request, one.memory_limit)
        for id_, one in found.items()
        if one.resources_verdict == "resize"
    }


def filtered(
    advices: Sequence[Advice], chosen: set[WorkloadId], kind: str | None, least: str | None, *, refused: bool
) -> list[Advice]:
    """Return the advices that were asked for, the worst first.

    Raises:
        UnknownName: no workload is of this kind.
    """
    wanted, kinds = _at_least(least), {one.id.kind for one in advices}
    if kind is not None and kind not in kinds:
        raise UnknownName("kind", kind, kinds)
    ours = [
        one
        for one in advices
        if one.id in chosen
        and (kind is None or one.id.kind == kind)
        and (wanted is None or one.severity in wanted)
        and (one.refused or not refused)
    ]
    order = [*_FROM_BAD, Severity.GOOD, Severity.UNKNOWN]
    return sorted(ours, key=lambda one: (order.index(one.severity), one.id))


def _at_least(text: str | None) -> tuple[Severity, ...] | None:
    if text is None:
        return None
    names = [str(one) for one in _FROM_BAD]
    if text.upper() not in names:
        raise typer.BadParameter(f"{text!r}: use one of {', '.join(names)}", param_hint="--severity")
    return _FROM_BAD[: names.index(text.upper()) + 1]
