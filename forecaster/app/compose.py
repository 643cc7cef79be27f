"""Builds cycles from settings: which implementation stands behind each port."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from threadpoolctl import threadpool_limits

from forecaster.app.clock import current
from forecaster.cycle.decide import Decider
from forecaster.cycle.gates import ForecastGates
from forecaster.cycle.lead_times import LeadTimes
from forecaster.cycle.observed import Observed
from forecaster.cycle.run import Cycle, Effects
from forecaster.cycle.sizes import PodSizes
from forecaster.cycle.steps import expect_records
from forecaster.errors import StoreError
from forecaster.forecasting.forecaster import FITS, Forecaster
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source, is_pod
from forecaster.kube.lease import REQUEST_SECONDS, Election, ElectionThread, lease_path
from forecaster.sources.factory import close, origins_of, source_of
from forecaster.store.history import HistoryStore
from forecaster.store.state import ObservedFile

if TYPE_CHECKING:
    from forecaster.actuators.statuses import PolicyStatusWriter, StatusWriter
    from forecaster.app.effects import Actuators
    from forecaster.app.live_facts import LiveFacts
    from forecaster.app.telemetry import Log
    from forecaster.config.settings import Settings
    from forecaster.domain.decision import Recommendation
    from forecaster.domain.report import ForecastScore
    from forecaster.domain.workload import WorkloadId
    from forecaster.ports import Histories, Source, StageWatch
    from forecaster.publish.decided import DecidedRows
    from forecaster.publish.publisher import OfferReceiver
    from forecaster.sources.request_origins import Origins
    from forecaster.store.signing import StateKeys

SCORES_AT_ONCE = 1_000_000
JUDGED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Nowhere:
    """Publisher and ledger of a command that only prints."""

    def publish(self, at: datetime, recommendations: DecidedRows) -> None:
        """Publish nothing."""

    def record(self, at: datetime, records: Sequence[Recommendation], present: Sequence[WorkloadId] = ()) -> None:
        """Store nothing."""

    def score(self, scores: Sequence[ForecastScore]) -> None:
        """Store nothing."""


def single_cycle(
    settings: Settings,
    now: datetime,
    *,
    source: Source | None = None,
    shown: Callable[[WorkloadId], bool] = lambda _: True,
    watch: StageWatch | None = None,
    goes_on: bool = True,
) -> Cycle:
    """A cycle that fits everything at once and leaves no trace: for `once`, `explain` and tests.

    Forecasts that were not judged yet are judged at once, of the workloads that are `shown` first, and so many that
    it takes some seconds.

    Where a service keeps its state in the directory of the settings, what it has seen of workloads is read there if
    the cycle `goes_on` from it: what is recorded does not.
    """
    observed = nothing_observed(settings)
    observed.gates = ForecastGates(JUDGED_AT_ONCE, shown, settings.forecast.model)
    source = source or _source_once(settings)
    if goes_on:
        with suppress(StoreError):  # whose file that is says so itself
            observed_file(settings, observed).load()
        with suppress(StoreError):
            if (origins := origins_file(settings, source)) is not None:
                origins.load()
    return build_cycle(
        settings,
        source,
        HistoryStore(settings.signal_table.measured, settings.history, now=now),
        Effects(Nowhere(), Nowhere()),
        fits=SCORES_AT_ONCE,
        observed=observed,
        learns_first=True,
        watch=watch,
    )


def build_cycle(
    settings: Settings,
    source: Source,
    history: Histories,
    effects: Effects,
    *,
    fits: int = FITS,
    observed: Observed | None = None,
    learns_first: bool = False,
    watch: StageWatch | None = None,
) -> Cycle:
    """The parts of a cycle put together, in a process that is made ready for them."""
    prepare_process()
    return Cycle(
        source=source,
        history=history,
        forecaster=Forecaster(settings.forecast.model, settings.forecast.refit_after, fits),
        policies=settings.policies,
        effects=effects,
        seconds=time.perf_counter,
        decider=Decider(observed=observed or nothing_observed(settings)),
        sizes=PodSizes(first=SCORES_AT_ONCE) if learns_first else PodSizes(),
        learns_first=learns_first,
        budget=timedelta(hours=1) if learns_first else settings.cycle.interval / 2,
        watch=watch,
    )


def election_of(settings: Settings, parts: ExitStack, address: str = "") -> Election:
    """This replica's part in the election, begun; `address` is where others ask it. `parts` gives the Lease back.

    Raises:
        ClientConfigError: there is no way to the API server.
    """
    client = ApiClient(client_config_source(settings.acting.kubeconfig), timeout=REQUEST_SECONDS).configured()
    parts.callback(client.close)
    identity = f"{socket.gethostname()}_{secrets.token_hex(4)}"
    path = lease_path(*settings.acting.lease.split("/"))
    election = Election(client, path, identity, time.monotonic, current, address)
    parts.callback(ElectionThread(election).close)
    return election


class ClusterWriters(NamedTuple):
    """All writers to the cluster; None where no enabled mode needs it."""

    actuators: Actuators | None = None
    statuses: StatusWriter | None = None
    policy_statuses: PolicyStatusWriter | None = None

    @property
    def receivers(self) -> dict[str, OfferReceiver]:
        """Return the receivers of offers by name."""
        receivers: dict[str, OfferReceiver | None] = {
            "effects": self.actuators,
            "status": self.statuses,
            "policy-status": self.policy_statuses,
        }
        return {name: receiver for name, receiver in receivers.items() if receiver is not None}


def nothing_observed(settings: Settings) -> Observed:
    """Return the empty state of observations."""
    return Observed(LeadTimes(settings.cycle.interval), ForecastGates(model=settings.forecast.model))


def observed_file(settings: Settings, observed: Observed, keys: StateKeys | None = None) -> ObservedFile[Observed]:
    """Return the file of observations in the state directory."""
    return ObservedFile(settings.state.directory / "observed.json", observed, keys)


def origins_file(settings: Settings, source: Source, keys: StateKeys | None = None) -> ObservedFile[Origins] | None:
    """Return the file with the source of each workload's request rate; None where sources are not distinguished."""
    origins = origins_of(source)
    return None if origins is None else ObservedFile(origins_path(settings), origins, keys)


