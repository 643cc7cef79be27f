"""Parts of the demo: recorded load behind an endpoint on loopback, and the service's own cycle that reads it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from forecaster import __version__
from forecaster.app.child import ServingProcess
from forecaster.app.compose import single_cycle
from forecaster.app.facts import FactsServer
from forecaster.app.outlets import refused
from forecaster.app.traces import REQUESTS_METRIC, of_recording
from forecaster.config.settings import Settings, parse
from forecaster.cycle.benefit import LiveBenefit
from forecaster.cycle.run import Cycle, Outcome
from forecaster.cycle.workload_facts import encoded_facts
from forecaster.domain.decision import Recommendation, Scale
from forecaster.domain.policies import Policies
from forecaster.domain.report import CycleReport
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import WorkloadId
from forecaster.forecasting.peaks import Paths
from forecaster.publish.beside import BENEFIT_KEY
from forecaster.publish.health import HealthHistory, settings_in_force
from forecaster.publish.pictures import PictureFile
from forecaster.publish.publisher import OfferPublisher
from forecaster.publish.table import pictures_path
from forecaster.publish.table_file import TableFile
from forecaster.replay.account import Run
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.comparison import Comparison
from forecaster.replay.engine import NO_FLOOR, SimulatedWorkload, Simulation
from forecaster.replay.realised import DecidedCount, outcome_of
from forecaster.replay.setup import Setup, setup_of
from forecaster.replay.traces import measurements_of
from forecaster.serving.options import Address, ServingOptions
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.recorded import RecordedFleet, Recording, load_recording

Simulated = Mapping[WorkloadId, SimulatedWorkload]
Setups = Mapping[WorkloadId, Setup]

DEMO_HISTORY = timedelta(days=11)
"""History before the play begins: beyond the span that trained the shipped prior."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A running endpoint, the pods that it shows, and a cycle that reads it."""

    url: str
    recording: Recording
    fleet: RecordedFleet
    policies: Policies
    cycle: Cycle
    begin: datetime
    reports: deque[CycleReport] = field(default_factory=lambda: deque(maxlen=1))
    """Report of the last cycle that was played."""


@contextmanager
def staged() -> Iterator[Stage]:
    """Set the demo up; the endpoint stops when the block ends, however it ends."""
    recording = load_recording()
    begin = recording.start - MINUTE + DEMO_HISTORY
    fleet = recording.fleet(begin)
    with EmbeddedPrometheus(recording, Settings().queries, fleet) as endpoint:
        settings = settings_for(endpoint.url)
        cycle = single_cycle(settings, begin, goes_on=False)
        yield Stage(endpoint.url, recording, fleet, settings.policies, cycle, begin)


NOTE = "recorded load, played by the demo: no cluster is behind it"
STATED_SETTINGS = ("prometheus.url", "prometheus.read_timeout_seconds", "policy.horizontal.requests_metric")
"""Settings of the demo that are not the default."""
PATIENCE_SECONDS = 600.0
"""Time-out of the demo's own endpoint, a thread of this process: on a busy machine answers are only late."""
NEVER_STALE = timedelta(days=100 * 365)
"""Recorded samples never count as stale."""


@contextmanager
def on_dashboard(stage: Stage, port: int) -> Iterator[str]:
    """The cycles of a stage are published and served on loopback while the block lasts; gives the dashboard's address.

    Raises:
        StoreError: nothing can listen on that port.
    """
    with TemporaryDirectory(prefix="forecaster-demo-") as directory:
        path = Path(directory) / "recommendations.table"
        stage.cycle.effects.publisher = _publisher(stage, path)
        facts = FactsServer(partial(encoded_facts, stage.cycle), path.parent)
        options = ServingOptions(stale_after_seconds=NEVER_STALE.total_seconds(), facts=str(facts.path))
        serving = ServingProcess(path, Address("127.0.0.1", port), options=options, port_stated="--port")
        serving.start()
        facts.start()
        try:
            yield f"http://{serving.address}/"
        finally:
            facts.close()
            serving.stop()


def _publisher(stage: Stage, path: Path) -> OfferPublisher:
    """Return the publisher of `forecaster run`: the table, and the pictures beside it."""
    cycle, paths, signals = stage.cycle, Paths(), Settings().signal_table
    cycle.forecaster.paths = paths
    given: dict[str, Any] = {
        "interval": MINUTE,
        "version": __version__,
        "signals": signals,
        "paths": lambda: paths.by_workload,
    }
    settings = settings_for(stage.url).model_dump(mode="json")
    health = HealthHistory(settings_in_force(settings, dict.fromkeys(STATED_SETTINGS, "demo")))
    table = TableFile(path, last_report=lambda: next(iter(stage.reports), None), note=NOTE, health=health, **given)
    table.nodes = lambda: refused("no cluster is behind recorded load")
    benefit = cycle.benefit = LiveBenefit()
    table.beside[BENEFIT_KEY] = lambda: benefit.texts
    pictures = PictureFile(pictures_path(path), window=cycle.history.window, **given)
    return OfferPublisher(stage.policies, {"table": table, "pictures": pictures, "benefit": benefit})


