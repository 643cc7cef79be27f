"""A look back on a week: sizes, adoptions, and the first sentence."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import CPU, MEMORY, PODS
from forecaster.domain.window import DAY, MINUTE
from forecaster.domain.workload import ContainerLosses, Resources
from forecaster.replay.comparison import BENEFIT_MEANS
from forecaster.replay.realised import DecidedCount, spare_costs
from forecaster.replay.traces import Traces
from forecaster.replay.weekly import NO_FIGURES, WeekOutcome, adoptions_of, sizes_of, total_figures
from forecaster.report.comparison import sentences, workload_columns
from forecaster.report.week import week_page, week_sections, week_view
from tests.support.builders import GIB, NOON, minutes, workload
from tests.support.replays import looked_back, small_comparison

DAYS = 3


def traces(*, memory_gib: float = 2.0, limit_gib: float | None = 1.5) -> Traces:
    """Three days of a workload with two pods, whose memory grows on the last day."""
    count = DAYS * DAY // MINUTE
    grown = np.where(np.arange(count) < 2 * DAY // MINUTE, 1.0, memory_gib)
    resources = Resources(1.0, 2.0, GIB, None if limit_gib is None else limit_gib * GIB)
    values = {CPU: np.full(count, 1.0), MEMORY: 2 * grown * GIB, PODS: np.full(count, 2.0)}
    return Traces((workload("web", replicas=2, resources=resources),), NOON, {k: v[None] for k, v in values.items()})


def sizes(**given: float | None) -> WeekOutcome:
    recorded = traces(**given)  # type: ignore[arg-type]
    sized = sizes_of(recorded, Policies(Policy()), recorded.end - DAY, recorded.end)
    return WeekOutcome(small_comparison(), [], sized)


def test_more_memory_than_the_limit_is_a_kill_with_the_sizes_that_are_stated() -> None:
    (size,) = sizes().sizes
    assert size.stated.oom_kills == 288, "of a day of five minutes, the last ones included and those before it not"
    assert size.ours.oom_kills < size.stated.oom_kills


def test_without_a_limit_nothing_is_killed_and_what_is_requested_and_not_used_is_idle() -> None:
    (size,) = sizes(memory_gib=1.0, limit_gib=None).sizes
    assert size.stated.oom_kills == 0
    assert size.stated.idle_core_hours == pytest.approx(12.0)
    assert size.stated.idle_gib_hours == pytest.approx(0.0)


def test_a_workload_without_half_a_day_before_is_not_sized() -> None:
    recorded = traces()
    assert sizes_of(recorded, Policies(Policy()), recorded.start + minutes(60), recorded.end) == []


def test_the_total_is_the_sum() -> None:
    figures = replace(NO_FIGURES, oom_kills=2, idle_core_hours=1.5)
    assert total_figures([figures, figures]) == replace(NO_FIGURES, oom_kills=4, idle_core_hours=3.0)


def outcome(*, missing: float = 0.5, priced: bool = False) -> WeekOutcome:
    comparison = looked_back(missing=missing, priced=priced)
    return WeekOutcome(comparison, adoptions_of(comparison), sizes().sizes)


def cells(week: WeekOutcome, title: str) -> list[tuple[str, ...]]:
    """Rows of the table with this title."""
    (section,) = [each for each in week_sections(week) if each.title == title]
    return list(zip(*(column.cells for column in section.columns), strict=True))


def test_expected_shares_stand_beside_the_realised_ones() -> None:
    (adoption,) = outcome().adoptions
    assert adoption.at == NOON + minutes(30)
    assert (adoption.expected_reactive, adoption.expected) == (0.04, 0.01)
    assert adoption.realised == pytest.approx(adoption.reactive / 2)
    ((_, at, *shares),) = cells(outcome(), "Expected and realised")
    assert at == "2026-03-01 12:30"
    assert shares[:2] == ["4.000%", "1.000%"]


def test_a_forecast_that_never_acted_was_not_adopted() -> None:
    assert adoptions_of(replace(looked_back(), gates={})) == []


def test_a_loss_is_in_the_first_sentence_everywhere() -> None:
    worse = outcome(missing=1.5)
    first = "No benefit: forecaster was worse than the HPA alone on 1 of 1 workload"
    assert sentences(worse.comparison)[0].startswith(first)
    assert week_view(worse).summary[0].startswith(first)
    text = week_page(worse)
    assert text.index(first) < text.index("<table")
    assert BENEFIT_MEANS in text
    verdicts = [workload_columns(week.comparison)[-1].cells[0] for week in (worse, outcome())]
    assert verdicts == ["worse", "better"]
    first = "Forecaster was worse than the HPA alone on none of 1 workload; better on 1,"
    assert sentences(outcome().comparison)[0].startswith(first)


def test_a_week_without_any_benefit_says_so_and_what_to_do() -> None:
    sentence = sentences(outcome(missing=1.0).comparison)[0]
    assert sentence.startswith(
        "No benefit: forecaster was worse than the HPA alone on none of 1 workload; better on none,"
    )
    assert sentence.endswith("`forecaster tune` looks for a policy that would have been better.")


def test_the_week_names_the_same_four_numbers_for_the_hpa_alone_and_for_forecaster() -> None:
    lines = sentences(outcome(priced=True).comparison)
    for line in (
        next(text for text in lines if "HPA alone: " in text),
        next(text for text in lines if "(gated): " in text),
    ):
        assert [name in line for name in ("unserved demand", "minutes short", "pod-hours", "money")] == [True] * 4


def test_money_is_that_of_the_pods_and_absent_without_prices() -> None:
    comparison = outcome(priced=True).comparison
    assert comparison.own("gated").money == pytest.approx(2.0 * comparison.own("gated").pod_hours)
    assert "money, EUR" in week_page(outcome(priced=True))
    assert "money" not in week_page(outcome())


def test_machines_get_all_of_it() -> None:
    view = msgspec.to_builtins(week_view(outcome()))
    (row,) = view["workloads"]
    assert set(row["strategies"]) == set(view["total"]) == {"hpa", "seasonal_naive", "ours"}
    assert row["adoption"]["expected_missing_share"] == 0.01
    assert view["sizes"]["stated"]["oom_kills"] > 0
    assert view["left_out"][0]["reason"].startswith("no HPA")


def test_the_last_row_of_sizes_is_the_sum() -> None:
    (row, total) = cells(outcome(), "Requests and limits")
    assert row[1:] == total[1:]
    assert total[0] == "all"


def test_losses_are_reported_as_they_happened() -> None:
    week = outcome()
    id_ = week.comparison.workloads[0].workload.id
    lossy = replace(week, losses={id_: ContainerLosses(3, None)})
    page = week_page(lossy)
    assert "OOM kills and throttling as they happened" in page
    losses = week_view(lossy).workloads[0].losses
    assert losses is not None
    assert (losses.oom_kills, losses.throttled_container_hours) == (3, None)


SPARING = Policies(Policy.model_validate({"horizontal": {"survive": "zone"}}))
WEB = workload("web", resources=Resources(cpu_request=0.5))


def spared(*decisions: DecidedCount, policies: Policies = SPARING, priced: bool = True) -> WeekOutcome:
    """A week whose first two hours have these decisions, at two euros a core-hour."""
    week = outcome(priced=priced)
    given = {"begin": NOON, "until": NOON + minutes(120), "prices": week.comparison.prices}
    return replace(week, spare=spare_costs([WEB], {WEB.id: decisions}, policies, **given))


def test_spare_pods_are_priced_by_the_time_for_which_they_were_decided() -> None:
    """Three spare pods for half an hour, one for an hour with a hold, then none: 2.5 pod-hours of half a core."""
    week = spared(
        DecidedCount(NOON - minutes(60), 9, 3),
        DecidedCount(NOON + minutes(30), 7, 1),
        DecidedCount(NOON + minutes(60), None, None),
        DecidedCount(NOON + minutes(90), 6, 0),
        DecidedCount(NOON + minutes(180), 9, 3),
    )
    assert cells(week, "Spare pods") == [("shop/web", "2.5", "2.50", "2"), ("all", "2.5", "2.50", "2")]
    (view,) = week_view(week).spare
    assert (view.name, view.pod_hours, view.recorded_hours, view.money) == ("web", 2.5, 2.0, 2.5)
    assert "so that enough pods stay when a node or zone is lost" in week_page(week)


def test_spare_pods_of_decisions_from_before_they_were_recorded_are_not_taken_for_none() -> None:
    old = DecidedCount(NOON, 9)
    assert cells(spared(old), "Spare pods")[0] == ("shop/web", "not recorded", "not recorded", "0")
    assert week_view(spared(old)).spare[0].pod_hours is None
    assert cells(spared(), "Spare pods") == cells(spared(old), "Spare pods"), "nothing decided is not recorded, too"
    partly = spared(old, DecidedCount(NOON + minutes(60), 9, 3))
    assert cells(partly, "Spare pods")[0] == ("shop/web", "3.0", "3.00", "1")


def test_without_prices_spare_pods_have_hours_and_no_money() -> None:
    week = spared(DecidedCount(NOON, 9, 3), priced=False)
    assert cells(week, "Spare pods")[0] == ("shop/web", "6.0", "2")
    assert week_view(week).spare[0].money is None


def test_a_workload_that_is_to_survive_nothing_has_no_spare_pods_to_price() -> None:
    assert spared(DecidedCount(NOON, 9, 0), policies=Policies(Policy())).spare == []
    assert spared(DecidedCount(NOON, 9, 3), policies=Policies(Policy())).spare != []
