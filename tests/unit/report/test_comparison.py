"""The page needs nothing but itself, and says nothing that could run."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import msgspec

from forecaster.horizontal.gate_states import Gate, GateState
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.comparison import Comparison, Curve
from forecaster.replay.gated import GateSince
from forecaster.replay.strategies import policy_with
from forecaster.report.comparison import (
    REPLAY_LIMITS,
    sentences,
    strategy_columns,
    workload_columns,
    worst_hours,
)
from forecaster.report.comparison_view import comparison_view
from forecaster.report.page import page
from forecaster.report.plot import Line, Plot
from tests.support.builders import NOON, minutes
from tests.support.replays import priced_comparison, small_comparison

VOID = {"meta"}
PRICE_OF_A_POD = 2.0
"""Price of one core, which each pod requests."""


class Tags(HTMLParser):
    """Every tag that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing() -> None:
    text = page(replace(small_comparison(), origin="two <made up> series"))
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    assert "svg" in tags.seen
    assert not tags.seen & {"link", "img", "iframe"}
    assert "://" not in text
    assert "script-src 'sha256-" in text
    assert "two &lt;made up&gt; series" in text


def test_the_page_states_its_limits_and_what_was_left_out() -> None:
    text = page(small_comparison())
    assert all(limit[:40] in text for limit in REPLAY_LIMITS)
    assert "no HPA scales it" in text


def test_the_page_names_the_worst_hours() -> None:
    text = page(small_comparison())
    (hour,) = worst_hours(small_comparison())
    assert hour.at == NOON
    assert hour.missing["hpa"] > hour.missing["perfect"] == 0.0
    assert (
        f'<td class="text">2026-03-01 12:00</td><td class="text">{hour.workload}</td>'
        f"<td>{hour.missing['hpa']:.2f}</td><td>0.00</td>"
    ) in text


def test_money_stands_beside_pod_hours_in_the_currency_of_the_prices_and_nowhere_without_them() -> None:
    comparison = with_ours(priced_comparison(), missing=0.5)
    spent = f"{small_comparison().own('hpa').pod_hours * PRICE_OF_A_POD:.2f}"
    assert f"money {spent} EUR" in " ".join(sentences(comparison))
    assert [column.head for column in workload_columns(comparison)][1:5] == [
        "unserved demand",
        "minutes short",
        "pod-hours",
        "money, EUR",
    ]
    assert f"<td>{spent}</td>" in page(comparison)
    assert "money" not in page(with_ours(small_comparison(), missing=0.5))


def test_the_gate_tells_how_often_the_forecast_acts_and_why() -> None:
    comparison = small_comparison()
    id_ = comparison.workloads[0].workload.id
    stood = (GateSince(0, Gate()), GateSince(45, Gate(GateState.ACTING, why="it was better")))
    gated = replace(comparison, gates={id_: stood})
    assert "the gate lets the forecast act on 1 of 1 workload, 25% of the time" in " ".join(sentences(gated))
    sentence = "the forecast acts 25% of the time; in the end acting: it was better."
    assert sentence in page(gated)
    gates = comparison_view(gated).gates
    assert [(view.state, view.at) for view in gates] == [("learning", NOON), ("acting", NOON + minutes(45))]


def test_machines_get_every_point_and_track_and_money_where_prices_are_given() -> None:
    view = msgspec.to_builtins(comparison_view(priced_comparison()))
    workload = view["workloads"][0]
    curve = workload["strategies"]["hpa"]
    assert curve["own"]["money"] == 2.0 * curve["own"]["pod_hours"]
    assert view["total"]["hpa"]["own"]["money"] == curve["own"]["money"]
    assert len(curve["frontier"]) == len(Assumptions().shares)
    assert len(curve["track"]["asked"]) == 60
    assert view["left_out"][0]["reason"].startswith("no HPA")
    assert view["limits"]


def test_there_is_a_row_for_everybody_and_one_for_the_bound() -> None:
    names, *others = strategy_columns(small_comparison())
    assert list(names.cells) == ["the HPA alone", "perfect foresight", "theoretical minimum"]
    assert {len(column.cells) for column in others} == {3}


