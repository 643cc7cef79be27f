"""Answers to the suites of KRR, of crane and of sizing under an HPA."""

from __future__ import annotations

import math
from typing import Any

from forecaster.domain.quantity import parse_quantity
from forecaster.vertical.recommenders.baselines import Severity, rounded_cpu, rounded_memory, severity_of
from tests.oracles.crane import (
    LadderError,
    asymmetric_percentage_error,
    mean_absolute_error,
    parse,
    prediction_error,
    smallest_that_fits,
)
from tests.oracles.krr import (
    KRR_UNKNOWN,
    KrrSettings,
    QueryResults,
    cell,
    difference,
    letter,
    namespaces,
    parsed,
    printed,
    score,
    simple,
    simple_limit,
)
from tests.oracles.scale_point import UtilizationBounds, kept_target, naive_rounds
from tests.vectors.vertical_comparison import Json, Suite, as_set, each, exact, listed, quantities, relative

_GIBI = 2**30
_STRATEGIES = {"simple": simple, "simple_limit": simple_limit}


def units(given: Json) -> float | str:
    return parsed(given["text"]) if given["function"] == "parse" else printed(given["value"])


def cells(given: Json) -> str:
    if given["function"] == "totalDiff":
        return difference(given["current"], given["recommended"], given["pods"])
    return cell(given["current"], given["recommended"], with_difference=given["selector"] == "requests")


def severity(given: Json) -> str:
    both = given["current"], given["recommended"]
    return str(Severity.UNKNOWN if KRR_UNKNOWN in both else severity_of(given["resource"], *both))


def rounding(given: Json) -> float | str | None:
    if given["value"] in {None, KRR_UNKNOWN}:
        return given["value"]
    if given["resource"] == "cpu":
        return rounded_cpu(given["value"], given["cpuMinMillicores"])
    return rounded_memory(given["value"], given["memoryMinMiB"])


def strategy(given: Json) -> Json:
    hpa = given.get("hpa") or {}
    results = QueryResults(
        given.get("cpuPercentileByPod") or {},
        given.get("cpuPointsByPod") or {},
        given.get("memoryMaxByPod") or {},
        given.get("points") or {},
        given.get("oomLimitByPod") or {},
        frozenset(resource for resource in hpa if hpa[resource]),
    )
    settings = KrrSettings(allow_hpa=given.get("allowHpa", False), use_oom=given.get("useOom", False))
    proposals = _STRATEGIES[given["strategy"]](results, settings)
    return {
        resource: {"request": proposal.request, "limit": proposal.limit, "info": proposal.info}
        for resource, proposal in proposals.items()
    }


def scan_score(given: Json) -> Json:
    points = score([Severity(text) for text in given["severities"]])
    return {"score": points, "letter": letter(points)}


def scanned(given: Json) -> list[str]:
    return sorted(namespaces(given["selected"], given["clusterNamespaces"]))


def specs(given: Json) -> Any:
    if given["function"] == "parse":
        try:
            return [list(size) for size in parse(given["text"])]
        except LadderError:
            return {"error": True}
    cores, memory = (parse_quantity(given[name]).as_float() for name in ("cpu", "memory"))
    size = smallest_that_fits(parse(given["specs"]), cores, memory)
    return [str(size.cores), str(size.gibibytes * _GIBI)]


def predicted(given: Json) -> Json:
    pair = given["actual"], given["predicted"]
    mae = mean_absolute_error(*pair)
    return {"mape": asymmetric_percentage_error(*pair), "mae": mae, "predictionError": prediction_error(*pair)}


def composition(given: Json) -> Json:
    if given["kind"] == "iterate":
        arguments = given["request"], given["targetUtilization"], given["headroom"], given["rounds"]
        return {"requests": naive_rounds(*arguments)}
    bounds = None
    if "minTarget" in given or "maxTarget" in given:
        bounds = UtilizationBounds(given.get("minTarget", 0.0), given.get("maxTarget", math.inf))
    adjusted = kept_target(given["request"], given["targetUtilization"], given["newRequest"], bounds)
    return {"newTargetUtilization": adjusted.target, "bounded": adjusted.bounded}


def _parsed_or_printed(expected: float | str, answered: float | str) -> str:
    """Numbers above 1 agree when their whole parts do."""
    if isinstance(expected, str) or isinstance(answered, str) or expected <= 1:
        return relative(1e-12)(expected, answered)
    return exact(int(expected), int(answered))


SUITES = {
    "crane-prediction-error": Suite(predicted, listed(relative(1e-9, 1e-12))),
    "crane-specs": Suite(specs, each(quantities)),
    "hpa-composition": Suite(composition, listed(relative(1e-9))),
    "krr-cells": Suite(cells, exact),
    "krr-namespaces": Suite(scanned, as_set),
    "krr-rounding": Suite(rounding, relative(1e-12)),
    "krr-score": Suite(scan_score, exact),
    "krr-severity": Suite(severity, exact),
    "krr-strategy": Suite(strategy, relative(1e-9)),
    "krr-units": Suite(units, _parsed_or_printed),
}
