"""VpaLook: what VPAs of the cluster recommend, listed now and then in a thread of its own, for the dashboard."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from forecaster.app.live_facts import listed_vpas
from forecaster.kube.client import ApiClient, ApiError
from forecaster.publish.vpas import SeenVpas

if TYPE_CHECKING:
    from collections.abc import Callable


VPA_INTERVAL = timedelta(minutes=5)
"""VPAs renew their recommendations by the minute and hardly change them; a list of 10,000 is some 20 MB."""
ENDED_SECONDS = 5.0


class VpaLook:
    """The newest list. No cycle waits for the API server: it publishes what was listed last."""

    def __init__(self, client: ApiClient, clock: Callable[[], datetime], every: timedelta = VPA_INTERVAL) -> None:
        self.seen = SeenVpas()
        self._client, self._clock, self._every = client, clock, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vpas", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """End it; a request that is under way is broken off."""
        self._stop.set()
        self._client.close()
        self._thread.join(ENDED_SECONDS)
        self._client.close()  # what the last request may have opened meanwhile

    def _run(self) -> None:
        while not self._stop.is_set():
            self.seen = self._listed()
            self._stop.wait(self._every.total_seconds())

    def _listed(self) -> SeenVpas:
        """List the VPAs; where they cannot be listed, return none: nothing older is shown."""
        now = self._clock()
        try:
            found, unknown = listed_vpas(self._client)
        except ApiError as error:
            found, unknown = {}, str(error)
        return SeenVpas(now, found, unknown)
