"""Answers to the suites of the VPA's recommender: histograms, samples, estimators, recommendations."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.domain.quantity import milli_quantity
from forecaster.vertical.recommenders.vpa import (
    CPU_BUCKETS,
    MEMORY_BUCKETS,
    ConfidenceRule,
    ExponentialBuckets,
    VpaPanel,
    VpaSettings,
)
from tests.oracles import vpa_amounts
from tests.oracles.vpa_amounts import at_least, with_confidence, with_margin
from tests.oracles.vpa_capping import NO_POLICY
from tests.oracles.vpa_checkpoints import (
    CheckpointError,
    HistogramCheckpoint,
    load,
    load_decaying,
    loaded,
    save,
    save_decaying,
    saved,
)
from tests.oracles.vpa_histograms import (
    SECOND,
    UNSET,
    Buckets,
    DecayingHistogram,
    Histogram,
    LinearBuckets,
    of_datetime,
    of_unix,
    to_datetime,
)
from tests.oracles.vpa_recommender import BOTH, Amounts, ContainerAmounts, floored, pod_minimum, recommend
from tests.oracles.vpa_samples import AggregateState, ContainerState, MemoryPeaks, merged
from tests.vectors.vertical_comparison import Json, Suite, each, exact, listed, quantities, relative

if TYPE_CHECKING:
    from collections.abc import Callable


def buckets(scheme: Json) -> Buckets:
    if scheme["kind"] == "linear":
        return LinearBuckets(scheme["maxValue"], scheme["bucketSize"], scheme["epsilon"])
    if scheme["kind"] == "exponential":
        return ExponentialBuckets(scheme["maxValue"], scheme["firstBucketSize"], scheme["ratio"], scheme["epsilon"])
    return {"cpuDefault": CPU_BUCKETS, "memoryDefault": MEMORY_BUCKETS}[scheme["kind"]]


def options(given: Json) -> float:
    scheme = buckets(given["scheme"])
    match given["query"]:
        case "numBuckets":
            return scheme.count
        case "bucketStart":
            return scheme.start(given["argument"])
        case "findBucket":
            return scheme.find(given["argument"])
    raise ValueError(given["query"])


# --- histograms ------------------------------------------------------------------------------------------------------


def plain_histogram(given: Json) -> list[Any]:
    return _run(Histogram(buckets(given["scheme"])), given, given["steps"])


def decaying_histogram(given: Json) -> list[Any]:
    return _run(_decaying(given), given, given["steps"])


def _decaying(given: Json) -> DecayingHistogram:
    return DecayingHistogram(buckets(given["scheme"]), round(given["halfLifeSeconds"] * SECOND))


def _run(histogram: Any, given: Json, steps: list[Json]) -> list[Any]:
    answers = []
    for step in steps:
        answer = _step(histogram, given, step)
        answers += [] if answer is None else [answer]
    return answers


def _step(histogram: Any, given: Json, step: Json) -> Any:
    at = (of_unix(step["t"]),) if "t" in step else ()
    match step["op"]:
        case "add":
            histogram.add(step["value"], step["weight"], *at)
        case "subtract":
            histogram.subtract(step["value"], step["weight"], *at)
        case "scale":
            histogram.scale(step["factor"])
        case "merge":
            histogram.merge(_other(histogram, given, step))
        case "percentile":
            return histogram.percentile(step["p"])
        case "isEmpty":
            return histogram.empty
        case "equals":
            return histogram.same_as(_other(histogram, given, step))
        case unknown:
            raise ValueError(unknown)
    return None


def _other(histogram: Any, given: Json, step: Json) -> Any:
    other = _decaying(given) if isinstance(histogram, DecayingHistogram) else Histogram(buckets(given["scheme"]))
    _run(other, given, step["other"])
    return other


def histogram_checkpoint(given: Json) -> Json:
    if "halfLifeSeconds" in given:
        return _decaying_checkpoint(given)
    histogram = Histogram(buckets(given["scheme"]))
    _run(histogram, given, given.get("steps") or [])
    match given["action"]:
        case "save":
            return _kept(save(histogram))
        case "load":
            return _loaded(histogram, given["checkpoint"])
        case "load-percentile":
            load(histogram, _checkpoint(given["checkpoint"]))
            return {"percentile": histogram.percentile(given["p"])}
        case "roundtrip-isEmpty":
            fresh = Histogram(histogram.buckets)
            load(fresh, save(histogram))
            return {"before": histogram.empty, "after": fresh.empty}
    raise ValueError(given["action"])


def _decaying_checkpoint(given: Json) -> Json:
    """A histogram whose samples carry instants: saved, and restored with the reference instant."""
    histogram = _decaying(given)
    _run(histogram, given, given.get("steps") or [])
    checkpoint = save_decaying(histogram)
    match given["action"]:
        case "save":
            return _kept(checkpoint)
        case "roundtrip-isEmpty":
            fresh = _decaying(given)
            load_decaying(fresh, checkpoint)
            return {"before": histogram.empty, "after": fresh.empty}
    raise ValueError(given["action"])


def _loaded(histogram: Histogram, checkpoint: Json | None) -> Json:
    try:
        load(histogram, _checkpoint(checkpoint))
    except CheckpointError:
        return {"error": True}
    weights = {str(bucket): weight for bucket, weight in enumerate(histogram.weights) if weight}
    return {"totalWeight": histogram.total, "bucketWeights": weights}


def _checkpoint(raw: Json | None) -> HistogramCheckpoint | None:
    if raw is None:
        return None
    return HistogramCheckpoint(raw["totalWeight"], {int(b): w for b, w in raw["bucketWeights"].items()})


def _kept(checkpoint: HistogramCheckpoint) -> Json:
    return {"totalWeight": checkpoint.total, "bucketWeights": {str(b): w for b, w in checkpoint.weights.items()}}


# --- amounts and estimators ------------------------------------------------------------------------------------------


def conversion(given: Json) -> Any:
    return _CONVERSIONS[given["function"]](given)


def _rounded(given: Json) -> Json:
    try:
        return {"amount": vpa_amounts.rounded_up(given["amount"], given["step"]), "error": False}
    except ValueError:
        return {"amount": given["amount"], "error": True}


def _resource_list(given: Json) -> Json:
    cpu = vpa_amounts.rounded_up(given["cpuMillicores"], given["roundCpuMillicores"])
    memory = vpa_amounts.rounded_up(given["memoryBytes"], given["roundMemoryBytes"])
    text = vpa_amounts.humanized(memory) if given["humanizeMemory"] else str(memory)
    return {"cpu": str(milli_quantity(cpu)), "memory": text}


_CONVERSIONS: dict[str, Callable[[Json], Any]] = {
    "amountFromFloat": lambda given: vpa_amounts.amount_of(given["value"]),
    "coresFromCpuAmount": lambda given: vpa_amounts.to_cores(given["millicores"]),
    "cpuAmountFromCores": lambda given: vpa_amounts.of_cores(given["cores"]),
    "humanizeMemory": lambda given: vpa_amounts.humanized(given["bytes"]),
    "memoryAmountFromBytes": lambda given: vpa_amounts.amount_of(given["bytes"]),
    "resourceList": _resource_list,
    "roundUpTo": _rounded,
    "scale": lambda given: vpa_amounts.scaled(given["amount"], given["factor"]),
}


def estimator(given: Json) -> Json:
    base = given.get("base")
    match given["estimator"]:
        case "percentile":
            return {"amount": _percentile(given)}
        case "confidence":
            confidence = _confidence(given)
            rule = ConfidenceRule(given["multiplier"], given["exponent"])
            return {"amount": with_confidence(base, rule, confidence), "confidence": confidence}
        case "margin":
            return {"amount": with_margin(base, given["marginFraction"])}
        case "min":
            return {"amount": at_least(base, given["minimum"])}
    raise ValueError(given["estimator"])


def _percentile(given: Json) -> int:
    histogram = Histogram(CPU_BUCKETS if given["resource"] == "cpu" else MEMORY_BUCKETS)
    for value, weight in given["samples"]:
        histogram.add(value, weight)
    value = histogram.percentile(given["percentile"])
    return vpa_amounts.of_cores(value) if given["resource"] == "cpu" else vpa_amounts.amount_of(value)


def _confidence(given: Json) -> float:
    state, samples = AggregateState(), given["cpuSamples"]
    for i in range(samples["count"]):
        state.add_cpu(1000, of_unix(1_700_000_000 + i * samples["stepSeconds"]))
    return state.confidence(round(given["confidenceIntervalSeconds"] * SECOND))


def _estimated(expected: Json, answered: Json) -> str:
    if "approx" in expected:
        near = math.isclose(expected["approx"], answered["amount"], rel_tol=expected["relativeError"])
        return "" if near else f"expected about {expected['approx']}, got {answered['amount']}"
    return listed(relative(1e-12))(expected, answered)


# --- samples of a container ------------------------------------------------------------------------------------------


@dataclass
class Recorder:
    """Keeps every addition and subtraction."""

    operations: list[Json] = field(default_factory=list)

    def add_cpu(self, millicores: int, at: int) -> None:
        self._keep("cpu", "add", vpa_amounts.to_cores(millicores), 0.1, at)

    def add_memory(self, memory: int, at: int) -> None:
        self._keep("memory", "add", float(memory), 1.0, at)

    def subtract_memory(self, memory: int, at: int) -> None:
        self._keep("memory", "subtract", float(memory), 1.0, at)

    def _keep(self, resource: str, operation: str, value: float, weight: float, at: int) -> None:
        text = to_datetime(at).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.operations.append({"resource": resource, "op": operation, "value": value, "weight": weight, "t": text})


def container_state(given: Json) -> Json:
    interval = timedelta(seconds=given["memoryAggregationIntervalSeconds"])
    rules = MemoryPeaks(interval, given["oomBumpUpRatio"], given["oomMinBumpUpBytes"])
    recorder = Recorder()
    state = ContainerState(recorder, rules)
    accepted = [_feed(state, event, of_datetime(datetime.fromisoformat(event["t"]))) for event in given["events"]]
    return {"accepted": accepted, "histogramOperations": recorder.operations}


def _feed(state: ContainerState, event: Json, at: int) -> bool:
    match event["kind"]:
        case "cpu":
            return state.add_cpu(event["millicores"], at)
        case "memory":
            return state.add_memory(event["bytes"], at)
        case "oom":
            return state.record_oom(event["requestBytes"], at)
    raise ValueError(event["kind"])


def aggregate_state(given: Json) -> Any:
    return _merged(given) if given["question"].lower().startswith("merge") else _of_one_state(given)


def _of_one_state(given: Json) -> Any:
    policy = given.get("policy") or {}
    gate = given.get("perVpaConfigGate", False)
    match given["question"]:
        case "isExpired":
            return _expired(given)
        case "scalingMode":
            return policy.get("mode", NO_POLICY.mode)
        case "controlledResources":
            return policy.get("controlledResources", list(NO_POLICY.controlled_resources))
        case "memoryAggregationIntervalSeconds":
            return policy.get(given["question"], 86400) if gate else 86400
        case "memoryAggregationIntervalCount":
            return policy.get(given["question"], 8) if gate else 8
        case "loadCheckpoint":
            return _load_state(given["version"])
    raise ValueError(given["question"])


def _merged(given: Json) -> Json:
    """The samples of several aggregates as one, under the names that the case gives them; a first of none is unset."""
    listed = [part for value in given.values() for part in (value if isinstance(value, list) else [value])]
    parts = [part for part in listed if isinstance(part, dict) and {"first", "last"} & part.keys()]
    counted = next((key for part in parts for key in part if key not in {"first", "last"}), "count")
    whole = merged(
        AggregateState(
            first_sample=_arbitrary(part.get("first")),
            last_sample=_arbitrary(part.get("last")),
            samples=part.get(counted) or 0,
        )
        for part in parts
    )
    first, last = (
        None if instant == UNSET else (instant - of_unix(0)) // SECOND
        for instant in (whole.first_sample, whole.last_sample)
    )
    return {"first": first, "last": last, counted: whole.samples}


def _arbitrary(seconds: float | None) -> int:
    return UNSET if seconds is None else of_unix(seconds)


def _expired(given: Json) -> bool:
    created = of_unix(1_700_000_000)
    count = given["cpuSampleCount"]
    state = AggregateState(last_sample=created if count else 0, samples=count, created=created)
    interval = round(given["intervalSeconds"] * SECOND)
    return state.expired(created + round(given["ageSeconds"] * SECOND), interval, given["intervalCount"])


def _load_state(version: str) -> Json:
    try:
        loaded({"version": version})
    except CheckpointError:
        return {"error": True}
    return {"error": False}


# --- recommendations -------------------------------------------------------------------------------------------------


def recommender(given: Json) -> Any:
    match given["kind"]:
        case "constant":
            return _constant(given)
        case "order":
            return list(recommend({name: AggregateState() for name in given["names"]}))
        case "series":
            return _series(given)
        case "events":
            return _events(given["events"])
    raise ValueError(given["kind"])


def _constant(given: Json) -> Json:
    settings = VpaSettings(
        pod_min_cpu_millicores=given["podMinCpuMillicores"], pod_min_memory_mb=given["podMinMemoryMb"]
    )
    least = pod_minimum(len(given["containers"]), settings)

    def raised(raw: Json) -> Amounts:
        values = {"cpu": raw["cpuMillicores"], "memory": raw["memoryBytes"]}
        return floored(values, least, raw.get("controlledResources", BOTH))

    return {
        name: dict.fromkeys(("target", "lowerBound", "upperBound"), raised(raw))
        for name, raw in given["containers"].items()
    }


def _series(given: Json) -> Json:
    """Answer with the arrays that choose sizes in the service."""
    cores, memory = (np.array(_unrolled(given[name])) for name in ("cpuCores", "memoryBytes"))
    at = given["startSeconds"] + np.arange(len(cores)) * given["stepSeconds"]
    panel = VpaPanel(1)
    panel.add_cpu(cores[None, :], at)
    for column, instant in enumerate(at.tolist()):
        panel.add_memory(memory[[column]], instant)
    recommended = panel.recommend()
    return {
        "container": {
            bound: {resource: int(getattr(amounts, name)[0]) for resource, amounts in recommended.items()}
            for bound, name in (("target", "target"), ("lowerBound", "lower"), ("upperBound", "upper"))
        }
    }


def _unrolled(runs: list[list[float]]) -> list[float]:
    return [value for value, repeats in runs for _ in range(int(repeats))]


def _events(events: list[Json]) -> list[Json]:
    states: dict[str, AggregateState] = {}
    containers: dict[str, ContainerState] = {}
    reports = []
    for event in events:
        if event.get("report"):
            reports.append(_reported(states))
            continue
        name = event["container"]
        states.setdefault(name, AggregateState())
        if event.get("reload"):
            states[name] = loaded(json.loads(json.dumps(saved(states[name], datetime(2026, 1, 1, tzinfo=UTC)))))
            containers[name] = ContainerState(states[name])
            continue
        _sample(containers.setdefault(name, ContainerState(states[name])), event, of_unix(event["t"]))
    return reports


def _sample(container: ContainerState, event: Json, at: int) -> None:
    if "cpuMillicores" in event:
        container.add_cpu(event["cpuMillicores"], at)
    if "memoryBytes" in event:
        container.add_memory(event["memoryBytes"], at)
    if "oomRequestBytes" in event:
        container.record_oom(event["oomRequestBytes"], at)


def _reported(states: dict[str, AggregateState]) -> Json:
    return {name: _bounds(amounts) for name, amounts in recommend(states).items()}


def _bounds(amounts: ContainerAmounts) -> Json:
    return {"target": amounts.target, "lowerBound": amounts.lower, "upperBound": amounts.upper}


def _reports(expected: Any, answered: Any) -> str:
    """Within one unit or 1e-7: the last bit of a power decides a truncation, which a bound then multiplies.

    Only those lists of a container are compared that the case expects.
    """
    if isinstance(expected, dict) and set(expected) == set(answered):
        answered = {name: {key: answered[name].get(key) for key in keys} for name, keys in expected.items()}
    return relative(1e-7, 1.0)(expected, answered)


SUITES = {
    "vpa-aggregate-state": Suite(aggregate_state, each(exact)),
    "vpa-amounts": Suite(conversion, each(quantities)),
    "vpa-container-state": Suite(container_state, relative(1e-12)),
    "vpa-decaying-histogram": Suite(decaying_histogram, relative(1e-12)),
    "vpa-estimators": Suite(estimator, _estimated),
    "vpa-histogram": Suite(plain_histogram, relative(1e-12)),
    "vpa-histogram-checkpoint": Suite(histogram_checkpoint, relative(1e-12)),
    "vpa-histogram-options": Suite(options, relative(1e-12)),
    "vpa-recommender": Suite(recommender, _reports),
}
