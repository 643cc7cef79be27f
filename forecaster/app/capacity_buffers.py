"""CapacityBuffers that are renewed: spare capacity of node pools, as large as the forecast of their pods says."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from forecaster.kube.client import ApiClient, ApiError
from forecaster.vertical.nodes.headroom import BUFFER_VERSION, Headroom, buffers

if TYPE_CHECKING:
    from forecaster.app import telemetry
    from forecaster.cycle.node_forecast import NodeForecast
    from forecaster.vertical.nodes.pools import Pool

FIELD_MANAGER = "forecaster-nodes"
"""Field manager of applied objects."""
STEADY = timedelta(minutes=10)
"""A buffer falls to the largest of this time: a node that is given up for minutes costs more than it saves."""
PATHS = {"PodTemplate": "/api/v1/namespaces/{}/podtemplates/{}"}
PATHS["CapacityBuffer"] = f"/apis/{BUFFER_VERSION}/namespaces/{{}}/capacitybuffers/{{}}"


class BufferWriter:
    """Applies the buffer of each pool that was seen. One that cannot be written harms no other.

    A pool that is not seen keeps its buffer, and so do all while the forecast is not known.
    """

    def __init__(self, client: ApiClient, namespace: str, log: telemetry.Log) -> None:
        self._client, self._namespace, self._log = client, namespace, log
        self._recent: defaultdict[str, list[tuple[datetime, Headroom]]] = defaultdict(list)
        self._said: dict[str, object] = {}

    def renew(self, ahead: NodeForecast) -> None:
        """Apply the buffers of a forecast."""
        pools = {forecast.pool.name: forecast.pool for forecast in ahead.pools}
        for headroom in ahead.headroom:
            recent = self._recent[headroom.pool]
            recent[:] = [*((at, spare) for at, spare in recent if abs(ahead.at - at) < STEADY), (ahead.at, headroom)]
            self._applied(largest([spare for _, spare in recent]), pools[headroom.pool])

    def _applied(self, headroom: Headroom, pool: Pool) -> None:
        try:
            for document in buffers(headroom, pool, self._namespace):
                self._client.apply(path_of(document), document, dict)
        except ApiError as error:
            self._say("buffer_not_renewed", headroom, error=str(error))
        else:
            self._say("buffer_renewed", headroom, replicas=headroom.replicas, reason=headroom.reason)

    def _say(self, event: str, headroom: Headroom, **facts: object) -> None:
        """Log one line for each pool with a change."""
        if self._said.get(headroom.pool) != (event, headroom.replicas):
            self._said[headroom.pool] = event, headroom.replicas
            (self._log.warning if "error" in facts else self._log.info)(event, pool=headroom.pool, **facts)


def largest(recent: list[Headroom]) -> Headroom:
    """Return the headroom with the most cores, of these the one with the most memory, of equals the latest."""
    return max(reversed(recent), key=lambda spare: (spare.replicas * spare.cpu, spare.replicas * spare.memory))


def path_of(document: dict[str, Any]) -> str:
    """Return where an object is applied. Not by force: fields that another client has set stay, as an error says."""
    meta = document["metadata"]
    return f"{PATHS[document['kind']].format(meta['namespace'], meta['name'])}?fieldManager={FIELD_MANAGER}"
