"""The pod that this process is in, as the downward API names it, and Events beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from forecaster.actuators.marks import MESSAGE_MAX, EventKind, InvolvedObject, create_event, event, instant_text
from forecaster.actuators.writes import AuditLog
from forecaster.app.compose import watched_kubeconfig
from forecaster.config.settings import Settings
from forecaster.errors import ForecasterError
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from forecaster.kube.lease import REQUEST_SECONDS

SETTINGS_REFUSED = EventKind("SettingsRefused", warns=True)
SETTINGS_TAKEN_OVER = EventKind("SettingsTakenOver")


class OwnPod(NamedTuple):
    """Identity of the pod that this process runs in."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> OwnPod | None:
        """Read POD_NAMESPACE, POD_NAME and POD_UID; None outside of a pod that has all of them."""
        pod = cls(*(environment.get(f"POD_{part}", "") for part in ("NAMESPACE", "NAME", "UID")))
        return pod if all(pod) else None


class SettingsEvents(NamedTuple):
    """Reports refused settings, and their mending, as Events that `kubectl describe pod` shows."""

    pod: OwnPod
    client: Callable[[], ApiClient]
    """Makes a client when one is needed, which is seldom, and closes it."""
    clock: Callable[[], datetime]
    log: AuditLog

    def tell(self, refused: str) -> None:
        """Send one Event; `refused` is empty when the settings are mended. Raises nothing."""
        kind, now = SETTINGS_REFUSED if refused else SETTINGS_TAKEN_OVER, self.clock()
        why = f"The previous settings stay in force: {refused}" if refused else "The files' settings are in force."
        involved = InvolvedObject(self.pod.namespace, self.pod.name, self.pod.uid, "v1", "Pod")
        try:
            client = self.client()
            try:
                about = f"{self.pod.uid} {kind.reason} {refused} {instant_text(now)}"
                create_event(client, event(involved, about, kind, why[:MESSAGE_MAX], now))
            finally:
                client.close()
        except ForecasterError as error:
            self.log.warning("cluster_event_lost", by="settings", object=f"Pod {self.pod.name}", error=str(error))


def settings_events(settings: Settings, clock: Callable[[], datetime], log: AuditLog) -> SettingsEvents | None:
    """Return the sender of Events about settings on our own pod; None outside of a pod named by the downward API.

    Also None without a mode that may create Events anyway: the base's account writes nothing.
    """
    may = any(section.enabled for section in (settings.floor, settings.scale, settings.resize, settings.resources))
    pod = OwnPod.of_environment(os.environ) if may else None
    source = client_config_source(watched_kubeconfig(settings))

    def client() -> ApiClient:
        return ApiClient(source, connections=1, timeout=REQUEST_SECONDS).configured()

    return SettingsEvents(pod, client, clock, log) if pod else None
