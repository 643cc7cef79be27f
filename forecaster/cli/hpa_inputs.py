"""What `forecaster hpa` reads: manifests, pods, answers of the metrics APIs, or totals in place of the last two."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import yaml

from forecaster.domain.quantity import QuantityError, parse_quantity, right_spelling
from forecaster.errors import ForecasterError
from forecaster.hpa.documents import DocumentError, answers_of, newest_sample, pods_of
from forecaster.hpa.manifest import RefusedManifest, read_manifest
from forecaster.hpa.observation import POD_LABELS, SELECTOR, Observation, ScaleSubresource, observe_totals
from forecaster.hpa.spec import Controller, FeatureGates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from forecaster.hpa.spec import HpaSpec


class InputError(ForecasterError):
    """A file or an option cannot be used; the text names it, the value and the remedy."""


def controller_with(*, scale_to_zero: bool) -> Controller:
    """The shipped controller, with the one gate that changes what a manifest may say."""
    return Controller(gates=FeatureGates(scale_to_zero=scale_to_zero))


def specs_of(paths: Sequence[Path], controller: Controller) -> list[HpaSpec]:
    """The specs of manifest files; InputError with every fault where the API server would refuse one."""
    specs, faults = [], []
    for path in paths:
        for document in _documents(path):
            spec = read_manifest(document, scale_to_zero=controller.gates.scale_to_zero)
            if isinstance(spec, RefusedManifest):
                faults += [f"{path}: {fault}" for fault in spec.faults]
            else:
                specs.append(spec)
    if faults:
        raise InputError("the API server would refuse this\n  " + "\n  ".join(faults))
    if len(specs) != len(paths):
        raise InputError(f"expected one HPA a file, got {len(specs)} in {len(paths)}")
    return specs


def look(
    spec: HpaSpec,
    pods: Path | None,
    metrics: Path | None,
    replicas: int | None,
    usage: Sequence[str],
    request: Sequence[str],
    at: str | None,
) -> tuple[Observation, datetime]:
    """What the HPA would see and when: from files where pods are given, else from totals."""
    instant = None if at is None else _instant(at)
    if pods is not None:
        try:
            return _from_files(spec, pods, metrics, replicas, instant)
        except DocumentError as error:
            raise InputError(str(error)) from error
    if replicas is None:
        raise InputError("give --pods FILE, or --replicas N with --usage METRIC=QUANTITY")
    now = instant or datetime.now(UTC)
    return observe_totals(spec, replicas, _amounts(usage, "--usage"), _amounts(request, "--request"), now), now


def _from_files(
    spec: HpaSpec, pods: Path, metrics: Path | None, replicas: int | None, at: datetime | None
) -> tuple[Observation, datetime]:
    """Every pod of the file belongs to the target, whatever its labels."""
    answers = [] if metrics is None else _documents(metrics)
    matched = [replace(pod, labels=POD_LABELS) for pod in pods_of(_documents(pods))]
    current = len(matched) if replicas is None else replicas
    seen = Observation(ScaleSubresource(current, len(matched), SELECTOR), matched, answers_of(spec, answers))
    return seen, at or newest_sample(answers) or datetime.now(UTC)


def _amounts(pairs: Sequence[str], option: str) -> dict[str, int]:
    """Milli-units by name from NAME=QUANTITY."""
    amounts = {}
    for pair in pairs:
        name, _, quantity = pair.partition("=")
        try:
            amounts[name] = parse_quantity(quantity).milli
        except QuantityError as error:
            raise InputError(f"{option} {pair}: {remedy_of(error, quantity)}") from error
    return amounts


def remedy_of(error: QuantityError, text: str) -> str:
    """What is wrong with a quantity, and the spelling that was probably meant."""
    meant = right_spelling(text)
    return f"write {meant}" if meant else str(error)


def _documents(path: Path) -> list[Any]:
    """The YAML or JSON documents of a file, empty ones left out."""
    try:
        with path.open("rb") as stream:
            return [document for document in yaml.safe_load_all(stream) if document is not None]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no YAML: {error}") from error


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--at {text}: must be an RFC 3339 time like 2026-01-31T12:00:00Z") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
