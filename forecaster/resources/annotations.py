"""Annotations `forecaster.dev/...` of HPAs and workloads: a few settings, stated without one object more."""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from forecaster.domain.faults import allowed
from forecaster.domain.layers import Layer
from forecaster.domain.policy import Policy
from forecaster.errors import nearest
from forecaster.kube.objects import OURS

if TYPE_CHECKING:
    from collections.abc import Mapping

MODE, PAUSED = f"{OURS}mode", f"{OURS}paused"
SETTINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        MODE: ("mode",),
        f"{OURS}availability": ("horizontal", "availability"),
        f"{OURS}lead-time": ("horizontal", "lead_time"),
        f"{OURS}quantile": ("horizontal", "quantile"),
        f"{OURS}sizing": ("horizontal", "sizing"),
    }
)
"""The setting that each annotation states."""
PAUSE: Mapping[str, object] = MappingProxyType({"mode": "observe"})
"""What a paused workload has: recommendations only, nothing that anything reads or that is written."""
SHOWN = 40
"""Characters of a value that cannot be read."""


class Annotated(NamedTuple):
    """What the annotations of one object state."""

    layer: Layer | None = None
    pause: Layer | None = None
    """Above the annotations of every other object of the workload."""
    faults: tuple[str, ...] = ()


NOTHING = Annotated()


def annotated(annotations: Mapping[str, str], described: str) -> Annotated:
    """What the annotations of an object state; `described` names it, e.g. `HPA shop/web`.

    One that cannot be read states nothing and is told; a mode or a pause that cannot be read is taken for `observe`.
    """
    ours = tuple(sorted(one for one in annotations.items() if one[0].startswith(OURS)))
    return _annotated(ours, described) if ours else NOTHING


@lru_cache(maxsize=1 << 15)
def _annotated(annotations: tuple[tuple[str, str], ...], described: str) -> Annotated:
    policy: dict[str, object] = {}
    pause, faults = None, []
    for name, text in annotations:
        if name in SETTINGS:
            fault = _put(policy, SETTINGS[name], text)
            faults += [f"{described}: annotation {name} is {text[:SHOWN]!r}: {fault}"] if fault else []
        elif name == PAUSED:
            pause = None if text == "false" else Layer(f"annotation {PAUSED} of {described}", PAUSE)
            if text not in {"true", "false"}:
                faults.append(f"{described}: annotation {name} is {text[:SHOWN]!r}, taken for true; use true or false")
        elif near := nearest(name.removeprefix(OURS), [one.removeprefix(OURS) for one in (*SETTINGS, PAUSED)]):
            faults.append(f"{described}: there is no annotation {name}; did you mean {OURS}{near[0]}?")
    layer = Layer(f"annotations of {described}", policy) if policy else None
    return Annotated(layer, pause, tuple(faults))


def _put(policy: dict[str, object], path: tuple[str, ...], text: str) -> str:
    """Put one setting into a policy; what is wrong with its value, which then is left out, or `observe` for a mode."""
    *sections, name = path
    nested: dict[str, object] = {name: text}
    for section in reversed(sections):
        nested = {section: nested}
    fault = ""
    try:
        Policy.model_validate(nested)
    except ValidationError as error:
        fault = "; ".join(allowed(one) for one in error.errors(include_url=False))
        if path != ("mode",):
            return fault
        text = "observe"
    place = policy
    for section in sections:
        place = place.setdefault(section, {})  # type: ignore[assignment]  # sections hold sections
    place[name] = text
    return fault
