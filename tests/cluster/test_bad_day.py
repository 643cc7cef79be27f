"""A bad day: at no second does any integration publish a number that a plain HPA would not have been safe with.

An hour of played time. Pods are those of a real API server and scaled by the real HPA controller, samples lie in a real
Prometheus, both of our processes run as `app` composes them. `-s` shows the day as a table.
"""

from __future__ import annotations

import math
import os
import signal
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import pytest

from forecaster.domain.window import MINUTE, last_multiple
from tests.support.control_plane.workloads import replicas
from tests.support.every_way import DEMAND, FLOOR, EveryWay
from tests.support.exporters import NAMESPACE, none_of
from tests.support.played_day import (
    TARGET,
    Arrangement,
    Played,
    PlayedDay,
    ProcessCounts,
    played_day,
    scaled_by_hpas,
    until_hpas_have_read,
)
from tests.support.played_time import PlayedTime
from tests.support.prometheus import find_binaries
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.support.control_plane.api import Api
    from tests.support.control_plane.deployed import Deployed
    from tests.support.exporters import ScrapedWorkload

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]

PLAYED_AGO = timedelta(hours=8)
"""The day is played in the past of the real clock: six hours ahead of it still are."""
CALM, GROWN = 3.0, 8.0
"""Cores that ten pods need, and 26 pods."""
LAG = timedelta(minutes=4)
"""Age that a plain HPA's values may have: a rate over two minutes, its scrapes, a cycle."""
AHEAD = timedelta(minutes=10)
"""Reach of the policy's forecasts: a lead time and its window."""
RAISE = 1.25
"""Factor that the policy lets a forecast that acts add: a p90 of the peak lies above the peak of most days."""
WAYS = {
    "external metrics",
    "custom metrics",
    "KEDA scaler",
    "KEDA metrics-api",
    "remote write",
    "gauges",
    "WatermarkPodAutoscaler",
    "Kapacity",
    "REST",
}
LOOKS = (timedelta(seconds=5), timedelta(minutes=1, seconds=4))
"""Instants after a cycle: as soon as its table is served, and just before the next cycle."""
POLICY = {
    "policy": {
        "mode": "publish",
        "horizontal": {"tolerance": 0.0},
    },
    "overrides": [{"match": {"name": "checkout"}, "policy": {"horizontal": {"gate": False}}}],
}


class Truth(NamedTuple):
    """Fewest and most replicas that a plain HPA on complete data asks for."""

    least: int
    """Replicas for the lowest demand that a plain HPA can just see."""
    most: int
    """Replicas for the highest demand that it sees, or that is coming as far as a forecast may look."""


def safe(count: int, truth: Truth, present: int) -> bool:
    """Whether a count lies between the lesser of needed and present and the greater of justified and present."""
    return min(truth.least, present) <= count <= max(truth.most, present)


