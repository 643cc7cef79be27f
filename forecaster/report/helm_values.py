"""Sizes as values for Helm, and what they change as Markdown; a map says where a chart reads each container's sizes.

The values are an overlay, the last `-f` of Helm, so the chart's own values keep their text and comments. Git is what
sizes are compared with: what moved less than the stated share stays in the overlay as it is.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from forecaster.config.files import read_file
from forecaster.domain.amounts import counted
from forecaster.domain.quantity import QuantityError
from forecaster.domain.workload import ContainerSize, Prices, Resources, WorkloadId
from forecaster.errors import ConfigError, Fault, nearest
from forecaster.report.advice import cost_change, in_currency, risk_columns, spoken, target_lines, why_unpatched
from forecaster.report.printed import PrintedColumn, change, markdown_table
from forecaster.vertical.admission.advice import AMOUNTS, Advice, moved, sum_of
from forecaster.vertical.admission.cluster import POD
from forecaster.vertical.cluster_rules.pod import Requirements
from forecaster.vertical.cluster_rules.resource_list import COMPUTE, parsed, texts

Tree = dict[str, Any]
HEADER = "# Written by `forecaster recommend -o helm-values`, which overwrites edits. Helm reads it last.\n"
KINDS = ("requests", "limits")


class HelmFiles(NamedTuple):
    """The map of paths, the values that Helm reads before the overlay in its order, and the overlay."""

    paths: Path
    values: Sequence[Path]
    overlay: Path


class Place(NamedTuple):
    """A container, `NAMESPACE/NAME/CONTAINER`, the path of its `resources` in the values, and what Git has there."""

    key: str
    path: tuple[str, ...]
    advice: Advice
    before: Resources

    @property
    def recommended(self) -> Requirements | None:
        """Accepted requirements of the container; None where nothing is recommended, or names are not known."""
        return (self.advice.values or {}).get(self.key.rpartition("/")[2])

    @property
    def after(self) -> Resources:
        """Size after the change: the recommended one, else what Git has."""
        return sum_of({"": self.recommended}) if self.recommended else self.before


class HelmValues(NamedTuple):
    """The overlay as it should be, all containers of the map, those that change, and why others cannot be written."""

    text: str
    places: Sequence[Place]
    changes: Sequence[Place]
    unwritten: Sequence[str]


def helm_values(advices: Sequence[Advice], chosen: Container[WorkloadId], files: HelmFiles, share: float) -> HelmValues:
    """Return the overlay with the sizes of the chosen workloads that moved by more than a share of what Git has.

    Raises ConfigError with every fault of the map and of the values.
    """
    below: Tree = {}
    for file in files.values:
        below = _merged(below, read_file(file))
    previous = read_file(files.overlay) if files.overlay.exists() else {}
    places = places_of(files, advices, below, previous)
    of_chosen = [place for place in places if place.advice.id in chosen]
    changes = {place.key: place for place in of_chosen if moved(place.before, place.after, share)}
    overlay: Tree = {}
    for place in places:
        new = place.recommended if place.key in changes else None
        if block := _block(new, _at(below, place.path)) if new else _at(previous, place.path):
            _put(overlay, place.path, block)
    silent = [place for place in of_chosen if place.recommended is None and place.advice.recommended]
    unwritten = [f"{place.key}: not written: {why_unpatched(place.advice)}" for place in silent]
    return HelmValues(HEADER + yaml.safe_dump(overlay, sort_keys=False), places, list(changes.values()), unwritten)


# The map.


def places_of(files: HelmFiles, advices: Iterable[Advice], below: Tree, previous: Tree) -> list[Place]:
    """Return the places that the map states. Raises ConfigError with every fault."""
    present = _merged(below, previous)
    by_name: dict[str, list[Advice]] = {}
    for advice in advices:
        by_name.setdefault(str(advice.id), []).append(advice)
    places, faults = [], []
    for key, text in ((str(key), text) for key, text in read_file(files.paths).items()):
        path = tuple(part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", str(text)))
        wrong = [*_container_faults(key, by_name), *(_path_faults(path, below) if files.values else ())]
        if not isinstance(text, str) or not all(path):
            wrong = [*_container_faults(key, by_name), "write the path of its resources, such as web.resources"]
        try:
            before = sum_of({"": _requirements(_at(present, path))})
        except (AttributeError, QuantityError) as error:
            wrong.append(f"the values have no size there: {error}; write requests and limits such as 250m and 1Gi")
        faults += [Fault(key, text, why) for why in wrong]
        if not wrong:
            places.append(Place(key, path, by_name[key.rpartition("/")[0]][0], before))
    for first, second in pairwise(sorted(places, key=lambda place: place.path)):
        if second.path[: len(first.path)] == first.path:
            faults.append(Fault(second.key, ".".join(second.path), f"{first.key} has {'.'.join(first.path)} already"))
    if faults:
        raise ConfigError(str(files.paths), faults)
    return places


def _container_faults(key: str, known: Mapping[str, Sequence[Advice]]) -> Iterator[str]:
    workload, _, container = key.rpartition("/")
    there = known.get(workload, ())
    names = {*there[0].values, *(size.name for size in there[0].sizes)} - {POD, ""} if there and there[0].values else ()
    if workload.count("/") != 1 or not container:
        yield "write NAMESPACE/NAME/CONTAINER"
    elif not there:
        near = nearest(workload, known)
        yield f"no such workload; {f'did you mean {near[0]}?' if near else '`forecaster once -o name` lists them'}"
    elif len(there) > 1:
        yield f"{' and '.join(advice.id.kind for advice in there)} have this name: choose by --kind"
    elif names and container not in names:
        yield f"no such container; there are {', '.join(sorted(names))}"


# Trees of values.


def _path_faults(path: Sequence[str], tree: Tree) -> Iterator[str]:
    """Yield reasons why a path leads to no mapping; a key without a value is an empty mapping."""
    for i, name in enumerate(path, 1):
        at = ".".join(path[:i])
        if name not in tree:
            near = nearest(name, map(str, tree))
            yield f"the values have no {at}; {f'did you mean {near[0]}?' if near else 'add it if the chart reads it'}"
            return
        if not isinstance(tree[name], dict | None):
            yield f"{at} is {tree[name]!r} and no mapping; name the one that holds requests and limits"
            return
        tree = tree[name] or {}


def _merged(below: Tree, above: Tree) -> Tree:
    """Merge two trees as Helm merges values: mappings by key, everything else replaced."""
    both = {key for key in below.keys() & above.keys() if isinstance(below[key], dict) and isinstance(above[key], dict)}
    return {**below, **{key: _merged(below[key], value) if key in both else value for key, value in above.items()}}


def _at(tree: Tree, path: Sequence[str]) -> Tree:
    for name in path:
        tree = child if isinstance(child := tree.get(name), dict) else {}
    return tree


def _put(tree: Tree, path: Sequence[str], block: Tree) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = block


def _requirements(block: Tree) -> Requirements:
    each = ((block.get(kind) or {}) for kind in KINDS)
    return Requirements(
        *(parsed({name: amounts[name] for name in COMPUTE if amounts.get(name) is not None}) for amounts in each)
    )


def _block(after: Requirements, below: Tree) -> Tree:
    """Return the `resources` of a container; null takes away what the chart's values have and the size has not."""
    gone = ({name: None for name in COMPUTE if (below.get(kind) or {}).get(name) is not None} for kind in KINDS)
    both = (absent | texts(amounts) for absent, amounts in zip(gone, (after.requests, after.limits), strict=True))
    return {kind: amounts for kind, amounts in zip(KINDS, both, strict=True) if amounts}


