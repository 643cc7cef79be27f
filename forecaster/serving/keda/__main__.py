"""The scaler's process: `python -m forecaster.serving.keda --table PATH --address HOST:PORT [certificates]`."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from forecaster.publish.reader import TableReader
from forecaster.serving.keda.server import CertificateFiles, ScalerCertificates, WatchedTable, serve
from forecaster.serving.keda.service import ScalerService, TriggerValues
from forecaster.serving.options import address_argument

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; the exit code is 1 if that cannot even begin."""
    options = _parser().parse_args(arguments)
    reader = TableReader(options.table)
    limit = None if options.stale_after is None else timedelta(seconds=options.stale_after)
    service = ScalerService(TriggerValues(reader, lambda: datetime.now(UTC), limit), options.client_name)
    try:
        files = _files(options)
        credentials = None if files is None else ScalerCertificates(files).credentials()
        uvloop.run(
            serve(WatchedTable(reader, service), options.address, credentials, lambda: _stopped(options.with_parent))
        )
    except (OSError, RuntimeError, ssl.SSLError) as error:
        sys.stderr.write(f"forecaster keda: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m forecaster.serving.keda", description=__doc__)
    parser.add_argument("--table", type=Path, required=True, help="file that the computing process publishes")
    parser.add_argument("--address", type=address_argument, required=True, help="HOST:PORT to listen on")
    parser.add_argument("--certificate", type=Path, help="PEM file with our chain; without it, plaintext")
    parser.add_argument("--key", type=Path, help="PEM file with its key")
    parser.add_argument("--client-ca", type=Path, help="PEM file of the authorities that sign clients")
    parser.add_argument("--client-name", action="append", default=[], help="common name of an allowed client; repeated")
    parser.add_argument("--stale-after", type=float, metavar="SECONDS", help="default: three intervals of the table")
    parser.add_argument("--with-parent", action="store_true", help="stop when standard input ends")
    return parser


def _files(options: argparse.Namespace) -> CertificateFiles | None:
    if options.certificate is None:
        return None
    if options.key is None:
        raise OSError("a certificate needs its key: add --key")
    return CertificateFiles(options.certificate, options.key, options.client_ca)


async def _stopped(with_parent: bool) -> None:  # noqa: FBT001  a flag of the command line
    """Until SIGTERM or SIGINT, or the end of standard input: the parent holds its other end, however it dies."""
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    if with_parent:
        loop.add_reader(0, lambda: None if os.read(0, 1) else told.set())
    await told.wait()


if __name__ == "__main__":
    sys.exit(main())