def truth_of(played: Played, at: datetime, *, acting: bool) -> Truth:
    """Bounds for a workload at an instant, with the raise of a forecast that acts."""
    step = timedelta(seconds=30)
    past = [replicas_for(played.demand(at - k * step)) for k in range(LAG // step + 1)]
    coming = [replicas_for(played.demand(at + k * step) * (RAISE if acting else 1.0)) for k in range(AHEAD // step + 1)]
    return Truth(min(past), max(past + coming))


def replicas_for(cores: float) -> int:
    return math.ceil(round(cores / TARGET, 6))


@dataclass
class Incident:
    """Demand that grows at an instant and is over at another."""

    since: datetime | None = None
    until: datetime | None = None

    def demand(self, at: datetime) -> float:
        begun = self.since is not None and at > self.since
        return GROWN if begun and (self.until is None or at <= self.until) else CALM


class Line(NamedTuple):
    """One look at a workload."""

    fault: str
    when: str
    workload: str
    shown: str
    present: int


@dataclass
class Watch:
    """Looks at everything that is published, and keeps what was not safe."""

    day: PlayedDay
    incident: Incident
    ways: EveryWay
    counts: ProcessCounts
    lines: list[Line] = field(default_factory=list)
    unsafe: list[str] = field(default_factory=list)
    looks: int = 0
    numbers: int = 0
    ways_heard: set[str] = field(default_factory=set)
    fault: str = ""
    when: str = ""
    counts_before: dict[str, int] = field(default_factory=dict)
    """Count of each workload at the last look, or since then by a person."""

    def minutes(self, count: int, *, starting: tuple[str, ...] = ()) -> None:
        """Play so many minutes, with a cycle and all looks in each."""
        for _ in range(count):
            self.day.until_settled(starting=starting)
            self.look_at(self.day.minute())

    def look_at(self, fleet: list[ScrapedWorkload]) -> None:
        self._until_served()
        for past in LOOKS:
            self.day.tell(past)
            for played, scraped in zip(self.day.workloads, fleet, strict=False):
                self._look(played, scraped)
            if past is LOOKS[0]:
                until_hpas_have_read(self.day, self.counts)

    def person_scales(self, name: str, count: int) -> None:
        self.day.scale(name, count)
        self.counts_before[name] = count

    def _until_served(self) -> None:
        """A table that the computing process has just written is served by the other one."""
        at = self.ways.published_at()
        wait_until(lambda: self.counts.serves(at), goal=f"the table of {at}")

    def _look(self, played: Played, scraped: ScrapedWorkload) -> None:
        before = self.present(played)
        answers = self.ways.answers(scraped)
        present = sorted((before, self.present(played)))
        truth = truth_of(played, self.day.at, acting=played.name == "checkout")
        self.looks += len(answers)
        for answer in answers:
            if answer.count is None:
                continue
            self.numbers += 1
            self.ways_heard.add(answer.way)
            # A floor alone lowers nothing.
            count = max(answer.count, present[0]) if answer.metric == FLOOR else answer.count
            if not any(safe(count, truth, there) for there in present):
                self._note(f"{played.name} {answer}, {truth}, {present}")
        was = self.counts_before.get(played.name, present[0])
        if present[0] < min(truth.least, was):
            self._note(f"{played.name} was scaled from {was} to {present[0]}")
        self.counts_before[played.name] = present[0]
        first = next(answer for answer in answers if answer.metric == DEMAND)
        shown = first.why.split(" ")[0] if first.count is None else f"{first.count} ({first.why})"
        self.lines.append(Line(self.fault, self.when, played.name, shown, present[1]))

    def _note(self, text: str) -> None:
        self.unsafe.append(f"{self.fault}, {self.when}, {self.day.at:%H:%M}: {text}")

    def present(self, played: Played) -> int:
        return replicas(self.day.api, played.name, NAMESPACE).desired

    @contextmanager
    def story(self, fault: str) -> Iterator[None]:
        """Play the fault and two minutes after it."""
        self.lines += [line._replace(fault=fault, when="before") for line in self.lines[-len(self.day.workloads) :]]
        self.fault, self.when = fault, "during"
        yield
        self.when = "after"
        self.minutes(2)

    def table(self) -> str:
        """The day: what the external metrics API said, in replicas, and how many there were."""
        rows = ["| fault | workload | before | during | after |", "| --- | --- | --- | --- | --- |"]
        for fault, lines in groupby(filter(lambda line: line.fault, self.lines), lambda line: line.fault):
            of_fault = list(lines)
            for workload in self.day.workloads:
                cells = [summary(of_fault, when, workload.name) for when in ("before", "during", "after")]
                rows.append(f"| {fault} | {workload.name} | {' | '.join(cells)} |")
        return "\n".join(rows)


def summary(lines: list[Line], when: str, workload: str) -> str:
    """Answers published about a workload, without repetitions, and its replicas."""
    mine = [line for line in lines if (line.when, line.workload) == (when, workload)]
    if not mine:
        return ""
    shown = " → ".join(text for text, _ in groupby(line.shown for line in mine))
    there = " → ".join(str(count) for count, _ in groupby(line.present for line in mine))
    return f"{shown}; {there} pods"


def state_away(watch: Watch) -> None:
    watch.day.exporters.state_away = True
    watch.minutes(3)
    watch.day.exporters.state_away = False


def half_of(pod: str) -> bool:
    return sum(pod.encode()) % 2 == 0


def half_unseen(watch: Watch) -> None:
    watch.day.exporters.unseen = half_of
    watch.minutes(3)
    watch.day.exporters.unseen = none_of


def half_of_all(watch: Watch) -> None:
    exporters = watch.day.exporters
    exporters.unseen = exporters.unlisted = half_of
    watch.minutes(3)
    exporters.unseen = exporters.unlisted = none_of


def half_answers(watch: Watch) -> None:
    watch.day.proxy.halves = True
    watch.minutes(3)
    watch.day.proxy.mended()


def slow(text: str) -> Callable[[Watch], None]:
    """Let Prometheus answer queries with that text slowly."""

    def play(watch: Watch) -> None:
        proxy = watch.day.proxy
        before, proxy.slow = proxy.kept_waiting, text
        watch.minutes(2)
        assert proxy.kept_waiting > before, "nothing was slow"
        proxy.mended()

    return play


def rollout(watch: Watch) -> None:
    """Roll out a Deployment three pods at a time; each uses a core for two minutes before it is ready."""
    watch.day.roll_out("cart")
    while watch.day.starting("cart"):
        watch.minutes(2, starting=("cart",))
        watch.day.become_ready("cart")


def outage(watch: Watch) -> None:
    """Demand grows unseen, which a person sees; then both processes are killed."""
    day = watch.day
    day.proxy.away = True
    watch.minutes(1)
    watch.incident.since = day.at
    watch.minutes(4)
    watch.person_scales("web", 30)
    watch.minutes(7)
    assert watch.present(day.workloads[0]) == 30, "the person was asked back"
    restarted(watch)
    watch.minutes(1)
    day.proxy.mended()


def restarted(watch: Watch) -> None:
    """Both processes are killed and start again."""
    process = watch.counts.process
    before = process.pid
    assert before
    os.kill(before, signal.SIGKILL)
    watch.day.start()
    wait_until(lambda: process.pid not in {None, before}, goal="another serving process")
    wait_until(watch.counts.answers, goal="the serving process")
    watch.look_at(watch.day.cluster())


def killed(watch: Watch) -> None:
    """Kill and restart both processes while demand is what it was before it grew."""
    watch.incident.until = watch.day.at
    restarted(watch)


def clock_jumps(watch: Watch) -> None:
    watch.day.wrong_by = timedelta(hours=6)
    watch.minutes(2)
    watch.day.wrong_by = timedelta()


STORIES: Mapping[str, Callable[[Watch], None]] = {
    "kube-state-metrics is away": state_away,
    "half of the pods have no samples of cAdvisor": half_unseen,
    "half of the pods are in no series": half_of_all,
    "half of each answer is missing, status 200": half_answers,
    "limits of pods are not answered in time": slow("kube_pod_container_resource_limits"),
    "CPU is not answered in time": slow("container_cpu_usage_seconds_total"),
    "a rollout that uses a core a pod to start": rollout,
    "Prometheus is away; demand grows, a person scales, a restart": outage,
    "both processes are killed": killed,
    "the clock is six hours ahead, and back": clock_jumps,
    "calm": lambda watch: watch.minutes(2),
}


def test_at_no_second_of_a_bad_day_is_an_unsafe_number_published(watch: Watch) -> None:
    watch.minutes(1)
    for fault, play in STORIES.items():
        with watch.story(fault):
            play(watch)
    print(f"\n{watch.table()}\n\n{watch.looks} answers were read, {watch.numbers} of them numbers.")  # noqa: T201
    assert watch.ways_heard == WAYS, "an integration has said nothing all day"
    assert not watch.unsafe, "\n".join(watch.unsafe)
    web, _, cart = map(watch.present, watch.day.workloads)
    assert (web, cart) == (10, 10), "when all is over the counts are those of the demand"


@pytest.fixture
def watch(deployed: Deployed, tmp_path: Path) -> Iterator[Watch]:
    """The day with everything set up and every HPA reading us."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no prometheus and promtool: run .ci/prometheus")
    deployed.table.unlink()
    deployed.stale_after_seconds = None
    clock, start = PlayedTime(tmp_path / "now"), last_multiple(datetime.now(UTC) - PLAYED_AGO, MINUTE)
    until_there_is_a_namespace(deployed.cluster.api)
    incident = Incident()
    workloads = (
        Played("web", 10, incident.demand),
        Played("checkout", 7, lambda at: wave(at - start)),
        Played("cart", 10, lambda _: CALM),
    )
    arranged = Arrangement(clock, start, workloads, POLICY)
    with played_day(deployed, binaries, tmp_path, arranged) as day:
        day.minute()
        with contextmanager(deployed.serve)(*clock.serving) as process:
            deployed.cluster.until_available()
            scaled_by_hpas(day)
            with (
                closing(EveryWay(deployed, clock, day.exporters.url)) as ways,
                closing(ProcessCounts(process)) as counts,
            ):
                yield Watch(day, incident, ways, counts)
    deployed.cluster.kubectl("delete", "hpa,deployment", "--all", f"--namespace={NAMESPACE}")


def wave(passed: timedelta) -> float:
    """Demand that goes from two to five cores in the hour of the day, as in every two hours before it."""
    return 3.5 - 1.5 * math.cos(passed / timedelta(hours=2) * 2 * math.pi)


def until_there_is_a_namespace(api: Api) -> None:
    api.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    wait_until(lambda: api.has("ServiceAccount", "default", NAMESPACE), goal="the account of the namespace")
