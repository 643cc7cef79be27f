"""Faults of a manifest, worded as the API server words them (HPA rules §12)."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

FaultType = Literal["FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden", "FieldValueNotSupported"]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_LABEL = 63
_LONGEST_SUBDOMAIN = 253


class Fault(NamedTuple):
    """One thing the API server would refuse: where, of which type, and its sentence without the path."""

    path: str
    type: FaultType
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"


Faults = Iterator[Fault]


def invalid(path: str, value: object, reason: str) -> Fault:
    """A value that is there and wrong."""
    return Fault(path, "FieldValueInvalid", f"Invalid value: {json.dumps(value)}: {reason}")


def required(path: str, reason: str = "") -> Fault:
    """A value that is not there."""
    return Fault(path, "FieldValueRequired", f"Required value: {reason}" if reason else "Required value")


def forbidden(path: str, reason: str) -> Fault:
    """A value that may not be there."""
    return Fault(path, "FieldValueForbidden", f"Forbidden: {reason}")


def not_supported(path: str, value: object, supported: Iterable[str]) -> Fault:
    """A word outside a short list."""
    choices = ", ".join(json.dumps(choice) for choice in sorted(supported))
    return Fault(path, "FieldValueNotSupported", f"Unsupported value: {json.dumps(value)}: supported values: {choices}")


def path_segment_faults(path: str, name: str) -> Faults:
    """HPA rules §12: kinds, names and metric names must be usable as one segment of a URL."""
    if name in {".", ".."}:
        yield invalid(path, name, f"may not be '{name}'")
        return
    for sign in "/%":
        if sign in name:
            yield invalid(path, name, f"may not contain '{sign}'")


def dns_label_faults(path: str, name: str) -> Faults:
    """HPA rules §12: a container name is a DNS-1123 label."""
    if len(name) > _LONGEST_LABEL:
        yield invalid(path, name, f"must be no more than {_LONGEST_LABEL} characters")
    if not _LABEL.fullmatch(name):
        yield invalid(
            path,
            name,
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character",
        )


def qualified_name_faults(path: str, name: str) -> Faults:
    """HPA rules §12: a name, or a DNS subdomain and a name with a slash between."""
    prefix, slash, own = name.rpartition("/")
    if slash and (not _SUBDOMAIN.fullmatch(prefix) or len(prefix) > _LONGEST_SUBDOMAIN):
        yield invalid(path, name, "prefix part must be a lowercase RFC 1123 subdomain")
    if not _QUALIFIED.fullmatch(own) or len(own) > _LONGEST_LABEL:
        yield invalid(
            path,
            name,
            "name part must consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character",
        )