# The text of a pull request.


def changes_text(values: HelmValues, share: float, prices: Prices | None) -> str:
    """Return sizes, risk and money of what changes as Markdown."""
    changes, whole = values.changes, counted(len(values.places), "container")
    lines = [f"{len(changes)} of {whole} moved by more than {share * 100:g} % of what Git has."]
    if changes:
        lines += [markdown_table(list(_columns(changes, prices))), RISK]
    costs_of_both = (_costs(place, prices) for place in changes) if prices else ()
    if prices and (pairs := [(now, then) for now, then in costs_of_both if None not in (now, then)]):
        now, then = (sum(filter(None, costs)) for costs in zip((0.0, 0.0), *pairs, strict=True))
        among = (
            f", {counted(len(pairs), 'container')} of which Git has the requests" if len(pairs) < len(changes) else ""
        )
        lines.append(f"Cost a month{in_currency(prices)}{among}: {now:,.2f} → {then:,.2f} ({then - now:+z,.2f}).")
    return "\n\n".join(lines) + "\n"


RISK = "CPU RISK is the share of time in which CPU wants more than the recommended request."


def _columns(changes: Sequence[Place], prices: Prices | None) -> Iterator[PrintedColumn]:
    sizes, pairs = [_sizes(place) for place in changes], [(place.before, place.after) for place in changes]
    yield PrintedColumn("CONTAINER", [place.key for place in changes])
    for resource, name in AMOUNTS:
        cells = [change(*(spoken(resource, getattr(size, name)) for size in pair)) for pair in pairs]
        yield PrintedColumn(name.upper().replace("_", " "), cells, right=True)
    yield PrintedColumn("PODS", [str(place.advice.replicas) for place in changes], right=True)
    if prices:
        yield PrintedColumn("COST A MONTH", [cost_change(*_costs(place, prices)) for place in changes], right=True)
    yield from risk_columns(sizes)
    yield PrintedColumn(
        "WHY", [_why(place, [size.message for size in each]) for place, each in zip(changes, sizes, strict=True)]
    )


def _sizes(place: Place) -> list[ContainerSize]:
    """Return the size of the container, or those of the pod where usage has other names."""
    own = [size for size in place.advice.sizes if size.name == place.key.rpartition("/")[2]]
    return own or list(place.advice.sizes)


def _costs(place: Place, prices: Prices) -> tuple[float | None, float | None]:
    return place.advice.cost_a_month(place.before, prices), place.advice.cost_a_month(place.after, prices)


def _why(place: Place, messages: Sequence[str]) -> str:
    """Explain a size: its sentences, what its HPA needs, and the refusal that led to the nearest accepted size."""
    refusals = place.advice.proof.refusals if place.advice.proof else ()
    nearest_taken = [f"the nearest that the cluster takes: {refusal}" for refusal in refusals[:1]]
    return "; ".join([*messages, *target_lines(place.advice), *nearest_taken])
