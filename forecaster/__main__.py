"""The command `forecaster`, and `python -m forecaster`: so little that Ctrl-C is orderly from the first moment on."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

INTERRUPTED = 130


def terminated(number: int, _frame: object) -> NoReturn:
    """End a command on SIGTERM as Ctrl-C does: what it opened is closed, its temporary files are removed.

    Raises:
        SystemExit: with 128 and the number, as a shell has it.
    """
    raise SystemExit(128 + number)


def main() -> None:
    """Run a command; expected errors are one message and exit code 1 or 2, never a traceback."""
    try:
        from forecaster.cli import app  # noqa: PLC0415  while it loads, Ctrl-C may come already
        from forecaster.cli.streams import run_and_flush, tell, tolerant_streams  # noqa: PLC0415  as above
        from forecaster.errors import TRY_DOCTOR, ConfigError, ForecasterError, SourceUnavailable  # noqa: PLC0415  as above
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    tolerant_streams()
    signal.signal(signal.SIGTERM, terminated)
    plugin = sys.argv[0].endswith("kubectl-forecaster")
    try:
        name = "kubectl forecaster" if plugin else "forecaster"
        run_and_flush(lambda: app(prog_name=name, complete_var="_FORECASTER_COMPLETE"))
    except ForecasterError as error:
        tell(f"forecaster: {error}")
        if isinstance(error, SourceUnavailable):
            tell(TRY_DOCTOR)
        mistyped = isinstance(error, ConfigError) and error.origin in {"command line", "--set"}
        raise SystemExit(2 if mistyped else 1) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