def settings_for(url: str) -> Settings:
    """Return the settings that a user would write: the address, and the name of the request rate; the rest is default.

    Only the time-out is longer, because the endpoint shares the cores with the demo itself.
    """
    prometheus = {"url": url, "read_timeout_seconds": PATIENCE_SECONDS}
    policy = {"horizontal": {"requests_metric": REQUESTS_METRIC}}
    return parse({"prometheus": prometheus, "policy": policy}, "demo")


# The play: one cycle a minute, and two clusters that live through the same minutes.
#
# In one the HPAs are alone. In the other the recommended count is their floor: what it would be to act on the
# recommendations, which the service does not do. The endpoint shows the pods of the second.


class PlayedMinute(NamedTuple):
    """A minute has been played: the cycle at its beginning, and both clusters at its end, `now`."""

    now: datetime
    outcome: Outcome
    plain: Simulated
    floored: Simulated


def setups_of(stage: Stage) -> tuple[Setups, Mapping[WorkloadId, str]]:
    """The workloads that can be compared, and the others with the reason."""
    stated = ((workload, stage.policies.of(workload.id).horizontal) for workload in stage.fleet.workloads())
    answers = {workload.id: setup_of(workload, policy) for workload, policy in stated}
    setups = {id_: setup for id_, setup in answers.items() if isinstance(setup, Setup)}
    return setups, {id_: reason for id_, reason in answers.items() if isinstance(reason, str)}


def play(stage: Stage, setups: Setups, length: timedelta) -> Iterator[PlayedMinute]:
    """Minute after minute from the stage's beginning."""
    plain, floored = simulation(stage, setups, length), simulation(stage, setups, length)
    floors: dict[WorkloadId, int] = {}
    for minute in range(length // MINUTE):
        now = stage.begin + minute * MINUTE
        outcome = stage.cycle.run(now)
        stage.reports.append(outcome.report)
        floors |= floors_of(outcome.recommendations)
        alone = dict(zip(setups, plain.minute(minute, [NO_FLOOR] * len(setups)), strict=True))
        raised = dict(zip(setups, floored.minute(minute, [floors.get(id_, NO_FLOOR) for id_ in setups]), strict=True))
        show_pods(stage.fleet, raised, now + MINUTE)
        yield PlayedMinute(now + MINUTE, outcome, alone, raised)


def simulation(stage: Stage, setups: Setups, length: timedelta) -> Simulation:
    """HPAs and pods of the recorded load, each workload with the pods that the recording gives it, all ready."""
    measurements = measurements_of(of_recording(stage.recording), stage.begin, length // MINUTE)
    fleet, workloads = stage.recording.fleet(stage.begin), stage.recording.workloads
    rows = {workload.id: row for row, workload in enumerate(workloads)}
    runs = [Run(rows[id_], fleet[id_], setup, fleet[id_].replicas) for id_, setup in setups.items()]
    return Simulation(runs, measurements)


def floors_of(recommendations: Iterable[Recommendation]) -> dict[WorkloadId, int]:
    """The floors that change; a hold leaves the floor where it is."""
    return {row.id: row.replicas.replicas for row in recommendations if isinstance(row.replicas, Scale)}


TARGET_SWEEP = (1.05, 0.95, 0.9, 0.85, 0.75, 0.65)
"""The targets of the plain HPA as shares of its owner's; at 0.65 it spends up to 54 % more."""


def compared(stage: Stage, decisions: Mapping[WorkloadId, Sequence[DecidedCount]], until: datetime) -> Comparison:
    """Compare the counts of a play, as floors, with the plain HPA at its own and at other targets.

    More pods always have less shortage, so the floors are compared with the choice of any owner without a forecast:
    lower targets until the plain HPA spends the same pod-hours.
    """
    return outcome_of(
        of_recording(stage.recording),
        decisions,
        stage.policies,
        begin=stage.begin,
        until=until,
        assumed=Assumptions(shares=TARGET_SWEEP),
        played=True,
    )


def show_pods(fleet: RecordedFleet, simulated: Simulated, now: datetime) -> None:
    """Set the pods that the endpoint reports."""
    for id_, pods in simulated.items():
        shown = fleet[id_]
        if (shown.replicas, shown.ready_replicas) != (pods.desired, pods.ready):
            fleet.scale(id_, pods.desired, at=now, ready_replicas=pods.ready)
