"""Lead times are measured on every workload, used where a policy states none, and kept over a restart."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from forecaster.cycle.lead_times import LeadTimes
from forecaster.cycle.observed import Observed
from forecaster.cycle.rows import resolved
from forecaster.cycle.targets import Targets
from forecaster.domain.decision import Reason
from forecaster.domain.layers import ClusterPolicies, Layer, OwnerCeiling
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy, PolicySelector
from forecaster.domain.signal import CPU
from forecaster.domain.window import DAY, MINUTE, Inventory, StartedPod
from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.horizontal.sentences import explanation
from forecaster.store.state import ObservedFile
from tests.support.builders import NOON, after, minutes, policy, workload
from tests.support.fakes import CycleOnFakes, Load, load, named, nobody_answers

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.domain.workload import Workload

WEB, CART = workload("web"), workload("cart")
STATED = Policies(Policy())
OWN = Policies(Policy(), ((PolicySelector(name="cart"), {"horizontal": {"lead_time": "7m"}}),))


def pods(workload: Workload, replicas: int, ready: int) -> Workload:
    return replace(workload, replicas=replicas, ready_replicas=ready)


def scaled(lead_times: LeadTimes, *workloads: Workload, ready_after: int, times: int, first: int = 0) -> int:
    """Add a pod to each workload `times` times, ready `ready_after` minutes later; return the minute that follows."""
    minute, count = first, 4
    lead_times.observe(Targets(Inventory(after(minute), workloads)), after(minute))
    for _ in range(times):
        count += 1
        for wait in range(ready_after + 1):
            minute += 1
            ready = count if wait == ready_after else count - 1
            observed = tuple(pods(workload, count, ready) for workload in workloads)
            lead_times.observe(Targets(Inventory(after(minute), observed)), after(minute))
    return minute + 1


def test_the_first_cycles_assume_a_lead_time_and_say_so() -> None:
    lead_times = LeadTimes()
    scaled(lead_times, WEB, ready_after=6, times=2)
    assert Observed(lead_times).in_force(STATED) is STATED
    assert lead_times.of(WEB.id, Policy().horizontal) == (minutes(3), "assumed; 2 of 5 scale-ups seen")


def test_what_was_measured_is_in_force_for_everybody_who_reads_the_policy() -> None:
    lead_times = LeadTimes()
    scaled(lead_times, WEB, ready_after=6, times=5)
    assert resolved(WEB, Observed(lead_times).in_force(STATED).of(WEB.id)).lead_time == minutes(8)
    assert lead_times.of(WEB.id, Policy().horizontal).origin == "P90 of 5 scale-ups, with scrape, cycle and sync"


def started(lead_times: LeadTimes, minute: int, *seconds: int, images: dict[WorkloadId, str] | None = None) -> None:
    """Run a cycle before which pods of `web` became ready after these start-up times."""
    started_pods = {WEB.id: tuple(StartedPod(timedelta(seconds=took)) for took in seconds)}
    lead_times.observe(
        Targets(Inventory(after(minute), (WEB,), started=started_pods, images=images or {})), after(minute)
    )


def test_images_that_an_owner_renames_all_the_time_are_forgotten() -> None:
    lead_times = LeadTimes()
    for minute in range(2000):
        started(lead_times, minute, 30, images={WEB.id: f"registry/shop/web-{minute}"})
    assert len(lead_times.images) < 1100
    assert "shop registry/shop/web-1999" in lead_times.images


def test_pods_that_were_timed_count_before_what_counts_of_replicas_show() -> None:
    lead_times = LeadTimes()
    scaled(lead_times, WEB, ready_after=6, times=5)
    started(lead_times, 60, 20, 25, 30, 40)
    assert lead_times.of(WEB.id, Policy().horizontal).value == minutes(8)  # four pods are too few
    started(lead_times, 61, 35)
    origin = "P90 of 5 pods from creation to ready, without waiting for a node; cycle and sync"
    assert lead_times.of(WEB.id, Policy().horizontal) == (minutes(2), origin)
    assert resolved(WEB, Observed(lead_times).in_force(STATED).of(WEB.id)).lead_time == minutes(2)
    assert lead_times.of(WEB.id, Policy(horizontal={"lead_time": "7m"}).horizontal).value == minutes(7)


def test_what_was_measured_lifts_no_owner_above_the_ceilings_of_the_platform() -> None:
    """The policies in force keep the ceilings when a measured lead time changes them."""
    lead_times = LeadTimes()
    scaled(lead_times, CART, ready_after=6, times=5)
    owners = MappingProxyType({WEB.id: (Layer("PredictiveAutoscaler web", {"horizontal": {"max_replicas": 51}}),)})
    ceiling = OwnerCeiling(namespace="*", replicas=50)
    stated = Policies(Policy(), ceilings=(ceiling,), cluster=ClusterPolicies(own=owners))
    in_force = Observed(lead_times).in_force(stated)
    assert in_force is not stated
    assert in_force.of(WEB.id).horizontal.max_replicas is None
    assert [why for _, why in stated.refused(WEB.id)]


def test_policies_that_none_has_any_more_are_forgotten() -> None:
    """An owner who changes a number again and again leaves no policy behind."""
    lead_times = LeadTimes()
    scaled(lead_times, WEB, ready_after=6, times=5)
    observed, stated = Observed(lead_times), Policies(Policy())
    for number in range(1, 1200):
        layer = Layer("PredictiveAutoscaler web", {"horizontal": {"max_replicas": number}})
        stated.cluster = ClusterPolicies(own=MappingProxyType({WEB.id: (layer,)}))
        stated.chosen.clear()
        in_force = observed.in_force(stated)
        assert in_force.of(WEB.id).horizontal.max_replicas == number
        in_force.forget_others([WEB.id])
    assert len(observed.policies) + len(stated.built) < 1200


def test_a_clock_that_was_set_back_makes_no_start_up_of_less_than_nothing() -> None:
    lead_times = LeadTimes()
    for minute, ready in ((60, 4), (61, 4), (0, 5)):
        observed = (pods(WEB, 4 if minute == 60 else 5, ready),)
        lead_times.observe(Targets(Inventory(after(minute), observed)), after(minute))
    assert lead_times.watches[WEB.id].took == ()


SHARED = {WEB.id: "registry/shop", CART.id: "registry/shop"}


def test_a_workload_without_start_ups_has_the_lead_time_of_its_image() -> None:
    lead_times = LeadTimes()
    started(lead_times, 1, *[200] * 5, images=SHARED)
    origin = "P90 of 5 pods with image registry/shop from creation to ready, without waiting for a node; cycle and sync"
    assert lead_times.of(CART.id, Policy().horizontal) == (minutes(5), origin)
    assert resolved(CART, Observed(lead_times).in_force(STATED).of(CART.id)).lead_time == minutes(5)
    assert lead_times.of(CART.id, Policy(horizontal={"lead_time": "7m"}).horizontal).value == minutes(7)
    scaled(lead_times, CART, ready_after=7, times=5, first=2)
    assert lead_times.of(CART.id, Policy().horizontal).origin.startswith("P90 of 5 scale-ups")


def test_slow_pods_of_another_namespace_with_the_same_image_do_not_count() -> None:
    """Five slow pods of a public image would otherwise set the lead time of everybody who runs it."""
    lead_times = LeadTimes()
    stranger = WorkloadId("strangers", "Deployment", "cart")
    started(lead_times, 1, *[800] * 5, images={WEB.id: "library/nginx", stranger: "library/nginx"})
    assert lead_times.of(stranger, Policy().horizontal).origin.startswith("assumed")


def test_few_pods_of_an_image_are_no_evidence_and_pods_of_another_image_neither() -> None:
    lead_times = LeadTimes()
    started(lead_times, 1, *[200] * 4, images=SHARED)
    assert lead_times.of(CART.id, Policy().horizontal).origin.startswith("assumed")
    started(lead_times, 2, 200, images=SHARED | {CART.id: "registry/cart"})
    assert lead_times.of(CART.id, Policy().horizontal).origin.startswith("assumed")


def test_the_lead_times_of_images_outlive_the_process_and_go_with_their_last_workload(tmp_path: Path) -> None:
    lead_times = LeadTimes()
    started(lead_times, 1, *[200] * 5, images=SHARED)
    ObservedFile(tmp_path / "observed.json", Observed(lead_times)).save()
    restarted = Observed()
    assert ObservedFile(tmp_path / "observed.json", restarted).load()
    started(restarted.lead_times, 2, images=SHARED)
    assert restarted.lead_times.of(CART.id, Policy().horizontal).value == minutes(5)
    restarted.lead_times.forget_others({CART.id})
    assert restarted.lead_times.images
    restarted.lead_times.forget_others(set())
    assert not restarted.lead_times.images


def test_a_rollout_that_starts_slower_moves_the_lead_time_of_its_pods() -> None:
    lead_times = LeadTimes()
    started(lead_times, 1, *[30] * 10)
    for minute in range(2, 6):
        started(lead_times, minute, *[200] * 10)
    assert lead_times.of(WEB.id, Policy().horizontal).value == minutes(5)  # 200 s, a cycle and a sync


def test_what_was_measured_on_pods_outlives_the_process_and_goes_with_its_workload(tmp_path: Path) -> None:
    lead_times = LeadTimes()
    started(lead_times, 1, *[50] * 9)
    before = lead_times.of(WEB.id, Policy().horizontal)
    ObservedFile(tmp_path / "observed.json", Observed(lead_times)).save()
    restarted = Observed()
    assert ObservedFile(tmp_path / "observed.json", restarted).load()
    assert restarted.lead_times.of(WEB.id, Policy().horizontal) == before
    restarted.lead_times.forget_others({CART.id})
    assert restarted.lead_times.buckets() == {}


def test_a_stated_lead_time_holds_for_the_workload_of_its_policy_alone() -> None:
    lead_times = LeadTimes()
    scaled(lead_times, WEB, CART, ready_after=6, times=5)
    in_force = Observed(lead_times).in_force(OWN)
    assert [resolved(workload, in_force.of(workload.id)).lead_time for workload in (WEB, CART)] == [
        minutes(8),
        minutes(7),
    ]
    assert lead_times.of(CART.id, in_force.stated(CART.id).horizontal).origin == "configured"


def test_workloads_with_one_policy_and_one_lead_time_share_the_policy() -> None:
    lead_times = LeadTimes()
    scaled(lead_times, WEB, CART, ready_after=6, times=5)
    in_force = Observed(lead_times).in_force(STATED)
    assert in_force.of(WEB.id) is in_force.of(CART.id)


def test_a_source_that_was_down_for_long_leaves_nothing_half_measured() -> None:
    lead_times = LeadTimes()
    scaled(lead_times, WEB, ready_after=6, times=4)
    waiting = pods(WEB, 20, 8)
    lead_times.observe(Targets(Inventory(after(40), (waiting,))), after(40))
    lead_times.observe(Targets(Inventory(after(41), (waiting,)), "down"), after(41))
    lead_times.observe(Targets(Inventory(after(99), (pods(WEB, 20, 20),))), after(99))
    assert len(lead_times.watches[WEB.id].took) == 4


def test_what_was_measured_of_others_is_given_up_when_rows_are_compacted() -> None:
    lead_times = LeadTimes()
    minute = scaled(lead_times, WEB, CART, ready_after=1, times=1)
    lead_times.observe(Targets(Inventory(after(minute), (WEB,))), after(minute))
    assert set(lead_times.watches) == {WEB.id, CART.id}
    lead_times.forget_others({WEB.id})
    assert set(lead_times.watches) == {WEB.id}


def test_a_restart_knows_what_was_measured_before_and_times_nothing_across_it(tmp_path: Path) -> None:
    before, later = Observed(), Observed()
    scaled(before.lead_times, WEB, ready_after=6, times=5)
    before.lead_times.observe(Targets(Inventory(after(36), (pods(WEB, 30, 9),))), after(36))
    ObservedFile(tmp_path / "observed.json", before).save()
    assert ObservedFile(tmp_path / "observed.json", later).load()
    later.lead_times.observe(Targets(Inventory(after(38), (pods(WEB, 30, 30),))), after(38))
    assert later.lead_times.watches[WEB.id].took == before.lead_times.watches[WEB.id].took
    assert resolved(WEB, later.in_force(STATED).of(WEB.id)).lead_time == minutes(8)


def landed(lead_times: LeadTimes, minute: int, **seconds: list[int]) -> None:
    """Run a cycle before which new pods of the web started on each node pool, in these seconds."""
    pods = tuple(StartedPod(timedelta(seconds=each), pool) for pool, times in seconds.items() for each in times)
    inventory = Inventory(after(minute), (WEB,), started={WEB.id: pods})
    lead_times.observe(Targets(inventory), after(minute))


class TestNodePools:
    SLOWER = (
        "P90 of 5 pods on node pool gpu, the slowest of 2, from creation to ready, without waiting for a node; "
        "cycle and sync"
    )

    def test_the_slowest_pool_on_which_new_pods_land_counts(self) -> None:
        lead_times = LeadTimes()
        landed(lead_times, 1, spot=[20] * 45, gpu=[280] * 4)
        landed(lead_times, 2, gpu=[280])
        assert lead_times.of(WEB.id, Policy().horizontal) == (minutes(6), self.SLOWER)
        assert lead_times.buckets()[WEB.id] == minutes(6)
        assert lead_times.of(WEB.id, Policy.model_validate({"horizontal": {"lead_time": "4m"}}).horizontal).value == (
            minutes(4)
        )

    def test_pools_that_do_not_differ_are_not_told_apart(self) -> None:
        lead_times = LeadTimes()
        landed(lead_times, 1, spot=[20] * 6, gpu=[24] * 6)
        lead_time = lead_times.of(WEB.id, Policy().horizontal)
        assert lead_time.origin.startswith("P90 of 12 pods from creation to ready")

    def test_few_pods_of_a_pool_are_no_evidence_about_it(self) -> None:
        lead_times = LeadTimes()
        landed(lead_times, 1, spot=[20] * 45, gpu=[280] * 4)
        assert lead_times.of(WEB.id, Policy().horizontal).value == minutes(2)

    def test_a_pool_on_which_none_lands_any_more_is_forgotten(self) -> None:
        lead_times = LeadTimes()
        landed(lead_times, 1, gpu=[280] * 6, spot=[20] * 20)
        for minute in range(2, 8):
            landed(lead_times, minute, spot=[20] * 20)
        assert list(lead_times.pools[WEB.id].by_pool) == ["spot"]
        assert lead_times.of(WEB.id, Policy().horizontal).value == minutes(2)

    def test_pools_outlive_the_process_and_go_with_their_workload(self, tmp_path: Path) -> None:
        before = Observed()
        landed(before.lead_times, 1, spot=[20] * 45, gpu=[280] * 5)
        ObservedFile(tmp_path / "observed.json", before).save()
        later = Observed()
        assert ObservedFile(tmp_path / "observed.json", later).load()
        assert later.lead_times.of(WEB.id, Policy().horizontal) == (minutes(6), self.SLOWER)
        assert later.in_force(STATED).of(WEB.id).horizontal.lead_time == minutes(6)
        later.lead_times.forget_others({CART.id})
        assert later.lead_times.pools == {}


def test_a_first_start_knows_nothing_and_a_damaged_file_is_refused(tmp_path: Path) -> None:
    file = ObservedFile(tmp_path / "observed.json", Observed())
    assert not file.load()
    file.path.write_text('{"lead_times": [{"id": 7}]}')
    with pytest.raises(StoreError, match="damaged"):
        file.load()


class TestInTheCycle:
    def stage(self, ready_after: int, **horizontal: object) -> CycleOnFakes:
        """A web scaled up every half hour, whose pods take `ready_after` minutes, and a cart that never is."""
        stage = CycleOnFakes(load("web"), load("cart"), policies=Policies(policy(**horizontal)))
        for minute in range(170):
            count = 4 + minute // 30
            fresh = minute >= 30 and minute % 30 < ready_after
            web = pods(WEB, count, count - 1 if fresh else count)
            stage.source.loads[0] = Load(web, stage.source.loads[0].demand)
            stage.run(after(minute))
        return stage

    def test_the_peak_is_looked_for_after_the_measured_lead_time_and_explain_says_so(self) -> None:
        stage = self.stage(6)
        outcome = stage.run(after(170))
        web, cart = named(outcome, "web"), named(outcome, "cart")
        begins = [record.signals[0].forecast.begin - after(170) for record in (web, cart) if record.signals[0].forecast]
        assert begins == [minutes(8), minutes(3)]
        assert "  lead time 8m: P90 of 5 scale-ups, with scrape, cycle and sync" in explanation(web)
        assert "  lead time 3m: assumed; 0 of 5 scale-ups seen" in explanation(cart)

    def test_scores_judge_each_by_its_own_window(self) -> None:
        stage = self.stage(6)
        stage.run_minutes(170, 192)
        late = [score for score in stage.ledger.scores if score.made_at >= after(170)]
        waits = {score.id.name: score.matured_at - score.made_at for score in late}
        assert waits == {"web": minutes(11), "cart": minutes(6)}

    def test_what_is_stated_is_not_measured_away(self) -> None:
        web = named(self.stage(6, lead_time=minutes(4)).run(after(170)), "web")
        assert web.lead_time == (minutes(4), "configured")

    def test_a_lead_time_longer_than_the_minutes_that_are_kept_is_forecast_all_the_same(self) -> None:
        stage = CycleOnFakes(load("web"), policies=Policies(policy(lead_time=minutes(360))))
        web = named(stage.run(), "web")
        assert web.replicas.reason is not Reason.FALLBACK
        assert web.signals[0].forecast.until == NOON + minutes(363)

    def test_while_the_source_is_down_nothing_is_measured(self) -> None:
        stage = CycleOnFakes(load("web"))
        stage.run()
        stage.source.down = nobody_answers()
        stage.run_minutes(1, 10)
        assert stage.cycle.decider.observed.lead_times.observed_at == after(0)

    def test_a_long_lead_time_does_not_give_back_what_the_nearer_peak_needs(self) -> None:
        """Every day demand is eight cores for a quarter of an hour from 13:00, and pods take an hour."""
        daily = {CPU: lambda at: 8.0 if 60 <= (at - NOON) % DAY // MINUTE <= 75 else 2.0}
        policies = Policies(policy(lead_time=minutes(60), scale_down_stabilization=minutes(5), gate=False))
        stage = CycleOnFakes(Load(WEB, daily), policies=policies, model="seasonal-naive-day")
        counts = [named(outcome, "web").recommended_replicas for outcome in stage.run_minutes(0, 74)]
        assert min(counts) == max(counts) == 16
