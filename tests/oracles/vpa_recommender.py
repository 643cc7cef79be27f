"""Target and bounds of each container of a VPA from its histograms (spec/vertical.md §1.10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.vertical.recommenders.vpa import LOWER, UPPER, VPA_DEFAULTS, ConfidenceRule, VpaSettings
from tests.oracles.vpa_amounts import amount_of, at_least, of_cores, scaled, with_confidence, with_margin
from tests.oracles.vpa_histograms import of_duration

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tests.oracles.vpa_samples import AggregateState

CPU = "cpu"
MEMORY = "memory"
BOTH = (CPU, MEMORY)
Amounts = dict[str, int]
"""Millicores under `cpu`, bytes under `memory`."""


@dataclass(frozen=True, slots=True)
class ContainerAmounts:
    """Recommendation for one container, before policies."""

    target: Amounts
    lower: Amounts
    upper: Amounts


def recommend(
    states: Mapping[str, AggregateState],
    settings: VpaSettings = VPA_DEFAULTS,
    controlled: Mapping[str, Collection[str]] | None = None,
) -> dict[str, ContainerAmounts]:
    """One recommendation per container, by name; `controlled` limits the resources of some of them."""
    least = pod_minimum(len(states), settings)
    chosen = controlled or {}
    return {name: _one(states[name], least, settings, chosen.get(name, BOTH)) for name in sorted(states)}


def pod_minimum(containers: int, settings: VpaSettings = VPA_DEFAULTS) -> Amounts:
    """The least of one container: the pod's, divided by the number of its containers."""
    share = 1.0 / max(containers, 1)
    return {
        CPU: scaled(of_cores(settings.pod_min_cpu_millicores * 0.001), share),
        MEMORY: scaled(amount_of(settings.pod_min_memory_mb * 1024 * 1024), share),
    }


def floored(amounts: Amounts, least: Amounts, controlled: Collection[str] = BOTH) -> Amounts:
    """The last two steps: the floor, and only the resources that the policy controls."""
    return {name: at_least(amount, least[name]) for name, amount in amounts.items() if name in controlled}


def _one(state: AggregateState, least: Amounts, settings: VpaSettings, controlled: Collection[str]) -> ContainerAmounts:
    confidence = state.confidence(of_duration(settings.confidence_interval))

    def at(percentile: float) -> Amounts:
        cpu, memory = of_cores(state.cpu.percentile(percentile)), amount_of(state.memory.percentile(percentile))
        return {CPU: with_margin(cpu, settings.margin), MEMORY: with_margin(memory, settings.margin)}

    def bound(percentile: float, rule: ConfidenceRule) -> Amounts:
        return {name: with_confidence(amount, rule, confidence) for name, amount in at(percentile).items()}

    return ContainerAmounts(
        floored(at(settings.target_percentile), least, controlled),
        floored(bound(settings.lower_percentile, LOWER), least, controlled),
        floored(bound(settings.upper_percentile, UPPER), least, controlled),
    )
