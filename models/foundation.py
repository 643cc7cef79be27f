"""The seam for a foundation model: a network that forecasts any series as it is, from weights in a local folder.

What this is: scaling, gaps, levels, bounds, fallback and peaks around a `LocalNetwork`, and the loading of weights
without executing anything. What it is not: a foundation model. No weights are shipped, nothing is downloaded, and no
published model has been measured through it. `PatchNetwork` is a small architecture that shows the seam and lets it be
tested; a published model needs its own architecture behind the same protocol.

    Foundation(read_network(Path("weights")))      # config.json beside .npz or .safetensors
    Foundation(MyTorchNetwork(...))                # anything with `context`, `levels`, `steps` and `continued`

Weights come in two formats: `.npz` without pickled objects, and `.safetensors` (eight bytes with the length of a JSON
header, the header with type, shape and place of each array, then the bytes). Formats that can hold code (.pt, .bin,
.pkl) are refused.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .errors import WeightsError
from .fitted import FittedRule
from .forecast import checked_levels
from .gaps import bins_seen, filled
from .spread import read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from .panel import Floats, Panel


WEIGHT_TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16}
# Half of a float32: its upper 16 bits.
BRAIN_FLOAT = "BF16"
HEADER_LENGTH = 8
# The format's own limit; a larger header is a damaged or hostile file.
LONGEST_HEADER = 100_000_000
SUFFIXES = (".npz", ".safetensors")


def read_weights(folder: Path) -> dict[str, Floats]:
    """All arrays of the `.npz` and `.safetensors` files of a folder, as float32 or wider.

    Raises:
        WeightsError: there is no such file, one is damaged, holds objects instead of numbers, or a name comes twice.
    """
    files = sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES)
    if not files:
        raise WeightsError(
            f"{folder} holds no {' or '.join(SUFFIXES)} file; convert other formats first, they can hold code"
        )
    weights: dict[str, Floats] = {}
    for file in files:
        found = _npz(file) if file.suffix == ".npz" else _safetensors(file)
        twice = weights.keys() & found.keys()
        if twice:
            raise WeightsError(f"{file}: the array {min(twice)!r} is in another file of {folder} as well")
        weights |= found
    return weights


def _npz(file: Path) -> dict[str, Floats]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: _numbers(file, name, arrays[name]) for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise WeightsError(f"{file} is no archive of plain arrays: {error}") from error


def _safetensors(file: Path) -> dict[str, Floats]:
    try:
        content = file.read_bytes()
        length = int.from_bytes(content[:HEADER_LENGTH], "little")
        if not 0 < length <= min(LONGEST_HEADER, len(content) - HEADER_LENGTH):
            raise WeightsError(f"{file} begins with a header of {length} bytes; the file is damaged")
        header = json.loads(content[HEADER_LENGTH : HEADER_LENGTH + length])
        body = memoryview(content)[HEADER_LENGTH + length :]
        return {name: _array(file, name, entry, body) for name, entry in header.items() if name != "__metadata__"}
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, WeightsError):
            raise
        raise WeightsError(f"{file} is no safetensors file: {type(error).__name__}: {error}") from error


def _array(file: Path, name: str, entry: Mapping[str, Any], body: memoryview) -> Floats:
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= len(body):
        raise WeightsError(
            f"{file}: the array {name!r} lies at {begin}..{end} of {len(body)} bytes; the file is damaged"
        )
    if entry["dtype"] == BRAIN_FLOAT:
        upper = np.frombuffer(body[begin:end], dtype="<u2").astype("<u4") << 16
        return upper.view("<f4").reshape(entry["shape"])
    if entry["dtype"] not in WEIGHT_TYPES:
        raise WeightsError(
            f"{file}: the array {name!r} is {entry['dtype']}; only {', '.join([*WEIGHT_TYPES, BRAIN_FLOAT])} are read"
        )
    array = np.frombuffer(body[begin:end], dtype=np.dtype(WEIGHT_TYPES[entry["dtype"]]).newbyteorder("<"))
    return _numbers(file, name, array.reshape(entry["shape"]))


def _numbers(file: Path, name: str, array: npt.NDArray[Any]) -> Floats:
    if array.dtype.kind != "f":
        raise WeightsError(f"{file}: the array {name!r} is {array.dtype}; weights are floating point numbers")
    if not np.isfinite(array).all():
        raise WeightsError(f"{file}: the array {name!r} holds numbers that are not finite")
    return array.astype(np.promote_types(array.dtype, np.float32))


CONFIG = "config.json"
# Series that go through the network together.
FOUNDATION_ROWS = 1024
# Fewer bins than this have no shape that a network could recognise.
LEAST_BINS = 32


class LocalNetwork(Protocol):
    """Continues standardised series. Stateless: the same context gives the same answer."""

    @property
    def context(self) -> int:
        """Latest bins it reads."""
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

    network: LocalNetwork
    name: str = "foundation"

    def fit(self, panel: Panel) -> FittedRule[None]:
        """Nothing to learn: the weights are what is known."""
        return FittedRule(self, panel, None)

    def paths(self, history: Panel, learned: None, steps: int, levels: Sequence[float]) -> Floats:  # noqa: ARG002  no learning
        """[series, quantile, step]."""
        if steps > self.network.steps or not history.length:
            return np.full((len(history), len(levels), steps), np.nan)
        parts = [
            self._block(history.values[i : i + FOUNDATION_ROWS], steps, levels)
            for i in range(0, len(history), FOUNDATION_ROWS)
        ]
        out = np.concatenate([np.empty((0, len(levels), steps)), *parts])
        out[bins_seen(history.values) < LEAST_BINS] = np.nan
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


ARCHITECTURES: Mapping[str, Callable[[Mapping[str, Floats], Mapping[str, Any]], LocalNetwork]] = {
    "patch": PatchNetwork.of,
}


def read_network(folder: Path) -> LocalNetwork:
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
