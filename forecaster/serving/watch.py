"""Watching the published table from an event loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from forecaster.serving.reader import TableReader

POLL_SECONDS = 0.25
"""How often the file is looked at: one stat. A new table is served within this time."""


@asynccontextmanager
async def watching(reader: TableReader) -> AsyncIterator[None]:
    """The newest table, loaded once before the block begins and kept up to date while it lasts."""
    await asyncio.to_thread(reader.refresh)
    watch = asyncio.create_task(_watch(reader))
    yield
    watch.cancel()
    with suppress(asyncio.CancelledError):
        await watch


async def _watch(reader: TableReader) -> None:
    """Loads new tables beside the requests: none of them waits for it."""
    while True:
        await asyncio.sleep(POLL_SECONDS)
        await asyncio.to_thread(reader.refresh)
