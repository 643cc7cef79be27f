"""SeenVpas: what VPAs of the cluster recommend, carried to the page of a workload beside our own sizes. No numpy."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  msgspec resolves the annotations when it decodes
from typing import TYPE_CHECKING

import msgspec

from forecaster.publish.views import whole_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.domain.workload import Resources, WorkloadId
    from forecaster.publish.reader import PublishedTable, TableEntry
    from forecaster.vertical.recommenders.live_vpa import VpaSizes

VPAS_KEY = "vpas"
"""The column with what is known of all, and the text column of the workloads that have some."""


class VpaRequests(msgspec.Struct, frozen=True, gc=False):
    """Requests of one container, in cores and whole bytes; null where unknown."""

    cpu_request_cores: float | None
    memory_request_bytes: int | None


class VpaContainer(msgspec.Struct, frozen=True):
    """What a VPA recommends for one container."""

    container: str
    target: VpaRequests
    lower_bound: VpaRequests
    upper_bound: VpaRequests


class VpaView(msgspec.Struct, frozen=True):
    """A VPA; without a recommendation it has no containers, and the message is what it says of that."""

    name: str
    update_mode: str
    containers: tuple[VpaContainer, ...]
    message: str


class VpasSight(msgspec.Struct, frozen=True):
    """Instant at which VPAs were listed, or why they are not known, in a sentence."""

    read_at: datetime | None = None
    unknown: str = ""


class VpasOfWorkload(VpasSight, frozen=True, kw_only=True):
    """VPAs of one workload."""

    vpas: tuple[VpaView, ...] = ()


_sight = msgspec.json.Decoder(VpasSight)
_views = msgspec.json.Decoder(tuple[VpaView, ...])


class SeenVpas:
    """VPAs as they were listed once, encoded once."""

    def __init__(
        self, read_at: datetime | None = None, found: Mapping[WorkloadId, tuple[VpaSizes, ...]] = {}, unknown: str = ""
    ) -> None:
        self.sight = b"" if read_at is None and not unknown else msgspec.json.encode(VpasSight(read_at, unknown))
        """Encoded state of the list; empty before the first list, and where VPAs are not read."""
        self.texts = {id_: msgspec.json.encode([vpa_view(one) for one in vpas]) for id_, vpas in found.items()}


def vpas_of_workload(table: PublishedTable, entry: TableEntry) -> VpasOfWorkload:
    """What the table tells of the VPAs of a workload."""
    sight = table.whole(VPAS_KEY)
    if not sight:
        return VpasOfWorkload()
    known, text = _sight.decode(sight), table.text(VPAS_KEY, entry.row)
    return VpasOfWorkload(known.read_at, known.unknown, vpas=_views.decode(text) if text else ())


def vpa_view(one: VpaSizes) -> VpaView:
    """Return the public form of a VPA."""
    containers = (
        VpaContainer(of.container, _requests(of.target), _requests(of.lower), _requests(of.upper))
        for of in one.containers
    )
    return VpaView(one.name, one.mode, tuple(containers), one.why)


def _requests(one: Resources) -> VpaRequests:
    return VpaRequests(one.cpu_request, whole_bytes(one.memory_request))
