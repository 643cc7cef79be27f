"""Learned policies as advisors of the replay and of the service, and their weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from forecaster.learning.actions import counts
from forecaster.learning.fitted import Forest
from forecaster.learning.situation import features_of
from forecaster.learning.tabular import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.learning.actions import Choices
    from forecaster.replay.advice import Situation

    Floats = NDArray[np.float64]

Kind = Literal["tabular", "fitted"]
KINDS: tuple[Kind, ...] = ("tabular", "fitted")
WEIGHTS = Path(__file__).with_name("weights")


class Chooser(Protocol):
    """A table or a forest."""

    def choose(self, features: Floats) -> Choices:
        """[lane] the best action."""


@dataclass(frozen=True, slots=True)
class LearnedPolicy:
    """Says what its table or forest holds for best; nothing where demand is not measured."""

    kind: Kind
    chooser: Chooser

    def counts(self, situation: Situation) -> Floats:
        """[lane] pods to have; NaN for no opinion."""
        wanted = counts(np.maximum(situation.asked, 1.0), self.chooser.choose(features_of(situation)))
        return np.where(np.isnan(situation.measured), np.nan, wanted)


def load(kind: Kind, folder: Path = WEIGHTS) -> LearnedPolicy:
    """A policy with the weights that ship, or those of a folder; arrays only, nothing is executed."""
    with np.load(folder / f"{kind}.npz", allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    if kind == "tabular":
        return LearnedPolicy(kind, Table(found["worth"].astype(float), found["tried"].astype(float)))
    trees = {name: found[name].astype(np.int32) for name in ("left", "right", "feature")}
    return LearnedPolicy(kind, Forest(**trees, threshold=found["threshold"], value=found["value"]))


def shipped() -> dict[str, LearnedPolicy]:
    """Every kind with the weights that ship."""
    return {kind: load(kind) for kind in KINDS}


def save(kind: Kind, chooser: Table | Forest, folder: Path = WEIGHTS) -> None:
    """Keep the weights, small: what was never tried is zero."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: one.astype(np.float32) if kind == "tabular" else one for name, one in chooser.arrays().items()}
    np.savez_compressed(folder / f"{kind}.npz", allow_pickle=False, **arrays)
