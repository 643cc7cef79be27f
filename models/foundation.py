"""The seam for a foundation model: a network that forecasts any series as it is, from weights in a local folder.

What this is: scaling, gaps, levels, bounds, fallback and peaks around a `Network`, and the loading of weights without
executing anything. What it is not: a foundation model. No weights are shipped, nothing is downloaded, and no published
model has been measured through it. `PatchNetwork` is a small architecture that shows the seam and lets it be tested; a
published model needs its own architecture behind the same protocol, in numpy or in a library that you install.

    Foundation(read_network(Path("weights")))      # config.json beside .npz or .safetensors
    Foundation(MyTorchNetwork(...))                # anything with `context`, `levels`, `steps` and `continued`
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .errors import WeightsError
from .fitted import Remembered
from .forecast import checked_levels
from .gaps import bins_seen, filled
from .spread import read_table
from .weights import read_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from .panel import Floats, Panel

CONFIG = "config.json"
# Series that go through the network together.
ROWS = 1024
# Fewer bins than this have no shape that a network could recognise.
LEAST = 32


class Network(Protocol):
    """Continues standardised series. Stateless: the same context gives the same answer."""

    @property
    def context(self) -> int:
        """Newest bins it reads."""
        ...

    @property
    def levels(self) -> Sequence[float]:
        """Ascending quantile levels of its answers."""
        ...

    @property
    def steps(self) -> int:
        """Steps ahead of its answers."""
        ...

    def continued(self, context: Floats) -> Floats:
        """[series, level, step] for float32 contexts [series, context] of mean 0 and spread 1 without gaps."""
        ...


@dataclass(frozen=True)
class Foundation:
    """A network behind the contract of all models; learns nothing about the series it is asked for.

    Each series is standardised over its context. Series with fewer than 32 bins, and questions beyond the steps of the
    network, are held at the last value, with a reason. Peaks come from replaying its own past, 32 passes each.
    """

    network: Network
    name: str = "foundation"

    def fit(self, panel: Panel) -> Remembered[None]:
        """Nothing to learn: the weights are what is known."""
        return Remembered(self, panel, None)

    def paths(self, history: Panel, learned: None, steps: int, levels: Sequence[float]) -> Floats:  # noqa: ARG002  no learning
        """[series, quantile, step]."""
        if steps > self.network.steps or not history.length:
            return np.full((len(history), len(levels), steps), np.nan)
        parts = [self._block(history.values[i : i + ROWS], steps, levels) for i in range(0, len(history), ROWS)]
        out = np.concatenate([np.empty((0, len(levels), steps)), *parts])
        out[bins_seen(history.values) < LEAST] = np.nan
        return out

    def _block(self, values: Floats, steps: int, levels: Sequence[float]) -> Floats:
        known = filled(values[:, -self.network.context :]).astype(np.float64)
        centre, scale = known.mean(axis=1), known.std(axis=1)
        scale = np.where(scale > 1e-9 * np.abs(centre), scale, np.maximum(np.abs(centre), 1e-300))
        context = (known - centre[:, None]) / scale[:, None]
        missing = self.network.context - context.shape[1]
        context = np.pad(context, ((0, 0), (missing, 0)), mode="edge").astype(np.float32)
        answer = np.sort(self.network.continued(context).astype(np.float64), axis=1)
        table = read_table(answer[:, :, :steps], levels, tuple(self.network.levels))
        return np.asarray(table * scale[:, None, None] + centre[:, None, None])


class PatchNetwork(NamedTuple):
    """Patches of the context are embedded, mixed by one hidden layer, and read out as quantiles of all steps.

        hidden = tanh(flatten(patches · embed + place) · mix + mix_bias);  answer = last + hidden · out + out_bias

    Attributes:
        embed: [patch, width].  place: [patches, width].  mix: [patches·width, hidden].  mix_bias: [hidden].
        out: [hidden, level·step].  out_bias: [level·step].
        levels: quantile levels of the answers.
    """

    embed: Floats
    place: Floats
    mix: Floats
    mix_bias: Floats
    out: Floats
    out_bias: Floats
    levels: tuple[float, ...]

    @classmethod
    def of(cls, weights: Mapping[str, Floats], config: Mapping[str, Any]) -> PatchNetwork:
        """From arrays named as the attributes, and `levels` of the configuration.

        Raises:
            WeightsError: an array is missing, or their shapes do not fit together.
        """
        missing = [name for name in cls._fields[:-1] if name not in weights]
        if missing:
            raise WeightsError(
                f"the weights of a patch network lack {missing[0]!r}; there are {', '.join(sorted(weights))}"
            )
        arrays = {name: weights[name] for name in cls._fields[:-1]}
        network = cls(**arrays, levels=checked_levels(config.get("levels", ())))
        network._check()
        return network

    @property
    def context(self) -> int:
        """See Network."""
        return int(self.embed.shape[0] * self.place.shape[0])

    @property
    def steps(self) -> int:
        """See Network."""
        return int(self.out_bias.size) // len(self.levels)

    def continued(self, context: Floats) -> Floats:
        """See Network."""
        patches = context.reshape(len(context), len(self.place), len(self.embed))
        tokens = patches @ self.embed + self.place
        hidden = np.tanh(tokens.reshape(len(context), -1) @ self.mix + self.mix_bias)
        answer = (hidden @ self.out + self.out_bias).reshape(len(context), len(self.levels), self.steps)
        return np.asarray(answer + context[:, -1, None, None])

    def _check(self) -> None:
        places, width = self.place.shape
        expected = {
            "embed": (self.embed.shape[0], width),
            "mix": (places * width, self.mix_bias.size),
            "out": (self.mix_bias.size, self.steps * len(self.levels)),
            "out_bias": (self.steps * len(self.levels),),
        }
        for name, shape in expected.items():
            found = getattr(self, name).shape
            if found != shape:
                raise WeightsError(
                    f"the array {name!r} of a patch network has shape {found}; the others ask for {shape}"
                )


ARCHITECTURES: Mapping[str, Callable[[Mapping[str, Floats], Mapping[str, Any]], Network]] = {
    "patch": PatchNetwork.of,
}


def read_network(folder: Path) -> Network:
    """The network of a folder: `architecture` of its config.json, made of the arrays beside it.

    Raises:
        WeightsError: the folder lacks the configuration or weights, or they do not fit together.
    """
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        architecture = config["architecture"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise WeightsError(f"{folder / CONFIG} must be JSON that names an architecture: {error}") from error
    if architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise WeightsError(f"{folder / CONFIG}: there is no architecture {architecture!r}; known are {known}")
    return ARCHITECTURES[architecture](read_weights(folder), config)
