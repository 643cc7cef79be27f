"""The outcome for machines: hours, minutes, cores, ratios 0-1; null where there is no figure."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  msgspec resolves the annotations when it encodes
from typing import TYPE_CHECKING

import msgspec

from forecaster.app.demo_comparison import in_all
from forecaster.hpa.spec import SHIPPED
from forecaster.publish.views import RecommendationView, recommendation_view
from forecaster.replay.assumptions import START_UP
from forecaster.report.demo_summary import verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.app.demo import Moment, Setups
    from forecaster.app.demo_comparison import FloorComparison
    from forecaster.domain.workload import WorkloadId
    from forecaster.replay.account import Account


class DemoAccountView(msgspec.Struct, frozen=True, gc=False):
    """What was spent and what was short."""

    pod_hours: float
    short_minutes: float
    short_share: float | None
    missing_core_hours: float
    missing_share: float | None


class ComparedView(msgspec.Struct, frozen=True):
    """Three ways through the same demand."""

    plain_hpa: DemoAccountView
    recommended_floor: DemoAccountView
    plain_hpa_at_equal_pod_hours: DemoAccountView | None


class DemoWorkloadView(msgspec.Struct, frozen=True):
    """One workload; a pod is full at `pod_cores`."""

    namespace: str
    kind: str
    name: str
    pod_cores: float
    compared: ComparedView


class DemoLeftOutView(msgspec.Struct, frozen=True, gc=False):
    """A workload without a comparison."""

    namespace: str
    kind: str
    name: str
    reason: str


class DemoOutcomeView(msgspec.Struct, frozen=True):
    """What came of the play."""

    begin: datetime
    until: datetime
    pod_start_up_seconds: float
    hpa_sync_seconds: float
    workloads: list[DemoWorkloadView]
    total: ComparedView
    left_out: list[DemoLeftOutView]
    verdict: list[str]


class DemoView(msgspec.Struct, frozen=True):
    """The last recommendations in the form of `once`, and the outcome; null of one cycle alone (`--once`)."""

    recommendations: list[RecommendationView]
    outcome: DemoOutcomeView | None = None


def demo_view(
    begin: datetime,
    last: Moment,
    setups: Setups,
    compared: Mapping[WorkloadId, FloorComparison],
    left_out: Mapping[WorkloadId, str],
) -> DemoView:
    """Return the result of the demo as one document."""
    recommendations = sorted(last.outcome.recommendations, key=lambda one: one.id)
    outcome = DemoOutcomeView(
        begin=begin,
        until=last.now,
        pod_start_up_seconds=START_UP.total_seconds(),
        hpa_sync_seconds=SHIPPED.sync_period.total_seconds(),
        workloads=[
            DemoWorkloadView(*id_, setups[id_].capacity.amount, _compared(one)) for id_, one in compared.items()
        ],
        total=_compared(in_all(list(compared.values()))),
        left_out=[DemoLeftOutView(*id_, reason) for id_, reason in left_out.items()],
        verdict=verdict(compared),
    )
    return DemoView([recommendation_view(one) for one in recommendations], outcome)


def _compared(one: FloorComparison) -> ComparedView:
    return ComparedView(_account(one.plain), _account(one.floored), None if one.equal is None else _account(one.equal))


def _account(account: Account) -> DemoAccountView:
    return DemoAccountView(
        pod_hours=account.pod_hours,
        short_minutes=account.short.total_seconds() / 60,
        short_share=account.short_share,
        missing_core_hours=account.missing,
        missing_share=account.missing_share,
    )
