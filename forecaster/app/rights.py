"""Whether the account of the settings has the rights that its modes need, for `forecaster doctor`."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from forecaster.app.compose import observed_cluster_client
from forecaster.domain.report import Check
from forecaster.errors import ForecasterError
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source, is_pod
from forecaster.kube.rights import SERVICE, missing, rights_of
from forecaster.resources.fallbacks import triggered_by, without_fallback

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.config.settings import Settings


def rights_checks(settings: Settings) -> list[Check]:
    """One line for each mode that is on, where an API server is known."""
    return [_checked(settings, mode, kubeconfig) for mode, kubeconfig in modes_of(settings) if kubeconfig or is_pod()]


def modes_of(settings: Settings) -> Iterator[tuple[str, Path | None]]:
    """Modes with the client configuration by which each is carried out; None: the pod's own account."""
    secure = settings.serving.secure
    if settings.kubernetes.live != "off" and settings.source.kind == "prometheus":
        yield "observe", settings.kubernetes.kubeconfig or secure.kubeconfig
    if secure.enabled:
        yield "publish", secure.kubeconfig
    if settings.state.secret:
        yield "state", settings.acting.kubeconfig
    if settings.resources.enabled:
        yield "resources", settings.kubernetes.kubeconfig or secure.kubeconfig
    sized = settings.resize
    enabled = {"floor": settings.floor.enabled, "scale": settings.scale.enabled, "vertical": sized.enabled}
    for mode, on in (enabled | {"initial": sized.initial}).items():
        if on:
            yield mode, settings.acting.kubeconfig


def fallback_checks(settings: Settings) -> list[Check]:
    """Whether KEDA has a fallback for each ScaledObject that reads us; nothing where they may not be listed."""
    client, service = observed_cluster_client(settings), (settings.serving.secure.service or SERVICE).rpartition("/")[2]
    if client is None:
        return []
    try:
        with closing(client.configured()) as connected:
            users = triggered_by(connected, service)
    except ForecasterError:
        return []
    if faults := without_fallback(users, service):
        remedy = "state `fallback`, and a trigger of type external-push, metrics-api or prometheus: docs/integrate.md"
        return [Check("fallbacks of KEDA", ok=False, detail="; ".join(faults), remedy=remedy)]
    return [Check("fallbacks of KEDA", ok=True, detail=f"each of {len(users)} ScaledObjects has one")] if users else []


def _checked(settings: Settings, mode: str, kubeconfig: Path | None) -> Check:
    """Report each missing right, with its consequence."""
    name = f"rights of mode {mode}"
    needed = rights_of(SERVICE, (mode,), namespace=settings.acting.lease.split("/")[0])
    try:
        with closing(ApiClient(client_config_source(kubeconfig), connections=1).configured()) as client:
            lacking = missing(client, needed)
    except ForecasterError as error:
        return Check(name, ok=False, detail=str(error), remedy="mend the client configuration, or the API server")
    if not lacking:
        return Check(name, ok=True, detail=f"all {sum(len(right.verbs) for right in needed)} are there")
    part = "base" if mode in {"observe", "publish", "state"} else f"components/{mode}"
    remedy = f"apply deploy/{part}/rights.yaml, or bind its roles to the account of this client configuration"
    return Check(name, ok=False, detail="; ".join(map(str, lacking)), remedy=remedy)
