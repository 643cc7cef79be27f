"""Work that goes on beside the requests."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine


@asynccontextmanager
async def kept_running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """`work` runs while the block lasts."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
