"""`Source` over the HTTP API of Prometheus: one query per signal for all workloads, long ranges in slices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import yaml

from forecaster.domain.signal import CPU, MEMORY, MEMORY_CONTAINER, OF_CONTAINER, REQUESTS, Signal
from forecaster.domain.window import MINUTE, Block, Inventory, PodSamples
from forecaster.domain.workload import ContainerBlock, ContainerFacts, WorkloadId
from forecaster.errors import SourceError, SourceRefused, SourceTimeout, SourceUnavailable, shown_url
from forecaster.sources.blocks import block_of, of_containers, pod_samples, samples_of
from forecaster.sources.client import PrometheusClient
from forecaster.sources.facts import NEEDED_OF_CONTAINERS, InstantRow, by_workload, container_block, facts_of, rows_of
from forecaster.sources.inventory import HPA_COUNT, MAX_FAILED, Rotation, inventory_of
from forecaster.sources.pacing import AnswerTime, BackOff, Grid, Slices, grid_between, read_ahead
from forecaster.sources.presets import PREFERRED
from forecaster.sources.request_origins import Origins
from forecaster.sources.wire import MalformedAnswer, Query, QueryAnswer, TooMuch, at_instant, over_range

if TYPE_CHECKING:
    from forecaster.sources.queries import Queries
    from forecaster.sources.settings import PrometheusSettings

_FIRST_SLICE = 12
"""Points of the first slice, before the number of series is known: an hour at five minutes."""


FACTS_SECONDS, SIGNALS_SECONDS = 30.0, 60.0
"""Time of a cycle in which questions about specifications, and about signals, are begun. Each kind gets one answer more
at least, so that none is starved: with answers that take 20 s a cycle takes two to three minutes, and six without."""
SHORT_GAP = 60
"""Points of a gap that waits where answers are slow; the history at a first start is read whatever it takes."""
LONGEST_OF_SIGNAL = timedelta(minutes=5)
"""Longest pause of a signal whose query takes too long; the pause is a gap, which is read afterwards."""
NOTHING_ANSWERED: Mapping[str, Block] = MappingProxyType({})
NOTHING_NAMED: Mapping[WorkloadId, str] = MappingProxyType({})
_NOT_KNOWN = "whether pods lack samples, and which are starting, is not known"


class _MadeOf(NamedTuple):
    """Pods and samples behind the sums of some workloads at the instants of a grid."""

    grid: Grid
    ids: tuple[WorkloadId, ...]
    samples: PodSamples


class PrometheusSource:
    """Reads what `queries` describe from the server of `settings`; the inventory belongs to one thread."""

    def __init__(self, settings: PrometheusSettings, queries: Queries, clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._facts_time = AnswerTime(FACTS_SECONDS, clock)
        self._signals_time = AnswerTime(SIGNALS_SECONDS, clock)
        self.client = PrometheusClient(settings)
        self.queries = queries
        """Queries in use, including the detected origins of request rates."""
        self._rotation = Rotation(queries.specifications_every)
        self._back_off, self._slow_signals = BackOff(), BackOff(LONGEST_OF_SIGNAL)
        """Pauses after queries that failed, and of signals with a slow query."""
        self._container_rows: dict[str, tuple[InstantRow, ...]] = {}
        self._made_of: _MadeOf | None = None
        self.request_origins = Origins()
        """Origin of the request rate of each workload, unless the settings state it."""
        self._named: dict[Signal, Mapping[WorkloadId, str]] = {}
        """The container that the HPA of a workload names, by signal."""

    def close(self) -> None:
        """Give the connections back."""
        self.client.close()

    def inventory(self, at: datetime) -> Inventory:
        """Return every workload at `at`; its specifications may be `specifications_every` old."""

        def ask(name: str) -> tuple[InstantRow, ...]:
            query = self.queries.hpa_count() if name == HPA_COUNT else self.queries.fact(name, self._rotation.named)
            return self.rows(at_instant(name, query, at), whole=True)

        self._facts_time.is_over(at)
        self.client.silent = False
        partial: list[str] = []

        def counts(name: str) -> dict[WorkloadId, float]:
            answer = self.client.ask(at_instant(name, self.queries.fact(name), at))
            partial.extend([answer.partial] if answer.partial else [])
            with self._promised(name):
                return by_workload(answer)

        replicas, ready = counts("replicas"), counts("ready_replicas")
        specified = self._rotation.specifications(at, replicas, ask, lambda: self._facts_time.is_over(at))
        inventory = inventory_of(at, replicas, ready, specified, self.queries.kinds, narrowed=self.queries.narrowed)
        inventory = replace(inventory, partial=partial[0] if partial else "")
        self.follow(inventory)
        return inventory

    def follow(self, inventory: Inventory) -> None:
        """Ask for the containers that the HPAs of this inventory name from now on."""
        self._named = {signal: _containers_of(inventory, signal) for signal in OF_CONTAINER.values()}

    def cluster_identity(self, at: datetime) -> tuple[frozenset[str], frozenset[str]]:
        """Return the identity of a cluster: the creation of its kube-system, and Prometheus' external labels.

        Each set is empty where it is not known. Labels that distinguish replicas of one Prometheus are left out.
        """
        created = 'kube_namespace_created{namespace="kube-system"$labels}'
        try:
            rows = self.rows(at_instant("identity of the cluster", self.queries.rendered(created), at))
            labels = external_labels(self.client.status("config").get("yaml", ""))
        except (SourceError, yaml.YAMLError):
            return frozenset(), frozenset()
        named = frozenset(f"{name}={text}" for name, text in labels.items() if "replica" not in name)
        return frozenset(f"{row.value:.0f}" for row in rows), named

    def latest(self, signal: Signal, at: datetime) -> Block:
        """The demand of every workload at exactly `at`: one column."""
        grid = Grid(at, MINUTE, 1)
        if signal == REQUESTS and self.queries.detects_requests:
            with self._patient(signal, at):
                return self._of_origins(grid, self._origins(at), at)
        query = self._query(signal, grid.step)
        if not query:
            return _nothing(signal, grid)
        with self._patient(signal, at):
            answer = self.client.ask(at_instant(str(signal), query, at))
            return self._complete(self._block(signal, answer, grid), signal, grid)

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        """Demand at every multiple of `step` from `start` to `end`, in slices of about `samples_per_answer`."""
        grid = grid_between(start, end, step)
        with self._patient(signal, end, grid.points):
            first, *others = self._origins_of(signal, end)
            query = self.queries.requests_of(first, step) if first else self._query(signal, step)
            if not query:
                yield _nothing(signal, grid)
                return
            for piece, answer in self._sliced(signal, query, grid):
                block = self._block(signal, answer, piece)
                if first:
                    yield self._of_origins(piece, others, end, {first: block})
                else:
                    yield self._complete(block, signal, piece)

    def containers(self, at: datetime) -> ContainerFacts:
        """Read the facts about every container at `at`; empty where container queries are disabled."""
        if not self.queries.per_container:
            return ContainerFacts()
        failures: list[SourceError] = []
        for name, query in self.queries.container_facts().items():
            if len(failures) < MAX_FAILED:
                try:
                    self._container_rows[name] = self.rows(at_instant(name, query, at), whole=True)
                except SourceError as error:
                    failures.append(error)
        if failures and not self._container_rows.keys() >= NEEDED_OF_CONTAINERS:
            raise failures[0]
        return replace(facts_of(self._container_rows), unread=tuple(map(str, failures)))

    def container_usage(
        self, signal: Signal, start: datetime, end: datetime, step: timedelta
    ) -> Iterator[ContainerBlock]:
        """Usage of every container's hottest pod, in slices as `history` has them."""
        if not self.queries.per_container:
            return
        query = self.queries.container_usage(signal, step)
        for piece, answer in self._sliced(signal, query, grid_between(start, end, step)):
            with self._promised(f"container_{signal}"):
                block = container_block(answer, piece)
            # The hottest pod may be in the part that is missing: nothing is known then.
            yield replace(block, values=np.full_like(block.values, np.nan)) if answer.partial else block

    def _sliced(self, signal: Signal, query: str, grid: Grid) -> Iterator[tuple[Grid, QueryAnswer]]:
        def ask(piece: Grid) -> QueryAnswer:
            return self.client.ask(over_range(str(signal), query, piece.start, piece.end, piece.step))

        chosen = self._settings
        slices = Slices(grid, first=_FIRST_SLICE, max_points=chosen.max_points, samples=chosen.samples_per_answer)
        return read_ahead(slices, ask)

    def _complete(self, block: Block, signal: Signal, grid: Grid) -> Block:
        """Add the pods and samples behind the values of a block; they are unknown if their query fails.

        CPU and memory come from the same scrapes of pods: of memory it is known for the instant for which CPU was asked
        last. Of points that are further apart than the window of a rate it is not asked.
        """
        block = replace(block, rated=self.queries.is_rate(signal))
        if signal in {MEMORY, MEMORY_CONTAINER} and self._made_of and self._made_of.grid == grid:
            return replace(block, made_of=samples_of(self._made_of.samples, block.ids, self._made_of.ids))
        named = self._containers(signal)
        query = self.queries.of_pods(signal, grid.step, set(named.values()))
        name = f"{signal}_pods"
        if not query or grid.step > self.queries.rate_window or self._back_off.waits(name, grid.end):
            return block
        try:
            answer = self._ask_grid(name, query, grid)
            with self._promised(name):
                samples = pod_samples(block, self._of_named(signal, answer))
        except SourceError as error:
            self._back_off.failed(name, str(error), grid.end)
            return replace(block, warnings=(*block.warnings, f"{error}; {_NOT_KNOWN}"))
        self._back_off.answered(name)
        if signal == CPU:
            self._made_of = _MadeOf(grid, block.ids, samples)
        return replace(block, made_of=samples, partial=block.partial or answer.partial)

    def _ask_grid(self, name: str, query: str, grid: Grid) -> QueryAnswer:
        if grid.points == 1:
            return self.client.ask(at_instant(name, query, grid.start))
        return self.client.ask(over_range(name, query, grid.start, grid.end, grid.step))

    def _block(self, signal: Signal, answer: QueryAnswer, grid: Grid) -> Block:
        with self._promised(str(signal)):
            return block_of(self._of_named(signal, answer), signal, grid.start, grid.step, grid.points)

    def _of_named(self, signal: Signal, answer: QueryAnswer) -> QueryAnswer:
        """Return the series of containers that HPAs name, without the label that says so."""
        return of_containers(answer, self._containers(signal)) if signal.of_container else answer

    def _containers(self, signal: Signal) -> Mapping[WorkloadId, str]:
        return self._named.get(signal, NOTHING_NAMED)

    def rows(self, question: Query, *, whole: bool = False) -> tuple[InstantRow, ...]:
        """Return every series of an instant query; of a `whole` answer, where absence means something."""
        answer = self.client.ask(question)
        if whole and answer.partial:
            raise SourceUnavailable(f"{self.client.where(question.name)}: the answer is partial: {answer.partial}")
        with self._promised(question.name):
            return rows_of(answer)

    @contextmanager
    def _patient(self, signal: Signal, at: datetime, points: int = 1) -> Iterator[None]:
        """Skip a signal for a while after its query took too long: it would take the time of the others.

        A short gap also waits where the signals before it took the time of this cycle.
        """
        if waiting := self._slow_signals.waiting(signal, at):
            raise SourceRefused(waiting)
        if self._signals_time.is_over(at) and points <= SHORT_GAP:
            late = f"answers of {shown_url(self._settings.url)} took over {SIGNALS_SECONDS:.0f} s"
            raise SourceUnavailable(f"{late}; {signal} is queried in the next cycle")
        try:
            yield
        except (SourceTimeout, TooMuch) as error:
            self._slow_signals.failed(signal, str(error), at)
            raise
        self._slow_signals.answered(signal)

    @contextmanager
    def _promised(self, name: str) -> Iterator[None]:
        """Samples are decoded late, so the complaint about them comes late too."""
        try:
            yield
        except MalformedAnswer as error:
            raise SourceRefused(f"{self.client.where(name)}: {error}") from error

    def _query(self, signal: Signal, step: timedelta) -> str:
        named = set(self._containers(signal).values())
        return self.queries.signal(signal, step, named) if named or not signal.of_container else ""

    def origins_at(self, at: datetime) -> dict[str, tuple[WorkloadId, ...]]:
        """The workloads of which each origin of request rates has data."""
        rows = self.rows(at_instant("request origins", self.queries.detection(), at))
        there = {row.labels.get("preset", "") for row in rows}
        return {name: self._of_origin(name, Grid(at, MINUTE, 1)).ids for name in PREFERRED if name in there}

    def _origins_of(self, signal: Signal, at: datetime) -> tuple[str, ...]:
        """Return the origins to query for a signal; one without a name for signals with a single origin."""
        if signal != REQUESTS or not self.queries.detects_requests:
            return ("",)
        return self._origins(at, past=True) or ("",)

    def _origins(self, at: datetime, *, past: bool = False) -> tuple[str, ...]:
        """The origins that workloads have, after a look where one is due."""
        if self.request_origins.due(at, past=past):
            self.request_origins.choose(self.origins_at(at), at)
        return self.request_origins.active

    def _of_origins(
        self, grid: Grid, names: Sequence[str], at: datetime, answered: Mapping[str, Block] = NOTHING_ANSWERED
    ) -> Block:
        """Request rates of every workload from its own origin; some may be answered already."""
        blocks = {**answered, **{name: self._of_origin(name, grid) for name in names}}
        return self.request_origins.merged(blocks, at) if blocks else _nothing(REQUESTS, grid)

    def _of_origin(self, name: str, grid: Grid) -> Block:
        answer = self._ask_grid(f"requests of {name}", self.queries.requests_of(name, grid.step), grid)
        return self._block(REQUESTS, answer, grid)


GLOBAL_SECTION = re.compile(r"^global:.*\n?(?:[ \t].*\n?|\n)*", re.MULTILINE)


def external_labels(config: str) -> dict[str, str]:
    """`global.external_labels` of a Prometheus' configuration; nothing where it has another form.

    No other section is parsed: in large clusters the jobs have a hundred thousand lines, which take many seconds.

    Raises:
        YAMLError: that section is no YAML.
    """
    section = GLOBAL_SECTION.search(config)
    value: object = yaml.safe_load(section[0]) if section else None
    for name in ("global", "external_labels"):
        value = value.get(name) if isinstance(value, dict) else None
    return {str(name): str(text) for name, text in value.items()} if isinstance(value, dict) else {}


def _containers_of(inventory: Inventory, signal: Signal) -> dict[WorkloadId, str]:
    scaled = (workload for workload in inventory.workloads if workload.autoscaler)
    named = ((workload.id, workload.measured_container(signal.resource)) for workload in scaled)
    return {id_: container for id_, container in named if container}


def _nothing(signal: Signal, grid: Grid) -> Block:
    """An answer without workloads: there is no query for this signal."""
    return Block(signal, (), grid.start, grid.step, np.empty((0, grid.points)))
