"""The policy that each workload gets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from forecaster.domain.event import MAX_EVENTS
from forecaster.domain.layers import PAUSED_POLICY, ClusterPolicies, Layer, merged
from forecaster.domain.policies import CHANGES_EACH, Policies, matches
from forecaster.domain.policy import HorizontalPolicy, Policy, PolicySelector
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.workload import WorkloadId

WEB = WorkloadId("shop", "Deployment", "web")
DATABASE = WorkloadId("shop", "StatefulSet", "db")


def horizontal(**given: Any) -> dict[str, object]:
    return {"horizontal": given}


def test_without_overrides_everybody_has_the_defaults() -> None:
    assert Policies(Policy()).of(WEB) == Policy()


def test_an_override_changes_what_it_names_and_nothing_else() -> None:
    policies = Policies(Policy(), ((PolicySelector(name="web"), horizontal(quantile=0.95)),))
    assert policies.of(WEB) == Policy(horizontal=HorizontalPolicy(quantile=0.95))
    assert policies.of(DATABASE) == Policy()


def test_overrides_add_up_and_the_later_one_wins() -> None:
    policies = Policies(
        Policy(),
        (
            (PolicySelector(namespace="shop"), horizontal(quantile=0.9, max_replicas=50)),
            (PolicySelector(kind="Deployment"), horizontal(quantile=0.95)),
        ),
    )
    assert policies.of(WEB).horizontal == HorizontalPolicy(quantile=0.95, max_replicas=50)
    assert policies.of(DATABASE).horizontal == HorizontalPolicy(quantile=0.9, max_replicas=50)


def test_an_override_of_none_takes_a_default_away() -> None:
    policies = Policies(
        Policy(horizontal=HorizontalPolicy(max_replicas=9)),
        ((PolicySelector(name="web"), horizontal(max_replicas=None)),),
    )
    assert policies.of(WEB).horizontal.max_replicas is None


def test_workloads_with_the_same_overrides_share_one_policy() -> None:
    policies = Policies(Policy(), ((PolicySelector(namespace="shop"), horizontal(quantile=0.9)),))
    assert policies.of(WEB) is policies.of(DATABASE)


@pytest.mark.parametrize(
    "selector",
    [PolicySelector(), PolicySelector(namespace="shop"), PolicySelector(namespace="sh*", name="w?b")],
    ids=str,
)
def test_a_selector_means_a_workload_when_all_three_patterns_match(selector: PolicySelector) -> None:
    assert matches(selector, WEB)


@pytest.mark.parametrize(
    "selector", [PolicySelector(namespace="shop", name="db"), PolicySelector(kind="deployment")], ids=str
)
def test_a_selector_means_nobody_else(selector: PolicySelector) -> None:
    assert not matches(selector, WEB)


def test_merging_changes_neither_side() -> None:
    base, over = {"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 9}}
    assert merged(base, over) == {"a": {"b": 9, "c": 2}, "d": 3}
    assert (base, over) == ({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 9}})


class TestPolicy:
    @pytest.mark.parametrize(
        "given",
        [
            {"quantile": 1.0},
            {"quantile": float("nan")},
            {"lead_time": "0s"},
            {"window": "-1m"},
            {"min_replicas": -1},
            {"min_replicas": 0},
            {"min_replicas": 0, "sizing": "newsvendor"},
            {"quantile": 0},
            {"window": "-3m"},
            {"lead_time": "13h"},
            {
                "events": [
                    {"name": "sale", "replicas": 5, "cron": "0 8 * * *", "duration": "1h", "time_zone": "Mars/Olympus"}
                ]
            },
            {"min_replicas": 5, "max_replicas": 4},
            {"cpu_utilization": 0.001},
            {"requests_per_pod": float("inf")},
            {"requests_per_pod": 1e-9},
            {"tolerance": 1.0},
            {"scale_down_stabilization": "2h"},
            {"replicas": 3},
        ],
        ids=str,
    )
    def test_of_replicas_refuses_what_makes_no_sense(self, given: dict[str, object]) -> None:
        with pytest.raises(ValidationError):
            HorizontalPolicy.model_validate(given)

    @pytest.mark.parametrize(
        "given",
        [
            {"cpu_quantile": 0.0},
            {"memory_quantile": 1.1},
            {"margin": -0.1},
            {"memory_limit": "double"},
            {"cpu_limit": "request"},
            {"min_cpu": 0.0},
            {"min_memory": float("inf")},
        ],
        ids=str,
    )
    def test_of_sizes_refuses_what_makes_no_sense(self, given: dict[str, object]) -> None:
        with pytest.raises(ValidationError):
            VerticalPolicy.model_validate(given)

    def test_reads_durations_as_text(self) -> None:
        assert HorizontalPolicy.model_validate({"lead_time": "4m30s"}).lead_time == timedelta(minutes=4.5)

    def test_is_frozen(self) -> None:
        with pytest.raises(ValidationError, match="frozen"):
            Policy().min_history = timedelta(hours=2)  # type: ignore[misc]


def test_the_mode_that_an_hpa_is_annotated_with_stands_over_overrides_until_it_is_gone() -> None:
    policies = Policies(Policy(), ((PolicySelector(name="web"), {"mode": "publish", **horizontal(quantile=0.95)}),))
    before = policies.of(WEB)
    policies.annotate({WEB: "floor"})
    assert policies.of(WEB).mode == "floor"
    assert policies.of(WEB).horizontal.quantile == 0.95
    assert policies.of(DATABASE).mode == "observe"
    policies.annotate({})
    assert policies.of(WEB) is before


class TestWhatIsStatedOfAWorkloadAndChangesAllTheTime:
    """Whoever may write an object may write another one each second; each change costs the cycle of everybody."""

    def states(self, turn: int, *more: Layer) -> ClusterPolicies:
        return ClusterPolicies(own={WEB: (Layer("its object", horizontal(min_replicas=turn + 1)), *more)})

    def test_is_taken_over_ten_times_in_a_row_then_once_in_ten_cycles_while_others_are_not_touched(self) -> None:
        policies, taken = Policies(Policy()), []
        for turn in range(60):
            policies.take_over(self.states(turn))
            taken.append(policies.of(WEB).horizontal.min_replicas == turn + 1)
            assert policies.of(DATABASE) == Policy()
        assert all(taken[:9])
        assert sum(taken[20:]) == 4

    def test_has_its_last_word_when_it_rests(self) -> None:
        policies = Policies(Policy())
        for turn in range(30):
            policies.take_over(self.states(turn))
        for _ in range(CHANGES_EACH):
            policies.take_over(self.states(77))
        assert policies.of(WEB).horizontal.min_replicas == 78
        assert policies.refused(WEB) == []

    def test_leaves_nothing_behind(self) -> None:
        """The combinations once were all kept: 10 KB a change, without end."""
        policies = Policies(Policy())
        for turn in range(200):
            policies.take_over(self.states(turn))
            policies.of(WEB)
            policies.of(DATABASE)
        assert len(policies.built) <= 5
        assert policies.of(WEB).horizontal.min_replicas != 1

    def test_says_that_it_waits(self) -> None:
        policies = Policies(Policy())
        refusals = []
        for turn in range(20):
            policies.take_over(self.states(turn))
            refusals += [(turn, *refusal) for refusal in policies.refused(WEB)]
        assert refusals
        assert all(layer == self.states(turn).own[WEB][0] for turn, layer, _ in refusals)
        assert all("once in 10 cycles" in why for *_, why in refusals)

    def test_waits_for_no_turn_to_be_paused(self) -> None:
        policies, pause = Policies(Policy(mode="floor")), Layer("a pause", PAUSED_POLICY)
        for turn in range(15):
            policies.take_over(self.states(turn))
        for turn in range(15, 18):
            policies.take_over(self.states(turn, pause))
            assert (policies.of(WEB).mode, len(policies.layers(WEB))) == ("observe", 2)


class TestEventsOfANamespace:
    """21 workloads of one namespace state fifty events each; a namespace may have a thousand."""

    FIFTY = tuple(
        {"name": f"e{number}", "replicas": 3, "cron": f"{number} 8 * * *", "duration": "1h"}
        for number in range(MAX_EVENTS)
    )
    IDS = tuple(WorkloadId("shop", "Deployment", f"web-{number:02}") for number in range(21))

    def states(self, *ids: WorkloadId) -> ClusterPolicies:
        stated = horizontal(events=list(self.FIFTY), min_replicas=2)
        return ClusterPolicies(own={id_: (Layer(f"the object of {id_.name}", stated),) for id_ in ids})

    def test_beyond_the_bound_have_no_effect_and_that_is_said_of_their_workloads_alone(self) -> None:
        policies, other = Policies(Policy()), WorkloadId("till", "Deployment", "web-99")
        policies.take_over(self.states(*self.IDS, other))
        counts = [len(policies.of(id_).horizontal.events) for id_ in (*self.IDS, other)]
        assert counts == [MAX_EVENTS] * 20 + [0, MAX_EVENTS]
        assert policies.of(self.IDS[-1]).horizontal.min_replicas == 2
        ((layer, why),) = policies.refused(self.IDS[-1])
        assert (layer.origin, "more than 1,000 events" in why) == ("the object of web-20", True)
        assert not any(map(policies.refused, [*self.IDS[:-1], other]))

    def test_count_again_once_others_are_gone(self) -> None:
        policies = Policies(Policy())
        policies.take_over(self.states(*self.IDS))
        policies.of(self.IDS[-1])
        policies.take_over(self.states(*self.IDS[1:]))
        assert len(policies.of(self.IDS[-1]).horizontal.events) == MAX_EVENTS
        assert policies.refused(self.IDS[-1]) == []
