"""State that decides is signed by a key of the release: what others wrote, or moved elsewhere, is refused by name."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.errors import StoreError
from forecaster.store.signing import StateKeys, keep_keys, keys_of_directory, read_key_file
from forecaster.store.state import ObservedFile

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = b"o" * 64, b"n" * 64
STATE = b'{"version":3,"gates":{}}'


def keys(*texts: bytes) -> StateKeys:
    return StateKeys.of_text(b"\n".join(texts), "Secret forecaster/forecaster-state")


def test_what_was_signed_is_read_back_and_older_programs_read_it_too() -> None:
    signed = keys(OLD).signed(STATE, "shard 3 of 8", b"origins")
    assert keys(OLD).verified(signed, "shard 3 of 8", b"origins") == STATE
    assert msgspec.json.decode(signed) | {"signature": ""} == msgspec.json.decode(STATE) | {"signature": ""}


@pytest.mark.parametrize(
    ("content", "name", "beside"),
    [
        (keys(OLD).signed(STATE, "shard 3", b"").replace(b'"version":3', b'"version":4'), "shard 3", b""),
        (keys(OLD).signed(STATE, "shard 2", b""), "shard 3", b""),
        (keys(OLD).signed(STATE, "shard 3", b"others"), "shard 3", b""),
        (keys(NEW).signed(STATE, "shard 3", b""), "shard 3", b""),
        (STATE, "shard 3", b""),
        (b'{"signature":"' + b"0" * 64, "shard 3", b""),
        (b'{"signature":"\xff', "shard 3", b""),
        (b"", "shard 3", b""),
    ],
    ids=["edited", "moved", "beside", "another key", "unsigned", "cut off", "no text", "nothing"],
)
def test_anything_else_is_refused_by_its_name(content: bytes, name: str, beside: bytes) -> None:
    with pytest.raises(StoreError, match=r"state of shard 3 was not signed .*\(Secret forecaster/forecaster-state\)"):
        keys(OLD).verified(content, name, beside)


def test_a_key_that_is_replaced_is_accepted_until_its_line_goes() -> None:
    signed = keys(OLD).signed(STATE, "shard 3")
    rotated = keys(NEW, OLD)
    assert rotated.verified(signed, "shard 3") == STATE
    renewed = rotated.signed(STATE, "shard 3")
    assert keys(NEW).verified(renewed, "shard 3") == STATE
    with pytest.raises(StoreError, match="second line"):
        keys(NEW).verified(signed, "shard 3")


@pytest.mark.parametrize("text", [b"", b"\n", b"short", OLD + b"\nshort"])
def test_what_is_no_key_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "key").write_bytes(text)
    with pytest.raises(StoreError, match="key: one key a line of 32 characters or more"):
        read_key_file(tmp_path / "key")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"state\.key_file .*/key: No such file"):
        read_key_file(tmp_path / "key")


def test_a_directory_makes_a_key_of_its_own_which_this_user_alone_reads(tmp_path: Path) -> None:
    made = keys_of_directory(tmp_path)
    assert keys_of_directory(tmp_path).keys == made.keys
    assert stat.S_IMODE((tmp_path / "state.key").stat().st_mode) == 0o600
    assert not made.of_release
    assert made.keys[0].decode() not in repr(made)


def test_a_directory_remembers_the_keys_of_the_release(tmp_path: Path) -> None:
    keep_keys(tmp_path, (NEW, OLD))
    assert keys_of_directory(tmp_path).keys == (NEW, OLD)


class Text:
    """A state of one text."""

    def __init__(self, text: bytes = STATE) -> None:
        self.text = text

    def encoded(self) -> bytes:
        return self.text

    def restore(self, content: bytes) -> None:
        self.text = content


def test_a_file_of_another_release_is_refused_and_one_without_a_signature_is_of_before(tmp_path: Path) -> None:
    ObservedFile(tmp_path / "observed.json", Text(), keys(OLD)).save()
    restored = Text(b"{}")
    assert ObservedFile(tmp_path / "observed.json", restored, keys(NEW, OLD)).load()
    assert restored.text == STATE
    with pytest.raises(StoreError, match=r"state of observed\.json was not signed"):
        ObservedFile(tmp_path / "observed.json", Text(), keys(NEW)).load()
    ObservedFile(tmp_path / "observed.json", Text()).save()
    assert ObservedFile(tmp_path / "observed.json", Text(), keys(NEW)).load()
