"""Writers to the cluster, composed from settings: one Lease, one writer for each enabled mode."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from forecaster.actuators.floor.actuator import FloorActuator
from forecaster.actuators.floor.autoscalers import Autoscalers, autoscaler_of
from forecaster.actuators.floor.plan import released
from forecaster.actuators.headroom import QuotaHeadroom, ReserveQuota, Templates
from forecaster.actuators.misread import HpaWarnings
from forecaster.actuators.neighbours import NOT_WATCHED, Concern, CycleNeighbours
from forecaster.actuators.queue import WriteQueue
from forecaster.actuators.release import ReleaseLine, release
from forecaster.actuators.resize.actuator import ResizeActuator
from forecaster.actuators.resize.admitting import InitialActuator
from forecaster.actuators.resize.learned_boost import StartBoosts
from forecaster.actuators.resize.plan import undone as size_undone
from forecaster.actuators.resize.pods import Resizes
from forecaster.actuators.scale.actuator import ScaleActuator
from forecaster.actuators.scale.plan import released as count_released
from forecaster.actuators.scale.scales import Scales
from forecaster.actuators.statuses import (
    LiveStatuses,
    PolicyStatusWriter,
    StatusSender,
    StatusWriter,
    write_policy_status,
)
from forecaster.app.compose import ClusterWriters, election_of, watched_kubeconfig
from forecaster.app.health import WorkloadHealth
from forecaster.app.live_facts import LiveFacts, scalable_kinds
from forecaster.domain.report import Effected
from forecaster.errors import unexpected
from forecaster.kube.client import ApiClient, ApiError
from forecaster.kube.config import client_config_source
from forecaster.kube.lease import REQUEST_SECONDS, Election, is_paused, lease_path
from forecaster.kube.watch import FOLLOWED_CONNECTIONS, Followed
from forecaster.publish.new_pods import NewPodsFile, PauseMark, new_pods_path
from forecaster.resources.neighbours import CPU, HPAS, SCALED_OBJECTS, VPAS
from forecaster.sources.container_queries import throttled_starts
from forecaster.sources.factory import prometheus

if TYPE_CHECKING:
    from contextlib import ExitStack

    from forecaster.actuators.floor.values import LiveAutoscaler
    from forecaster.actuators.writes import AuditLog, WriteRefusal
    from forecaster.config.settings import Settings
    from forecaster.domain.workload import WorkloadId
    from forecaster.ports import Source
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.sources.live import LiveCluster
    from forecaster.sources.live_objects import Misread

CONCERNS = {
    "floor": Concern(frozenset({HPAS, SCALED_OBJECTS})),
    "scale": Concern(frozenset({HPAS, SCALED_OBJECTS, VPAS}), CPU),
    "resize": Concern(frozenset({VPAS})),
}
"""Other controllers, by mode, that must not act on a workload when it is written."""


class ClusterActuator(Protocol):
    """One kind of effect."""

    def receive(self, cycle: OfferedCycle) -> None:
        """The offers that are acted on."""

    def act(self, now: datetime) -> Effected:
        """Write, and return the effect. Raises ApiError."""


class HasLastingRefusals(Protocol):
    """A part that names the workloads it leaves unchanged."""

    @property
    def lasting(self) -> Mapping[WorkloadId, WriteRefusal]:
        """Until their owners do something about it."""


class Actuators:
    """All kinds of effects under one Lease: `OfferReceiver` and `Actuator`. One that fails keeps no other back."""

    def __init__(
        self,
        election: Election,
        parts: Mapping[str, ClusterActuator],
        refusing: Sequence[HasLastingRefusals] = (),
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        """`begin` is called before the first of them acts in a cycle."""
        self.election, self.parts, self._refusing, self._begin = election, parts, refusing, begin

    def refusal(self, id_: WorkloadId) -> tuple[str, str] | None:
        """Return why a workload is left unchanged although its policy asks for a change: a word and a sentence."""
        refusal = next((actuator.lasting[id_] for actuator in self._refusing if id_ in actuator.lasting), None)
        return (str(refusal.code), refusal.message) if refusal else None

    def receive(self, cycle: OfferedCycle) -> None:
        """The offers that are acted on."""
        for actuator in self.parts.values():
            actuator.receive(cycle)

    def act(self, now: datetime) -> Mapping[str, Effected]:
        """Run all actuators; return the effect of each."""
        self._begin()
        return {name: self._acted(name, actuator, now) for name, actuator in self.parts.items()}

    def _acted(self, name: str, actuator: ClusterActuator, now: datetime) -> Effected:
        try:
            return actuator.act(now)
        except Exception as error:  # noqa: BLE001  a boundary by actuator: the others go on
            message = str(error) if isinstance(error, ApiError) else unexpected(error)
            reasons = Counter({("failed", "cycle"): 1})
            return Effected(self.election.leading(), Counter(), Counter(), (f"{name}: {message}",), reasons)


def cluster_writers(
    settings: Settings,
    log: AuditLog,
    parts: ExitStack,
    live: LiveFacts | None,
    election: Election | None,
    table: Path,
    source: Source | None = None,
    unjudged: Callable[[WorkloadId], bool] = lambda _: False,
) -> ClusterWriters:
    """Return the enabled writers, under one election; `table` is read by the serving process, `source` reports errors.

    `unjudged` says whether the gate of a workload has not been judged since the start.

    Raises:
        ClientConfigError: the API server cannot be reached.
    """
    cluster = live.source.live if live else None
    enabled = (settings.floor, settings.scale, settings.resize, settings.resources)
    fence = election or (election_of(settings, parts) if any(section.enabled for section in enabled) else None)
    if live and fence and settings.acting.kubeconfig == watched_kubeconfig(settings):
        live.heard = fence.answered_at

    def misread() -> Sequence[Misread]:
        return live.source.misread if live else ()

    acting = actuators(settings, log, parts, cluster, fence, misread, table, source, unjudged)
    refusal = acting.refusal if acting else lambda _: None
    return ClusterWriters(
        acting,
        status_writer(settings, log, parts, cluster, fence, refusal),
        policy_status_writer(settings, log, parts, cluster, fence),
    )


def status_writer(
    settings: Settings,
    log: AuditLog,
    parts: ExitStack,
    live: LiveCluster | None,
    election: Election | None,
    refusal: Callable[[WorkloadId], tuple[str, str] | None] = lambda _: None,
) -> StatusWriter | None:
    """Return the writer of the status of PredictiveAutoscalers, in its own thread; None where they are not watched.

    `refusal` says why a workload is left unchanged although its policy asks for a change.
    """
    stated = live.stated if live else None
    if stated is None or election is None:
        return None
    client = _status_client(settings)
    writer = StatusWriter(
        LiveStatuses(client).write,
        election,
        settings.policies,
        lambda: list(stated.autoscalers.objects.values()),
        log,
        [mode for mode in ("floor", "scale") if not getattr(settings, mode).enabled],
        refusal,
    )
    _run_in_thread(writer.sender, client, "statuses", parts)
    return writer


def policy_status_writer(
    settings: Settings, log: AuditLog, parts: ExitStack, live: LiveCluster | None, election: Election | None
) -> PolicyStatusWriter | None:
    """Return the writer of the status of PredictivePolicies, in its own thread; None where they are not watched."""
    stated = live.stated if live else None
    if stated is None or election is None:
        return None
    client, policies = _status_client(settings), stated.policies.objects
    write = partial(write_policy_status, client)
    writer = PolicyStatusWriter(write, election, settings.policies, lambda: list(policies.values()), log)
    _run_in_thread(writer.sender, client, "policy-statuses", parts)
    return writer


def _status_client(settings: Settings) -> ApiClient:
    source = client_config_source(watched_kubeconfig(settings))
    return ApiClient(source, connections=1, timeout=REQUEST_SECONDS).configured()


def _run_in_thread(sender: StatusSender[Any], client: ApiClient, name: str, parts: ExitStack) -> None:
    """Run the sender in a thread of its own, which `parts` ends."""
    thread = threading.Thread(target=sender.run, name=name, daemon=True)
    thread.start()
    parts.callback(client.close)
    parts.callback(thread.join)
    parts.callback(sender.close)


def actuators(
    settings: Settings,
    log: AuditLog,
    parts: ExitStack,
    live: LiveCluster | None = None,
    election: Election | None = None,
    misread: Callable[[], Sequence[Misread]] = tuple,
    table: Path | None = None,
    source: Source | None = None,
    unjudged: Callable[[WorkloadId], bool] = lambda _: False,
) -> Actuators | None:
    """Return the actuators, under the election of this replica; None where none is enabled.

    Raises:
        ClientConfigError: the API server cannot be reached.
    """
    if not (settings.floor.enabled or settings.scale.enabled or settings.resize.enabled):
        return None
    shared = _shared(settings, log, parts, live, election, source)
    enabled: dict[str, ClusterActuator] = {}
    refusing: list[HasLastingRefusals] = [*shared.writers.values()]
    if settings.floor.enabled:
        enabled["floor"] = shared.floor(unjudged)
    if settings.scale.enabled:
        enabled["scale"] = shared.scale()
    if settings.resize.enabled:
        enabled["resize"] = shared.resize()
        if settings.resize.initial and table:
            enabled["initial"] = initial = shared.initial(new_pods_path(table), start_boosts(settings, parts, table))
            refusing.append(initial)
    enabled["warnings"] = HpaWarnings(shared.client, misread, shared.election, settings.acting)
    return Actuators(shared.election, enabled, refusing, shared.neighbours.begin)


@dataclass(frozen=True, slots=True, eq=False)
class SharedParts:
    """Parts shared by the modes; each method makes one mode."""

    settings: Settings
    election: Election
    facts: LiveCluster | None
    """Watches of the cluster that is written to."""
    client: ApiClient
    reader: ApiClient
    hpas: Autoscalers
    pods: Resizes
    neighbours: CycleNeighbours
    health: WorkloadHealth
    headroom: Callable[[], ReserveQuota]
    writers: Mapping[str, WriteQueue]

    def floor(self, unjudged: Callable[[WorkloadId], bool]) -> FloorActuator:
        """`minReplicas` of HPAs."""
        settings, writer = self.settings, self.writers["floor"]
        given = self.hpas, writer, settings.policies, settings.floor, self.neighbours, self.health, self.headroom
        return FloorActuator(*given, unjudged)

    def scale(self) -> ScaleActuator:
        """Counts of workloads without an HPA."""
        settings, writer = self.settings, self.writers["scale"]
        scales = Scales(self.client, scalable_kinds(settings), dry_run=settings.acting.dry_run, reader=self.reader)
        return ScaleActuator(
            scales,
            self.hpas.listed,
            writer,
            settings.policies,
            settings.scale,
            self.neighbours,
            self.health,
            self.headroom,
        )

    def resize(self) -> ResizeActuator:
        """Sizes of running pods."""
        settings, running = self.settings, self.facts.running if self.facts else lambda _: None
        writer = self.writers["resize"]
        return ResizeActuator(
            self.pods, running, writer, settings.policies, settings.resize, self.neighbours, self.health
        )

    def initial(self, path: Path, starts: StartBoosts) -> InitialActuator:
        """Return the actuator for sizes of new pods, which the webhook reads from a file."""
        settings, election = self.settings, self.election
        election.tell_pause = PauseMark(path).put
        daemons = self.facts.daemons if self.facts else dict
        interval, acting, policies = settings.cycle.interval, settings.acting, settings.policies
        return InitialActuator(self.pods, path, interval, election, acting, policies, self.neighbours, daemons, starts)


def start_boosts(settings: Settings, parts: ExitStack, table: Path) -> StartBoosts:
    """Restore the start-up usage learned by the previous process; `parts` closes its client."""
    given = NewPodsFile(new_pods_path(table)).latest()
    known = {id_: size.boosts for id_, size in given.by_workload().items() if size.boosts} if given else {}
    source = prometheus(settings.prometheus, settings.queries, settings.signals)
    parts.callback(source.close)
    return StartBoosts(partial(throttled_starts, source), known)


def _shared(
    settings: Settings,
    log: AuditLog,
    parts: ExitStack,
    live: LiveCluster | None,
    election: Election | None,
    source: Source | None,
) -> SharedParts:
    """Clients, which `parts` close, and what reads and writes through them."""
    acting = settings.acting
    facts = live if acting.kubeconfig == watched_kubeconfig(settings) else None  # it may be of another cluster
    rights = client_config_source(acting.kubeconfig)
    election = election or election_of(settings, parts)
    client = ApiClient(rights, timeout=REQUEST_SECONDS, may_write=election.leading).configured()
    reader = ApiClient(rights, connections=1)
    parts.callback(client.close)
    parts.callback(reader.close)
    followed = Followed(ApiClient(rights, connections=FOLLOWED_CONNECTIONS))
    parts.callback(followed.close)
    neighbours = CycleNeighbours(reader, neighbour_paths(settings), followed, facts.scaling if facts else NOT_WATCHED)
    rules, templates = Resizes(reader, _itself, followed=followed), Templates(reader, scalable_kinds(settings))
    return SharedParts(
        settings,
        election,
        facts,
        client,
        reader,
        Autoscalers(client, dry_run=acting.dry_run, reader=reader, watched=lambda: watched_autoscalers(facts)),
        Resizes(client, facts.above if facts else _itself, dry_run=acting.dry_run, reader=reader, followed=followed),
        neighbours,
        WorkloadHealth(facts, source, settings.policies, log),
        lambda: QuotaHeadroom(rules.admission(), templates.of).reserve,
        {
            name: WriteQueue(name, election, acting, log, conflict=partial(neighbours.since, concern=concern))
            for name, concern in CONCERNS.items()
        },
    )


def neighbour_paths(settings: Settings) -> tuple[str, ...]:
    """Collections in which the modes that are enabled look for what else scales or sizes workloads."""
    counts, sizes = settings.floor.enabled or settings.scale.enabled, settings.scale.enabled or settings.resize.enabled
    return ((SCALED_OBJECTS,) if counts else ()) + ((VPAS,) if sizes else ())


def _itself(owner: WorkloadId) -> WorkloadId:
    return owner


def watched_autoscalers(live: LiveCluster | None) -> list[LiveAutoscaler] | None:
    """The HPAs that are watched; None where none are, or not all are known now."""
    hpas = live.autoscalers() if live else None
    if hpas is None:
        return None
    policies = ((hpa, hpa.spec.behavior.scale_up.select_policy if hpa.spec.behavior else "") for hpa in hpas)
    return [autoscaler_of(hpa.meta, hpa.scaled, hpa.spec.bounds, hpa.current, up) for hpa, up in policies]


def released_objects(
    client: ApiClient,
    settings: Settings,
    now: datetime,
    *,
    expired: bool,
    dry_run: bool,
    chosen: Callable[[str, str], bool],
    at_once: bool = False,
) -> Iterator[ReleaseLine]:
    """Restore the owners' values and yield each object. With `expired` only floors that ran out.

    A count falls only `at_once`; until then its line states the target. A pause also freezes expiry: it is declared in
    the middle of an incident, when counts must not fall.

    Raises:
        ApiError: the Lease or the objects cannot be read, or the API server does not answer.
    """
    lease = lease_path(*settings.acting.lease.split("/"))
    if expired and (settings.acting.paused or is_paused(client, lease)):
        yield ReleaseLine(f"{settings.acting.lease}: writes are paused; floors that ran out stay until the pause ends")
        return
    hpas = Autoscalers(client, dry_run=dry_run)
    floors = (hpa for hpa in hpas.listed(marked=True) if chosen(hpa.namespace, hpa.name))
    yield from release(hpas, floors, lambda hpa: released(hpa, now, expired=expired), now)
    if expired:
        return
    pods = Resizes(client, _itself, dry_run=dry_run)
    sized = (pod for pod in pods.marked(settled=True) if chosen(pod.namespace, pod.name))
    yield from release(pods, sized, lambda pod: size_undone(pod, "released by command"), now)
    scales = Scales(client, scalable_kinds(settings), dry_run=dry_run)
    counts = (scale for scale in scales.marked() if chosen(scale.id.namespace, scale.id.name))
    yield from release(scales, counts, lambda scale: count_released(scale, at_once=at_once), now)
