"""Files of settings: a single one, or those of a folder, such as a mounted ConfigMap."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

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
