"""Annotations `forecaster.dev/...` of HPAs and workloads: a few settings, stated without one object more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, get_origin

from pydantic import BaseModel, ValidationError

from forecaster.domain.event import MAX_REPLICAS
from forecaster.domain.faults import allowed
from forecaster.domain.layers import PAUSED_POLICY, Layer, merged
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.policy_numbers import value_types
from forecaster.errors import nearest
from forecaster.kube.objects import ANNOTATION_PREFIX

MODE, PAUSED = f"{ANNOTATION_PREFIX}mode", f"{ANNOTATION_PREFIX}paused"


def _annotations_of(section: type[BaseModel], *within: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the annotation of each setting of a section that is one value, with the path of the setting."""
    for name, field in section.model_fields.items():
        kinds = {get_origin(kind) or kind for kind in value_types(field.annotation)}
        if not any(kind is tuple or issubclass(kind, BaseModel) for kind in kinds if isinstance(kind, type)):
            yield f"{ANNOTATION_PREFIX}{name.replace('_', '-')}", (*within, name)


ANNOTATION_SETTINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {**dict(_annotations_of(HorizontalPolicy, "horizontal")), **dict(_annotations_of(Policy))}
)
"""The setting that each annotation states: every single value of `policy` and of `policy.horizontal`."""
VALUE_SHOWN = 40
"""Characters of a value that cannot be read."""
NAMES_COMPARED = 1
"""Unknown names of one object that are compared with the known ones, at most: each takes 100 µs."""
VALUE_MAX, NAMES_MAX = 64, 32
"""Longest value that is read, and annotations read of one object: an owner may write 256 KiB, settings are short."""

PERMITTING = {"sizing": "newsvendor", "scale_in_by_forecast": True, "min_replicas": 1, "max_replicas": MAX_REPLICAS}
"""Values beside which each setting may have any value: dependencies are checked where layers are combined."""
WRITTEN = ("-before", "-by", "-expires", "-until")
"""Endings of the annotations that our own writes leave."""
KNOWN_ANNOTATIONS = [name.removeprefix(ANNOTATION_PREFIX) for name in (*ANNOTATION_SETTINGS, PAUSED)]
READ = frozenset({*ANNOTATION_SETTINGS, PAUSED})
"""Annotations with a value that matters: those that our writes leave change often, and would fill the cache."""


class Annotated(NamedTuple):
    """Policy stated by the annotations of one object."""

    layer: Layer | None = None
    pause: Layer | None = None
    """Above the annotations of every other object of the workload."""
    faults: tuple[str, ...] = ()


NO_ANNOTATIONS = Annotated()


def annotated(annotations: Mapping[str, str], described: str) -> Annotated:
    """Read the policy from the annotations of an object; `described` names it, e.g. `HPA shop/web`.

    An unreadable annotation states nothing and is a fault; an unreadable mode or pause counts as `observe`.
    """
    own = sorted(name for name in annotations if name.startswith(ANNOTATION_PREFIX))
    stated = [(name, annotations[name][: VALUE_MAX + 1]) for name in own if name in READ][:NAMES_MAX]
    unknown = [(name, "") for name in own if name not in READ and not name.endswith(WRITTEN)][:NAMES_COMPARED]
    return _annotated((*stated, *unknown), described) if stated or unknown else NO_ANNOTATIONS


@lru_cache(maxsize=1 << 15)
def _annotated(annotations: tuple[tuple[str, str], ...], described: str) -> Annotated:
    policy: dict[str, object] = {}
    pause, faults = None, []
    for name, text in annotations:
        bare = name.removeprefix(ANNOTATION_PREFIX)
        if name in ANNOTATION_SETTINGS:
            fault = _put(policy, ANNOTATION_SETTINGS[name], text)
            faults += [f"{described}: annotation {name} is {text[:VALUE_SHOWN]!r}: {fault}"] if fault else []
        elif name == PAUSED:
            pause = None if text == "false" else Layer(f"annotation {PAUSED} of {described}", PAUSED_POLICY)
            if text not in {"true", "false"}:
                faults.append(
                    f"{described}: annotation {name} is {text[:VALUE_SHOWN]!r}, taken for true; use true or false"
                )
        else:
            near = nearest(bare, KNOWN_ANNOTATIONS, 1)
            hint = f"{described}: there is no annotation {name}; did you mean {ANNOTATION_PREFIX}"
            faults += [f"{hint}{similar}?" for similar in near]
    layer = Layer(f"annotations of {described}", policy) if policy else None
    return Annotated(layer, pause, tuple(faults))


def _put(policy: dict[str, object], path: tuple[str, ...], text: str) -> str:
    """Put one setting into a policy; return its fault, in which case it is left out, or `observe` for a mode."""
    *sections, name = path
    nested: dict[str, object] = {name: text}
    for section in reversed(sections):
        nested = {section: nested}
    fault = f"longer than {VALUE_MAX} characters" if len(text) > VALUE_MAX else _fault_of(nested)
    if fault and path != ("mode",):
        return fault
    text = "observe" if fault else text
    place = policy
    for section in sections:
        place = place.setdefault(section, {})  # type: ignore[assignment]  # sections hold sections
    place[name] = text
    return fault


def _fault_of(stated: Mapping[str, object]) -> str:
    """Say why a setting is wrong by itself; empty where it is not."""
    try:
        Policy.model_validate(merged({"horizontal": PERMITTING}, stated))
    except ValidationError as error:
        return "; ".join(allowed(detail) for detail in error.errors(include_url=False))
    return ""
