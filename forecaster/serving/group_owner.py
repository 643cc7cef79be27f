"""Who serves a group in this cluster: us, nobody, or somebody else, whom we leave alone. Pure."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING

from forecaster.kube.client import ApiError
from forecaster.kube.objects import ApiService, api_service_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forecaster.serving.front_proxy import ObjectReader


class GroupOwner(StrEnum):
    """Of one API group."""

    US = "us"
    NOBODY = "nobody"
    OTHER = "other"
    UNKNOWN = "unknown"
    """The API server would not say."""


def owner_of(registered: ApiService | None, ours: str) -> GroupOwner:
    """Whose a registration is; `ours` is `namespace/name` of our Service."""
    service = registered.spec.service if registered else None
    if service is None:
        return GroupOwner.NOBODY
    return GroupOwner.US if str(service) == ours else GroupOwner.OTHER


def advice(group: str, registered: ApiService | None, ours: str) -> str:
    """What a person should know; empty where all is as it should be."""
    if owner_of(registered, ours) is not GroupOwner.OTHER or registered is None:
        return ""
    return (
        f"{group} belongs to the Service {registered.spec.service}, which we leave alone: serve through KEDA or "
        "Prometheus, or stand in front of it (serving.secure.previous) before you point its APIService here"
    )


# Looks again and again who serves the groups. It only reads: nothing here can take a group from anybody.


LOOK_SECONDS = 30.0


class GroupOwnerWatch:
    """The present owner of each group, by its APIService."""

    def __init__(self, reader: ObjectReader, ours: str, names: Sequence[str], tell: Callable[[str], None]) -> None:
        self._reader = reader
        self._ours = ours
        self._tell = tell
        self.owners: dict[str, GroupOwner] = dict.fromkeys(names, GroupOwner.UNKNOWN)

    async def look(self) -> None:
        """Look once."""
        for name in self.owners:
            try:
                registered = await self._registered(name)
            except ApiError:
                self.owners[name] = GroupOwner.UNKNOWN
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
