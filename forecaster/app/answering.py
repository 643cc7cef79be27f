"""The processes that answer, as the settings ask for them: the serving one and KEDA's scaler."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from forecaster.app.child import ChildExit, ServingProcess, scaler_process
from forecaster.app.facts import SOCKET
from forecaster.publish.new_pods import new_pods_path
from forecaster.serving.options import Address, SecureOptions, ServingOptions, UpstreamOptions

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

    from forecaster.app import telemetry
    from forecaster.config.settings import Settings
    from forecaster.serving.settings import ServingSettings, UpstreamSettings


REPORT = "report.html"
"""Name of the weekly report in the state directory, unless the settings name another file."""


def serving_process(settings: Settings, directory: Path, log: telemetry.Log) -> ServingProcess | None:
    """The process that answers, unless the settings say that none should."""
    if not settings.serving.enabled:
        return None

    def tell(death: ChildExit) -> None:
        log.error("serving_died", code=death.code, restart_in_seconds=death.restart_in_seconds)

    given = settings.serving
    return ServingProcess(
        table_path(directory),
        Address(given.host, given.port),
        secure_address=Address(given.secure.host, given.secure.port) if given.secure.enabled else None,
        options=serving_options(
            given,
            replicas=settings.replicas.enabled,
            facts=str(directory / SOCKET),
            lease=settings.acting.lease if settings.floor.enabled or settings.scale.enabled else "",
            report=str(given.report or directory / REPORT),
            new_pods=str(new_pods_path(table_path(directory))) if settings.resize.initial else "",
        ),
        on_death=tell,
    )


def serving_options(
    given: ServingSettings,
    *,
    replicas: bool = False,
    facts: str = "",
    lease: str = "",
    report: str = "",
    new_pods: str = "",
) -> ServingOptions:
    """The settings of the serving process as it is told them.

    `facts` is where what is known of a workload is told, `lease` that by which one replica writes,
    `report` the page of the newest week, `new_pods` the file with sizes of new pods.
    """
    stale_after, secure = given.stale_after, given.secure
    secured = SecureOptions(
        certificate=str(secure.certificate_file),
        key=str(secure.key_file),
        kubeconfig=str(secure.kubeconfig or ""),
        service=secure.service,
        upstream=upstream_adapter(secure.upstream) if secure.upstream.server else None,
        lease=lease,
        certified_reviews=secure.certified_reviews,
    )
    return ServingOptions(
        stale_after_seconds=None if stale_after is None else stale_after.total_seconds(),
        secure=secured if secure.enabled else None,
        dashboard=given.dashboard,
        replicas=replicas,
        new_pods=new_pods,
        facts=facts if given.dashboard else "",
        report=report if given.dashboard else "",
        zone=given.holidays.zone,
        countries=given.holidays.countries,
    )


def upstream_adapter(given: UpstreamSettings) -> UpstreamOptions:
    """The adapter behind us as the serving process is told it."""
    address = urlsplit(given.server)
    return UpstreamOptions(address.hostname or "", address.port or 443, str(given.ca_file), str(given.token_file))


def start_scaler(settings: Settings, directory: Path, log: telemetry.Log, parts: ExitStack) -> None:
    """The process that answers KEDA, where the settings ask for it; `parts` stops it."""
    if not settings.keda.enabled:
        return

    def tell(death: ChildExit) -> None:
        log.error("scaler_died", code=death.code, restart_in_seconds=death.restart_in_seconds)

    scaler = scaler_process(table_path(directory), settings.keda, settings.serving.stale_after, on_death=tell)
    scaler.start()
    parts.callback(scaler.stop)


def table_path(directory: Path) -> Path:
    """The file that computing writes and serving reads."""
    return directory / "recommendations.table"
