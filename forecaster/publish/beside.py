"""Texts of the table beside decisions: their benefit, and the recommendations of VPAs in the cluster. No numpy.

The four numbers are compared with those of the HPA alone, over the last day and week. Ratios 0-1, hours, minutes, and
money in the currency of the prices. A value that is not known is null, with the reason in `unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from forecaster.publish.views import whole_bytes

if TYPE_CHECKING:
    from forecaster.domain.workload import Resources, WorkloadId
    from forecaster.publish.reader import PublishedTable, TableEntry
    from forecaster.vertical.recommenders.baselines import VpaSizes

BENEFIT_KEY, VPAS_KEY = "benefit", "vpas"
"""Columns with the facts about the fleet, and text columns of the workloads that have their own."""
NOT_COMPARED = "not known: the service does not compare its decisions with the HPA alone"


class TextsBeside(NamedTuple):
    """Encoded texts that a table has beside decisions: one about all workloads, and one for each that has its own."""

    whole: bytes = b""
    """Empty where none is known."""
    texts: Mapping[WorkloadId, bytes] = MappingProxyType({})


class FourNumbers(msgspec.Struct, frozen=True, gc=False):
    """Unserved demand as a share, minutes short, pod-hours, and money where prices are stated."""

    unserved_share: float | None
    short_minutes: float
    pod_hours: float
    money: float | None


class PeriodBenefit(msgspec.Struct, frozen=True):
    """One period: the HPA alone, and forecaster as it decided. `workloads` counts them by better, same and worse."""

    since: datetime
    until: datetime
    hpa: FourNumbers
    forecaster: FourNumbers
    workloads: dict[str, int]
    said: str


class BenefitView(msgspec.Struct, frozen=True):
    """Benefit by period, `day` and `week`; without any, why it is not known."""

    periods: dict[str, PeriodBenefit] = {}
    unknown: str = NOT_COMPARED


decode_benefit = msgspec.json.Decoder(BenefitView).decode


def benefit_of_fleet(table: PublishedTable) -> BenefitView:
    """Return the benefit of all workloads together from the table."""
    return decode_benefit(table.whole(BENEFIT_KEY) or b"{}")


def benefit_of_workload(table: PublishedTable, entry: TableEntry) -> BenefitView:
    """Return the benefit of one workload from the table, or why the workload has none."""
    if text := table.text(BENEFIT_KEY, entry.row) if table.whole(BENEFIT_KEY) else b"":
        return decode_benefit(text)
    return BenefitView(unknown=benefit_of_fleet(table).unknown or "not known: no count was decided for it yet")


class VpaRequests(msgspec.Struct, frozen=True, gc=False):
    """Requests of one container, in cores and whole bytes; null where unknown."""

    cpu_request_cores: float | None
    memory_request_bytes: int | None


class VpaContainer(msgspec.Struct, frozen=True):
    """A VPA's recommendation for one container."""

    container: str
    target: VpaRequests
    lower_bound: VpaRequests
    upper_bound: VpaRequests


class VpaView(msgspec.Struct, frozen=True):
    """A VPA; without a recommendation it has no containers, and the message gives its reason."""

    name: str
    update_mode: str
    containers: tuple[VpaContainer, ...]
    message: str


class VpaListing(msgspec.Struct, frozen=True):
    """Instant at which VPAs were listed, or why they are not known, in a sentence."""

    read_at: datetime | None = None
    unknown: str = ""


class VpasOfWorkload(VpaListing, frozen=True, kw_only=True):
    """VPAs of one workload."""

    vpas: tuple[VpaView, ...] = ()


def listed_vpas_beside(
    read_at: datetime, vpas_by_id: Mapping[WorkloadId, tuple[VpaSizes, ...]], unknown: str
) -> TextsBeside:
    """Encode the VPAs of one listing; nothing where they are not read."""
    texts = {id_: msgspec.json.encode([vpa_view(vpa) for vpa in vpas]) for id_, vpas in vpas_by_id.items()}
    return TextsBeside(msgspec.json.encode(VpaListing(read_at, unknown)), texts)


def vpas_of_workload(table: PublishedTable, entry: TableEntry) -> VpasOfWorkload:
    """Return the VPAs of a workload from the table."""
    listing = table.whole(VPAS_KEY)
    if not listing:
        return VpasOfWorkload()
    known, text = msgspec.json.decode(listing, type=VpaListing), table.text(VPAS_KEY, entry.row)
    vpas = msgspec.json.decode(text or b"[]", type=tuple[VpaView, ...])
    return VpasOfWorkload(known.read_at, known.unknown, vpas=vpas)


def vpa_view(vpa: VpaSizes) -> VpaView:
    """Return the public form of a VPA."""
    containers = (
        VpaContainer(each.container, _requests(each.target), _requests(each.lower), _requests(each.upper))
        for each in vpa.containers
    )
    return VpaView(vpa.name, vpa.mode, tuple(containers), vpa.why)


def _requests(resources: Resources) -> VpaRequests:
    return VpaRequests(resources.cpu_request, whole_bytes(resources.memory_request))
