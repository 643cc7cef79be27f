"""The owner of each API group in this cluster, by its APIService: only looked at, so that no group is ever taken."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING

from forecaster.kube.client import ApiError
from forecaster.kube.objects import ApiService, api_service_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forecaster.serving.authentication import ObjectReader


class GroupOwner(StrEnum):
    """The Service behind an API group: ours, none, another, or one that the API server would not name."""

    US = "us"
    NONE = "none"
    OTHER = "other"
    UNKNOWN = "unknown"


def owner_of(registered: ApiService | None, ours: str) -> GroupOwner:
    """The owner of a registration; `ours` is `namespace/name` of our Service."""
    service = registered.spec.service if registered else None
    if service is None:
        return GroupOwner.NONE
    return GroupOwner.US if str(service) == ours else GroupOwner.OTHER


def advice(group: str, registered: ApiService | None, ours: str) -> str:
    """A sentence for the log where a group belongs to another Service; empty where it does not."""
    if owner_of(registered, ours) is not GroupOwner.OTHER or registered is None:
        return ""
    return (
        f"{group} belongs to the Service {registered.spec.service}, which we leave alone: serve through KEDA or "
        "Prometheus, or stand in front of it (serving.secure.upstream) before you point its APIService here"
    )


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
        """Look again every `LOOK_SECONDS`."""
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
