"""Services read one kubeconfig again and again, each time by a process of 0.6 s: equal files are read once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forecaster.kube import config

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANGES = (b"exec", b"auth-provider", b"tokenFile")
"""Words of a kubeconfig whose answer differs each time."""
_Loaded = tuple[int | None, bytes, str]
_known: dict[tuple[str | bytes, ...], _Loaded] = {}


@pytest.fixture(scope="session", autouse=True)
def kubeconfigs_once() -> Iterator[None]:
    """Load files without a plug-in once for each text: the result is a function of their texts."""
    load = config._run  # noqa: SLF001

    def loaded(command: list[str], timeout: float) -> _Loaded:
        files = [Path(name) for name in command[command.index("forecaster.kube.load") + 2 :]]
        texts = [file.read_bytes() for file in files if file.is_file()]
        key = (*command, *texts)
        if key in _known:
            return _known[key]
        loaded_files = load(command, timeout)
        if loaded_files[0] == 0 and not any(word in text for word in CHANGES for text in texts):
            _known[key] = loaded_files
        return loaded_files

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "_run", loaded)
        yield
