"""Faults of a configuration: each with its path, its value and the allowed values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta

from pydantic import ValidationError

from forecaster.domain.amounts import duration_text
from forecaster.domain.faults import allowed
from forecaster.domain.layers import merged
from forecaster.domain.policies import overlap
from forecaster.domain.policy import Policy, PolicySelector
from forecaster.errors import WHOLE_FILE, Fault

Path = tuple[str | int, ...]

SECRET = re.compile(r"auth|credential|header|key|pass|secret|token", re.IGNORECASE)
"""Names of settings whose value is never repeated in messages, unknown settings included."""
ADDRESS = re.compile(r"(?<=://)(\S*@)?([^\s?]*)(\?\S+)?")
"""Credentials, host with path, and query of an address; host and path are shown."""
VALUE_SHOWN_MAX = 80


def faults_of(error: ValidationError, where: Path = ()) -> list[Fault]:
    """Return the errors of pydantic, one fault each, without the values of whole sections."""
    faults = []
    for detail in error.errors(include_url=False):
        path = _path((*where, *detail["loc"]))
        faults.append(Fault(path, _shown(path, detail.get("input")), allowed(detail)))
    return faults


def faults_of_overrides(value: Mapping[str, object]) -> list[Fault]:
    """Overrides are fragments, so each is checked as what it becomes: the defaults with the fragment put in.

    So is each pair that some workload may meet. Rules between settings concern two of them, hence pairs are enough;
    overrides of many namespaces say much the same, and no pair of fragments is checked twice.
    """
    defaults, faults = _sound_defaults(value.get("policy", {})), []
    sound: list[tuple[int, PolicySelector, Mapping[str, object], str]] = []
    agreeing: set[tuple[str, str]] = set()
    for i, selector, fragment in _fragments(value.get("overrides", ())):
        where, text = ("overrides", i, "policy"), repr(fragment)
        alone = _faults_of_policy(merged(defaults, fragment), where)
        faults += alone
        if alone or selector is None:
            continue
        for earlier, other, base, base_text in sound:
            if (base_text, text) not in agreeing and overlap(other, selector):
                both = _faults_of_policy(merged(merged(defaults, base), fragment), where)
                faults += [_contradiction(fault, earlier) for fault in both]
                agreeing |= set() if both else {(base_text, text)}
        sound.append((i, selector, fragment, text))
    return faults


def _sound_defaults(policy: object) -> dict[str, object]:
    sound = isinstance(policy, dict) and not _faults_of_policy(policy)
    return Policy.model_validate(policy if sound else {}).model_dump()


def _fragments(overrides: object) -> Iterator[tuple[int, PolicySelector | None, Mapping[str, object]]]:
    """Number, selector and policy of each override that has a policy; no selector where it is faulty itself."""
    for i, override in enumerate(overrides if isinstance(overrides, list | tuple) else ()):
        fragment = override.get("policy") if isinstance(override, dict) else None
        if isinstance(fragment, dict):
            yield i, _selector(override.get("match", {})), fragment


def _selector(value: object) -> PolicySelector | None:
    try:
        return PolicySelector.model_validate(value)
    except ValidationError:
        return None


def _faults_of_policy(value: Mapping[str, object], where: Path = ()) -> list[Fault]:
    try:
        Policy.model_validate(value)
    except ValidationError as error:
        return faults_of(error, where)
    return []


def _contradiction(fault: Fault, earlier: int) -> Fault:
    meeting = f"{fault.allowed} for a workload that overrides[{earlier}] means, too; state both values in one override"
    return Fault(fault.path, fault.value, meeting)


def _path(location: Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".") or WHOLE_FILE


def _shown(path: str, value: object) -> object:
    if SECRET.search(path):
        return "(not shown)"
    value = duration_text(value) if isinstance(value, timedelta) else value
    if isinstance(value, str):
        text = ADDRESS.sub(lambda part: f"{'***@' * bool(part[1])}{part[2]}{'?***' * bool(part[3])}", value)
        return text if len(text) <= VALUE_SHOWN_MAX else text[:VALUE_SHOWN_MAX] + "…"
    return value if isinstance(value, int | float | bool | None) else ...
