"""Standard output and error as they are: any encoding, a full disk, a reader that leaves; files that are written."""

from __future__ import annotations

import codecs
import errno
import os
import shutil
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from forecaster.errors import StoreError

EXIT_REFUSED = 1
READER_GONE = 141
"""128 and SIGPIPE, as a shell has it."""
ASCII_SIGNS = {"→": "->", "–": "-", "…": "...", "≤": "<=", "≥": ">=", "×": "x", "·": "*", "±": "+-", "−": "-"}
ASCII_SIGNS |= dict(zip("▁▂▃▄▅▆▇█", "_.-~=+*#", strict=True))


def _spelt_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(ASCII_SIGNS.get(char, "?") for char in error.object[error.start : error.end]), error.end


def tolerant_streams() -> None:
    """Replace characters that the encoding of standard output and error lacks; a closed stream swallows everything."""
    codecs.register_error("forecaster-plain", _spelt_out)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell: what is said goes nowhere
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  as long as we run
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):  # a stream of a test, or none at all
            stream.reconfigure(errors="forecaster-plain")  # type: ignore[union-attr]  # of text files


def tell(text: str) -> None:
    """A message on standard error: on a terminal its lines end between words, and go on a little further in."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() or sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(_folded(line, width) for line in text.splitlines())
    sys.stderr.write(f"{text}\n")


def _folded(line: str, width: int) -> str:
    further = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, width, subsequent_indent=further, break_long_words=False, break_on_hyphens=False)


def run_and_flush(command: Callable[[], None]) -> None:
    """Run a command and flush its output: a full disk is a message, a reader that left is none.

    Raises:
        SystemExit: with the exit code.
    """
    before = sys.stdout
    try:
        try:
            command()
        except SystemExit:
            if sys.stdout is not before:  # typer has met the broken pipe
                raise BrokenPipeError from None
            raise
        finally:
            before.flush()
    except BrokenPipeError:
        _drop_output()
        raise SystemExit(READER_GONE) from None
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}:
            raise
        _drop_output()
        with suppress(OSError):
            sys.stderr.write(f"forecaster: cannot write: {error.strerror}; make room, or write somewhere else\n")
        raise SystemExit(EXIT_REFUSED) from None


def _drop_output() -> None:
    """Drop buffered output: the interpreter would try to write it again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


OUTPUT_REMEDY = "name a file in a directory that may be written"


def check_writable(*paths: Path | None) -> None:
    """Refuse a file that could not be written, before the work.

    Raises:
        StoreError: its folder is missing, or it may not be written, or another one would be written over it.
    """
    named = [path for path in paths if path is not None]
    if len(set(named)) < len(named):
        raise StoreError(f"{named[-1]}: would be written twice, the second time over the first; name two files")
    for path in named:
        if str(path) == "-":
            raise StoreError("-: standard output is printed with -o json; --json and --html name files")
        folder = path.parent
        with suppress(OSError):  # of a folder that may not be looked into, or a name that is too long
            if not folder.is_dir():
                raise StoreError(f"{path}: there is no folder {folder}; {OUTPUT_REMEDY}")
            if os.access(path if path.exists() else folder, os.W_OK):
                continue
        raise StoreError(f"{path}: may not be written; {OUTPUT_REMEDY}")


def write_file(path: Path, text: str) -> None:
    """Write a file that was checked before, and say so on standard error.

    Raises:
        StoreError: it cannot be written after all.
    """
    try:
        _replace(path.resolve(), text)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror}); {OUTPUT_REMEDY}") from error
    tell(f"{path}: written, {len(text.encode()) / 2**10:.1f} KiB")


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole: the old text stays where the disk is full or the command is ended. Raises OSError."""
    if path.exists() and not (path.is_file() and os.access(path.parent, os.W_OK)):
        path.write_text(text, encoding="utf-8")  # a pipe, or the only file there that may be written
        return
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
