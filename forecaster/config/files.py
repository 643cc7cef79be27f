"""Files of settings: a single one, or those of a folder, such as a mounted ConfigMap; and the faults in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from forecaster.domain.amounts import duration_text
from forecaster.domain.layers import merged
from forecaster.domain.policies import overlap
from forecaster.domain.policy import Policy, PolicySelector
from forecaster.domain.settings import allowed
from forecaster.errors import WHOLE_FILE, ConfigError, Fault


def fingerprint(path: Path | None) -> bytes:
    """Return a hash of the contents of a path's files: a mounted ConfigMap is replaced below symbolic links.

    Raises:
        ConfigError: one cannot be read.
    """
    digest = sha256()
    for file in setting_files(path):
        try:
            content = file.read_bytes()
        except OSError as error:
            raise ConfigError(str(file), [Fault(WHOLE_FILE, str(file), f"it cannot be read: {error}")]) from error
        digest.update(f"{file.name} {len(content)} ".encode() + content)
    return digest.digest()


def setting_files(path: Path | None) -> list[Path]:
    """Return the file of a path, or all `*.yaml` of a folder by name. Raises `ConfigError` where there are none."""
    if path is None:
        return []
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not files:
        raise ConfigError(str(path), [Fault(WHOLE_FILE, str(path), "there is no *.yaml file in this folder")])
    return files


MOST_MERGED = 10_000
"""Keys that a mapping may take from others (`<<`), again and again: merges of merges make millions of a few lines."""


class OnceLoader(yaml.SafeLoader):
    """Loads YAML in which no mapping has a key twice: the first one would be dropped without a word."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Take merged mappings in, as the base does, while they have no more keys than a person writes."""
        super().flatten_mapping(node)
        if len(node.value) > MOST_MERGED:
            raise yaml.MarkedYAMLError(problem="its merges repeat one another", problem_mark=node.start_mark)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return a mapping, as the base does."""
        node = super().compose_mapping_node(anchor)
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for before, key in pairwise(sorted(keys, key=lambda key: str(key.value))):
            if before.value == key.value:
                raise yaml.MarkedYAMLError(problem=f"{key.value} is stated twice", problem_mark=key.start_mark)
        return node


def read_file(path: Path) -> dict[str, object]:
    """Read a file, by section. Raises `ConfigError` with the place of the error."""
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), OnceLoader)  # noqa: S506  a SafeLoader
    except OSError as error:
        why = (
            "there is no such file" if isinstance(error, FileNotFoundError) else f"it cannot be read: {error.strerror}"
        )
        raise ConfigError(str(path), [Fault(WHOLE_FILE, str(path), why)]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(str(path), [Fault(WHOLE_FILE, str(path), f"it is not YAML: {_position(error)}")]) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        message = f"a mapping of sections is expected, and it holds a {type(value).__name__}"
        raise ConfigError(str(path), [Fault(WHOLE_FILE, ..., message)])
    return value


def _position(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = " ".join(filter(None, (getattr(error, part, "") for part in ("context", "problem")))) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem


# Faults of a configuration: each with its path, its value and the allowed values.


Location = tuple[str | int, ...]

SECRET = re.compile(r"auth|credential|header|key|pass|secret|token", re.IGNORECASE)
"""Names of settings whose value is never repeated in messages, unknown settings included."""
ADDRESS = re.compile(r"(?<=://)(\S*@)?([^\s?]*)(\?\S+)?")
"""Credentials, host with path, and query of an address; host and path are shown."""
VALUE_SHOWN_MAX = 80


def faults_of(error: ValidationError, where: Location = ()) -> list[Fault]:
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


def _faults_of_policy(value: Mapping[str, object], where: Location = ()) -> list[Fault]:
    try:
        Policy.model_validate(value)
    except ValidationError as error:
        return faults_of(error, where)
    return []


def _contradiction(fault: Fault, earlier: int) -> Fault:
    meeting = f"{fault.allowed} for a workload that overrides[{earlier}] means, too; state both values in one override"
    return Fault(fault.path, fault.value, meeting)


def _path(location: Location) -> str:
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
