"""What the decisions of the running service were worth, as the table carries it: of all workloads, and of each.

The four numbers stand beside those of the HPA alone, over the last day and week. Ratios 0-1, hours, minutes, and money
in the currency of the prices. What is not known is null, with the reason in `unknown`. No numpy.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  msgspec resolves the annotations when it decodes
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.reader import PublishedTable, TableEntry

BENEFIT_KEY = "benefit"
"""The column of the whole fleet, and the text column of its workloads."""
NOT_COMPARED = "not known: the service does not compare its decisions with the HPA alone"


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


class SeenBenefit:
    """The benefit of a fleet and, as JSON, of those of its workloads of which something is known."""

    def __init__(self, whole: BenefitView, texts: Mapping[WorkloadId, bytes]) -> None:
        self.view, self.whole, self.texts = whole, msgspec.json.encode(whole), texts


NO_BENEFIT = SeenBenefit(BenefitView(), {})


def benefit_of_fleet(table: PublishedTable) -> BenefitView:
    """What the table tells of all workloads together."""
    return decode_benefit(table.whole(BENEFIT_KEY) or b"{}")


def benefit_of_workload(table: PublishedTable, entry: TableEntry) -> BenefitView:
    """What the table tells of one workload, with the reason of the fleet where it says nothing of its own."""
    whole = table.whole(BENEFIT_KEY)
    text = table.text(BENEFIT_KEY, entry.row) if whole else b""
    return decode_benefit(text) if text else BenefitView(unknown=benefit_of_fleet(table).unknown)
