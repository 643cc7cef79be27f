"""An ASGI application asked directly, without a network."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class Client:
    """Synchronous requests to an application; its lifespan is not run."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def get(self, url: str, headers: httpx.Headers | None = None) -> httpx.Response:
        return self.request("GET", url, headers=headers)

    def post(self, url: str, body: bytes) -> httpx.Response:
        return self.request("POST", url, body)

    def request(
        self, method: str, url: str, body: bytes | None = None, headers: httpx.Headers | None = None
    ) -> httpx.Response:
        return asyncio.run(self.send(method, url, body, headers))

    async def send(
        self, method: str, url: str, body: bytes | None = None, headers: httpx.Headers | None = None
    ) -> httpx.Response:
        """One request beside others."""
        transport = httpx.ASGITransport(app=self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://serving") as client:
            return await client.request(method, url, content=body, headers=headers)
