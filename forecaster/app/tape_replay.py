"""A tape of the service played again: the same cycle on the same answers, and whether it decides the same.

For finding out why a decision was made as it was, long after; and the proof that nothing but what is on the tape went
into it.
"""

from __future__ import annotations

import tempfile
from datetime import datetime  # noqa: TC003  msgspec resolves the annotations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from forecaster.app.compose import Nowhere, build_cycle, nothing_observed
from forecaster.config.settings import Settings, parse
from forecaster.domain.layers import merged
from forecaster.forecasting.forecaster import FITS
from forecaster.sources.tape import Tape, TapedLedger, TapedSource, encoded, open_tape, taped
from forecaster.store.history import HistoryStore
from forecaster.store.snapshot import Snapshots

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import ExitStack

    from forecaster.cycle.observed import Observed
    from forecaster.cycle.run import Outcome
    from forecaster.ports import Ledger, Source

PORTABLE = ("history", "signals", "cycle", "forecast", "floor", "scale", "resize", "policy", "overrides")
"""The sections of the settings that decisions depend on, or other sections; the rest holds addresses and secrets."""


class Beginning(msgspec.Struct, frozen=True):
    """What the service knew when the tape began."""

    settings: dict[str, object]
    at: datetime
    history: bytes
    fits: int = FITS
    observed: bytes = b""
    """What was known of workloads beside their demand; nothing on older tapes."""


class Retold(NamedTuple):
    """One cycle played again, and what was decided then; None where the tape does not say."""

    at: datetime
    outcome: Outcome
    then: bytes | None

    @property
    def same(self) -> bool:
        """Whether every number is the same to the last digit."""
        return self.then is None or encoded(self.outcome.recommendations) == self.then

    def differences(self) -> list[str]:
        """Workloads about which something else is decided now."""
        if self.then is None or self.same:
            return []
        before = msgspec.json.decode(self.then)
        now = msgspec.json.decode(encoded(self.outcome.recommendations))
        return [_name(one) for one, other in zip(now, before, strict=False) if one != other] or ["other workloads"]


def beginning(
    settings: Settings, history: HistoryStore, now: datetime, *, fits: int = FITS, observed: Observed | None = None
) -> bytes:
    """What a tape begins with."""
    told = {name: value for name, value in settings.model_dump(mode="json").items() if name in PORTABLE}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history"
        Snapshots(path, history).save()
        kept = path.read_bytes()
    return msgspec.msgpack.encode(Beginning(told, now, kept, fits, observed.kept() if observed else b""))


def retell(path: Path, changed: Mapping[str, object] | None = None) -> Iterator[Retold]:
    """Every cycle of a tape, played again with its own settings, or with some of them changed.

    With changed settings it is what the same answers would have led to. Pods are those that there were: what another
    count would have done to them is not on the tape.

    Raises:
        SourceRefused: it is no tape, is damaged, or another version asks other questions.
    """
    tape = open_tape(path)
    begun = msgspec.msgpack.decode(tape.beginning, type=Beginning)
    settings = parse(merged(begun.settings, changed or {}), f"tape {path}")
    history, observed = _restored(settings, begun), nothing_observed(settings)
    if begun.observed:
        observed.restore(begun.observed)
    cycle = build_cycle(
        settings, tape, history, publisher=Nowhere(), ledger=Nowhere(), fits=begun.fits, observed=observed
    )
    while (now := tape.cycle()) is not None:
        outcome = cycle.run(now)
        yield Retold(now, outcome._replace(recommendations=list(outcome.recommendations)), tape.decided())


def _restored(settings: Settings, begun: Beginning) -> HistoryStore:
    history = HistoryStore(settings.signal_table.measured, settings.history, now=begun.at)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history"
        path.write_bytes(begun.history)
        Snapshots(path, history).load()
    return history


def _name(one: dict[str, object]) -> str:
    return str(one.get("id"))


def on_tape(
    tape: Path, source: Source, ledger: Ledger, told: bytes, parts: ExitStack
) -> tuple[TapedSource, TapedLedger]:
    """What is read and decided goes on tape, too; it begins with what is `told`.

    Raises:
        StoreError: the tape cannot be begun.
    """
    begun = Tape(tape, told, source)
    parts.callback(begun.close)
    return taped(source, begun), TapedLedger(ledger, begun)
