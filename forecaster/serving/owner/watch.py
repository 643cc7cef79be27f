"""Looks again and again who serves the groups. It only reads: nothing here can take a group from anybody."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

from forecaster.kube.client import ApiError
from forecaster.kube.objects import ApiService, api_service_path
from forecaster.serving.owner.ownership import Owner, advice, owner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forecaster.serving.front_proxy import ObjectReader

LOOK_SECONDS = 30.0


class OwnerWatch:
    """The present owner of each group, by its APIService."""

    def __init__(self, reader: ObjectReader, ours: str, names: Sequence[str], tell: Callable[[str], None]) -> None:
        self._reader = reader
        self._ours = ours
        self._tell = tell
        self.owners: dict[str, Owner] = dict.fromkeys(names, Owner.UNKNOWN)

    async def look(self) -> None:
        """Look once."""
        for name in self.owners:
            try:
                registered = await self._registered(name)
            except ApiError:
                self.owners[name] = Owner.UNKNOWN
                continue
            self.owners[name] = owner_of(registered, self._ours)
            if why := advice(name, registered, self._ours):
                self._tell(why)

    async def keep_looking(self) -> None:
        """For ever."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def _registered(self, name: str) -> ApiService | None:
        try:
            return await self._reader.get(api_service_path(name), ApiService)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
