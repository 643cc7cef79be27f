"""The seam for a foundation model, with a tiny network of random weights: it keeps the contract whatever it says."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from models import Model
from models.checks import CHECKS, ordinary
from models.errors import WeightsError
from models.foundation import Foundation, PatchNetwork, read_network, read_weights
from tests.support.panels import daily_waves

PATCH, PLACES, WIDTH, HIDDEN, STEPS = 8, 6, 4, 16, 24
LEVELS = (0.1, 0.5, 0.9)


def random_weights(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {
        "embed": (PATCH, WIDTH),
        "place": (PLACES, WIDTH),
        "mix": (PLACES * WIDTH, HIDDEN),
        "mix_bias": (HIDDEN,),
        "out": (HIDDEN, len(LEVELS) * STEPS),
        "out_bias": (len(LEVELS) * STEPS,),
    }
    return {name: (rng.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.savez(tmp_path / "weights.npz", **random_weights())
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "patch", "levels": LEVELS}), encoding="utf-8")
    return tmp_path


def write_safetensors(file: Path, arrays: dict[str, tuple[str, np.ndarray]]) -> None:
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, (kind, array) in arrays.items():
        data = array.tobytes()
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + body)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_random_weights_keep_the_contract(check: Callable[[Model], None], folder: Path) -> None:
    check(Foundation(read_network(folder)))


def test_it_speaks_for_itself_within_its_steps_and_is_held_beyond(folder: Path) -> None:
    fitted = Foundation(read_network(folder)).fit(daily_waves(2))
    assert set(fitted.forecast(STEPS, LEVELS).provenance.models) == {"foundation"}
    assert set(fitted.forecast(STEPS + 1, LEVELS).provenance.models) == {"last-value"}


def test_both_formats_give_the_same_forecasts(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text((folder / "config.json").read_text())
    write_safetensors(other / "weights.safetensors", {name: ("F32", array) for name, array in random_weights().items()})
    first, second = (Foundation(read_network(one)).fit(ordinary()).forecast(6, LEVELS) for one in (folder, other))
    np.testing.assert_array_equal(first.values, second.values)


def test_halves_of_a_float_are_read(tmp_path: Path) -> None:
    exact = np.array([1.5, -2.0, 0.15625], dtype=np.float32)
    brain = (exact.view("<u4") >> 16).astype("<u2")
    write_safetensors(tmp_path / "a.safetensors", {"b": ("BF16", brain), "h": ("F16", exact.astype(np.float16))})
    found = read_weights(tmp_path)
    assert found["b"].tolist() == found["h"].tolist() == exact.tolist()


class Fires:
    """Would run when unpickled."""

    def __reduce__(self) -> tuple:
        return pytest.fail, ("code in a weights file was executed",)


def test_objects_in_an_archive_are_refused_and_not_run(tmp_path: Path) -> None:
    np.savez(tmp_path / "weights.npz", evil=np.array([Fires()], dtype=object))
    with pytest.raises(WeightsError, match="is no archive of plain arrays"):
        read_weights(tmp_path)


def test_formats_that_hold_code_are_not_even_opened(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(WeightsError, match="they can hold code"):
        read_weights(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with a header of 0 bytes"),
        ((10**9).to_bytes(8, "little") + b"{}", "begins with a header of 1000000000 bytes"),
        ((2).to_bytes(8, "little") + b"[]", "is no safetensors file"),
        ((5).to_bytes(8, "little") + b"{oops", "is no safetensors file"),
    ],
    ids=["empty", "endless header", "no mapping", "no JSON"],
)
def test_damaged_files_are_refused_by_name(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "weights.safetensors").write_bytes(content)
    with pytest.raises(WeightsError, match=message):
        read_weights(tmp_path)


def test_an_array_beyond_the_end_of_its_file_is_refused(tmp_path: Path) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    (tmp_path / "weights.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"1234")
    with pytest.raises(WeightsError, match=r"'a' lies at 0\.\.16 of 4 bytes"):
        read_weights(tmp_path)


def test_weights_that_do_not_fit_together_are_named() -> None:
    weights = random_weights() | {"mix": np.zeros((3, HIDDEN), np.float32)}
    with pytest.raises(WeightsError, match="the array 'mix' of a patch network has shape"):
        PatchNetwork.of(weights, {"levels": LEVELS})
    with pytest.raises(WeightsError, match="lack 'out'"):
        PatchNetwork.of({name: one for name, one in random_weights().items() if name != "out"}, {"levels": LEVELS})


def test_an_unknown_architecture_is_refused_with_those_there_are(folder: Path) -> None:
    (folder / "config.json").write_text('{"architecture": "giant"}', encoding="utf-8")
    with pytest.raises(WeightsError, match="no architecture 'giant'; known are patch"):
        read_network(folder)
