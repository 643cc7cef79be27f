"""A disk that is full after so many bytes, made by the kernel's own limit on the size of files."""

from __future__ import annotations

import resource
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def full_disk(after: int = 512) -> Iterator[None]:
    """Let writes beyond `after` bytes of any file fail with an `OSError` (EFBIG)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
