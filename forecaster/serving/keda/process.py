"""How the computing process starts the scaler's process. It loads no gRPC itself."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from forecaster.errors import StoreError
from forecaster.serving.address import Address, listen
from forecaster.serving.kept import Death, KeptChild

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta
    from pathlib import Path


class ScalerOptions(NamedTuple):
    """Where the scaler listens, and who may ask it."""

    address: Address
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    client_names: Sequence[str] = ()
    stale_after: timedelta | None = None


def scaler_process(
    table: Path, options: ScalerOptions, *, on_death: Callable[[Death], None] = lambda _death: None
) -> KeptChild:
    """The child that answers KEDA, not yet started.

    Raises:
        StoreError: gRPC is not installed, or nothing can listen on the address.
    """
    if find_spec("grpc") is None:
        raise StoreError("keda.enabled: gRPC is not installed; install kube-forecaster with its extra `keda`")
    _probe(options.address)
    return KeptChild("keda", _command(table, options), on_death=on_death)


def _probe(address: Address) -> None:
    """The child opens its port itself; that it can is found out here, where it stops the start."""
    try:
        listen(address).close()
    except OSError as error:
        raise StoreError(f"keda: {error.strerror}") from error


def _command(table: Path, options: ScalerOptions) -> list[str]:
    command = [sys.executable, "-m", "forecaster.serving.keda", "--with-parent"]
    command += ["--table", str(table), "--address", str(options.address)]
    files = {"--certificate": options.certificate, "--key": options.key, "--client-ca": options.client_ca}
    for option, path in files.items():
        command += [option, str(path)] if path else []
    for name in options.client_names:
        command += ["--client-name", name]
    if options.stale_after is not None:
        command += ["--stale-after", str(options.stale_after.total_seconds())]
    return command
