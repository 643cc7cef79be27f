"""Time the HPA's arithmetic: `python benchmarks/hpa.py [--rounds N] [--json]`.

The case: one External AverageValue metric and one Resource metric over 20 pods, `behavior` with two policies in each
direction, 21 recommendations of history; everything `reconcile` does, conditions and state included. Figures are
processor time of one core. Every round times the passes and, beside them, a fixed loop of plain Python; the quotient
of the two travels better between machines and busy moments than microseconds do. Promises: 60 µs a pass, 10,000 in a
second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from forecaster.hpa.behavior import Behavior, ScalingPolicy, ScalingRules
from forecaster.hpa.limits import ReplicaBounds, limit
from forecaster.hpa.observation import Observation, ScaleSubresource
from forecaster.hpa.pods import HpaPod, PodContainer, ReadyCondition
from forecaster.hpa.proposals import DEFAULT_TOLERANCE, from_utilization, per_pod_value
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.samples import ContainerUsage, ExternalValues, PodMetrics, read_pod_usage
from forecaster.hpa.spec import CrossVersionObjectReference, HpaMetricTarget, HpaSpec, MetricSpec
from forecaster.hpa.state import NEW_HPA, HpaState

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PODS = 20
HISTORY = 25
FLEET = 10_000
PASS_PROMISE_US, FLEET_PROMISE_S = 60.0, 1.0


def policies() -> tuple[ScalingPolicy, ScalingPolicy]:
    return ScalingPolicy("Pods", 4, MINUTE), ScalingPolicy("Percent", 100, MINUTE)


BEHAVIOR = Behavior(ScalingRules(policies(), timedelta()), ScalingRules(policies()))
SPEC = HpaSpec(
    CrossVersionObjectReference("Deployment", "shop", "apps/v1"),
    100,
    (
        MetricSpec("External", "queue", HpaMetricTarget("AverageValue", average_value_milli=30_000)),
        MetricSpec("Resource", "cpu", HpaMetricTarget("Utilization", average_utilization_percent=60)),
    ),
    1,
    BEHAVIOR,
)


def pod(name: str) -> HpaPod:
    return HpaPod(
        name,
        start_time=NOW - 60 * MINUTE,
        ready=ReadyCondition("True", NOW - 59 * MINUTE),
        containers=(PodContainer("app", {"cpu": 500}),),
        labels={"app": "shop"},
    )


def items(load: int) -> list[PodMetrics]:
    used = {"cpu": 300 + load % 7, "memory": 2**30}
    window = timedelta(seconds=30)
    return [PodMetrics(f"shop-{n}", NOW, window, (ContainerUsage("app", used),)) for n in range(PODS)]


def observation(load: int) -> Observation:
    answers = (ExternalValues((600_000 + load,)), read_pod_usage(items(load), "cpu"))
    return Observation(ScaleSubresource(PODS, PODS, "app=shop"), [pod(f"shop-{n}") for n in range(PODS)], answers)


def settled(observed: Observation) -> tuple[HpaState, datetime]:
    """A state with a full window of history."""
    state, now = NEW_HPA, NOW
    for _ in range(HISTORY):
        state, now = reconcile(SPEC, observed, state, now).state, now + timedelta(seconds=15)
    return state, now


def microseconds(work: Callable[[], object], times: int) -> float:
    begin = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begin) / times * 1e6


def yardstick() -> int:
    """A fixed piece of plain Python, about a pass long."""
    total, remainders = 0, {}
    for number in range(400):
        remainders[number % 20] = total
        total += number * 3 // 2
    return total


def measure(rounds: int) -> dict[str, float]:
    observed = observation(0)
    state, now = settled(observed)
    bounds, listed = ReplicaBounds(1, 100), items(0)
    work: dict[str, Callable[[], object]] = {
        "yardstick": yardstick,
        "pass": lambda: reconcile(SPEC, observed, state, now),
        "read_20_pods": lambda: read_pod_usage(listed, "cpu"),
        "from_utilization": lambda: from_utilization(6000, 10_000, 60, 20, 20, DEFAULT_TOLERANCE),
        "per_pod_value": lambda: per_pod_value(650_000, 30_000, 20, DEFAULT_TOLERANCE),
        "limit": lambda: limit(22, 20, bounds, BEHAVIOR, state.history or (), now),
    }
    timed: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, call in work.items():
            timed[name].append(microseconds(call, 500))
    medians = {f"{name}_us": statistics.median(times) for name, times in timed.items()}
    pairs = zip(timed["pass"], timed["yardstick"], strict=True)
    return medians | {
        "pass_us_best": min(timed["pass"]),
        "pass_per_yardstick": statistics.median(own / other for own, other in pairs),
    }


def fleet() -> dict[str, float]:
    """10,000 HPAs with states of their own; the observations are shared in sevens, as their making is not measured."""
    observations = [observation(load) for load in range(7)]
    settled_states = [settled(observed) for observed in observations]
    cases = [(observations[n % 7], *settled_states[n % 7]) for n in range(FLEET)]
    begin = time.process_time()
    for observed, state, now in cases:
        reconcile(SPEC, observed, state, now)
    return {"fleet_of_10000_s": time.process_time() - begin}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options.rounds) | fleet()
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    for name, figure in figures.items():
        print(f"{name:22} {figure:10.3f}")
    within = figures["pass_us"] <= PASS_PROMISE_US and figures["fleet_of_10000_s"] <= FLEET_PROMISE_S
    print(
        f"promises: {PASS_PROMISE_US:g} µs a pass, {FLEET_PROMISE_S:g} s for {FLEET}: {'kept' if within else 'BROKEN'}"
    )


if __name__ == "__main__":
    main()