def test_what_a_leaner_target_of_the_hpa_saves_is_no_saving_of_a_forecast() -> None:
    """At 1.6 times the target nothing is short, either, so that the HPA alone does without those pods, too."""
    comparison = with_ours(small_comparison(), missing=1.0)
    (compared,) = comparison.workloads
    points = compared.curves["hpa"].points
    idle = {share: replace(account, missing=0.0) for share, account in points.items()}
    assert idle[1.6].pod_hours < idle[1.0].pod_hours
    curves = {name: Curve(idle, curve.track) for name, curve in compared.curves.items()}
    comparison = replace(comparison, workloads=[replace(compared, curves=curves)])
    for columns in strategy_columns(comparison), strategy_columns(comparison, comparison.workloads[0]):
        (saved,) = [column for column in columns if column.head == "saved"]
        assert saved.cells[:2] == ("0.0%", "0.0%")


def test_nothing_is_a_negative_zero() -> None:
    (saved,) = (
        c for c in strategy_columns(with_ours(small_comparison(), missing=1.0, pod_hours=1.0001)) if c.head == "saved"
    )
    assert saved.cells[2] == "0.0%"


def test_sentences_name_both_sides() -> None:
    text = " ".join(sentences(small_comparison()))
    assert "With the HPA alone" in text
    assert "perfect foresight:" in text


def with_ours(comparison: Comparison, *, missing: float, pod_hours: float = 1.0) -> Comparison:
    """Add our policy, which leaves so many times the HPA's shortage for so many times its pod-hours."""
    strategy = policy_with("adaptive")

    def scaled(curve: Curve) -> Curve:
        points = {
            share: replace(account, missing=account.missing * missing, pod_hours=account.pod_hours * pod_hours)
            for share, account in curve.points.items()
        }
        return Curve(points, curve.track)

    workloads = [
        replace(each, curves={**each.curves, "policy": scaled(each.curves["hpa"])}) for each in comparison.workloads
    ]
    return replace(comparison, strategies=[*comparison.strategies, strategy], workloads=workloads)


def test_where_we_were_worse_comes_first() -> None:
    worse = with_ours(small_comparison(), missing=1.5)
    (named,) = worse.workloads
    first = f"No benefit: forecaster was worse than the HPA alone on 1 of 1 workload: {named.workload.id};"
    assert worse.verdict().startswith(first)
    text = page(worse)
    assert 0 < text.index(first) < min(text.index("With the HPA alone"), text.index("<table"))
    assert "worse than the HPA</span>" in text


def test_where_we_were_worse_nowhere_the_first_sentence_says_so() -> None:
    better = with_ours(small_comparison(), missing=0.5)
    assert better.verdict().startswith("Forecaster was worse than the HPA alone on none of 1 workload")
    assert "worse than the HPA</span>" not in page(better)


def test_more_pods_than_at_any_target_for_no_less_shortage_are_worse() -> None:
    assert with_ours(small_comparison(), missing=1.2, pod_hours=9.0).worse("policy")
    assert not with_ours(small_comparison(), missing=0.2, pod_hours=9.0).worse("policy")


def test_strategies_that_coincide_are_drawn_once_and_said_to_be_the_same() -> None:
    same = with_ours(small_comparison(), missing=1.0)
    text = page(same)
    assert "forecaster, ungated: the same as the HPA alone" in text
    assert text.count("forecaster, ungated, targets") == 0


def test_the_owners_own_point_is_marked_and_every_point_says_its_figures() -> None:
    text = page(small_comparison())
    assert text.count("the targets that the owners set</span>") == 2  # all workloads, and the only one
    own = small_comparison().own("hpa")
    assert f"the HPA alone, targets as the owner set them: {own.pod_hours:.1f} pod-hours" in text


def test_names_cannot_end_the_data_of_a_plot() -> None:
    plot = Plot("t", (), (), "u", [Line([(0, 0)], "ours")], hover={"series": ["</script><script>"]})
    assert plot.html().count("<script") == 1