def origins_path(settings: Settings) -> Path:
    """Return the path of the file with the learned request origins."""
    return settings.state.directory / "request-origins.json"


def prepare_process() -> None:
    """One thread for linear algebra, and a garbage collector that looks seldom (`expect_records`).

    Models are small matrices by the thousand. A thread per core of the host, which a container has no right to, waits
    for the others instead: on two busy cores a fit took six times the CPU.
    """
    threadpool_limits(1)
    expect_records(0)


def watched_kubeconfig(settings: Settings) -> Path | None:
    """The client configuration of live facts; None: the pod's own account."""
    return settings.kubernetes.kubeconfig or settings.serving.secure.kubeconfig


def _source_once(settings: Settings) -> Source:
    """Return the source of a command, with live facts over it as the API server lists them now."""
    source = source_of(settings)
    if not wants_live(settings):
        return source
    from forecaster.app.live_facts import with_live_facts  # noqa: PLC0415  only where the API server is asked

    return with_live_facts(settings, source)


class ServiceFacts(NamedTuple):
    """The source of the service, and live facts, which are None where the settings disable them."""

    source: Source
    live: LiveFacts | None


def wants_live(settings: Settings) -> bool:
    """Whether the settings ask for live facts."""
    way = watched_kubeconfig(settings) or is_pod()
    return settings.kubernetes.live != "off" and settings.source.kind == "prometheus" and bool(way)


def service_source(
    settings: Settings, table: Path, log: Log, parts: ExitStack, clock: Callable[[], datetime]
) -> ServiceFacts:
    """Return the source, with live facts where the settings enable them; `parts` closes both."""
    source = source_of(settings)
    parts.callback(close, source)
    if not wants_live(settings):
        return ServiceFacts(source, None)
    from forecaster.app.live_facts import watched_source  # noqa: PLC0415  only where the API server is watched

    return watched_source(settings, source, table, log, parts, clock)


def observed_cluster_client(settings: Settings) -> ApiClient | None:
    """Return a client of the cluster that is observed; None where its API server is not to be asked."""
    kubeconfig = watched_kubeconfig(settings)
    if settings.kubernetes.live == "off" or not (kubeconfig or is_pod()):
        return None
    return ApiClient(client_config_source(kubeconfig), connections=1)
