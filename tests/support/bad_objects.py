"""Objects of bad owners, as one table: what their writes are answered, or what stands in them.

The API server in memory and the real control plane are driven by it alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.kube.client import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.fake_api_server import Document

FOREVER = '{"type":"rolled-back","until":"9999-12-31T23:59:59Z","times":2000000000,"why":"x"}'
SLOW = UnreachableError("no answer within 2 s")


class Bad(NamedTuple):
    """One way in which an object is bad."""

    answer: int | Exception | None = None
    """Answer to requests about the object; None: as usual."""
    spoil: Callable[[Document, str], None] = lambda _, __: None
    """Changes the object that its owner applied, in a mode; "" on a real control plane."""
    in_memory: bool = False
    """Whether only a cluster in memory can have such an object."""


def hostile(document: Document, _mode: str) -> None:
    """Give the object marks of ours with contents that we never write."""
    marks = {
        "watched": FOREVER,
        "min-replicas-before": "9" * 400,
        "replicas-before": "-1",
        "floor-expires": "9999-12-31T23:59:59-23:59",
        "floor-target": "x" * 5000,
        "size-before": "[" * 5000,
        "floor-backed-off-until": "0001-01-01T00:00:00+23:59",
        "mode": "scale\x00",
    }
    meta = document["metadata"]
    meta["annotations"] = {f"forecaster.dev/{name}": text for name, text in marks.items()}
    meta["labels"] = {"forecaster.dev/floor": "x", "forecaster.dev/scale": "x", "forecaster.dev/resize": "watched"}


def bottomless(document: Document, mode: str) -> None:
    """Marks of ours that nest deeper than any decoder follows."""
    hostile(document, mode)
    size = '{"at":"2026-02-28T12:00:00Z","restarts":0,"containers":{},"x":'
    marks = {"watched": '{"type":"watched","x":' + "[" * 1000, "size-before": f"{size}{'[' * 5000}{']' * 5000}}}"}
    document["metadata"]["annotations"] |= {f"forecaster.dev/{name}": text for name, text in marks.items()}


def enormous(document: Document, mode: str) -> None:
    """Give the object as many annotations as allowed, and two billion pods where no controller would make them."""
    document["metadata"]["annotations"] = {"forecaster.dev/watched": "x" * 125_000, "note": "y" * 125_000}
    if mode == "floor":
        document["spec"] |= {"minReplicas": 2_000_000_000, "maxReplicas": 2_147_483_647}
        document["status"]["currentReplicas"] = 2_000_000_000
    elif mode == "scale":
        document["spec"]["replicas"] = document["status"]["replicas"] = 2_000_000_000


def owned(document: Document, _mode: str) -> None:
    """Let another object control this one."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "shop", "controller": True}
    document["metadata"]["ownerReferences"] = [owner]


BAD = {
    "slow": Bad(SLOW),
    "forbidden": Bad(403),
    "deleted meanwhile": Bad(404),
    "always changing": Bad(409),
    "invalid": Bad(422),
    "busy": Bad(429),
    "its webhook fails": Bad(500),
    "an error of ours": Bad(ValueError("unexpected"), in_memory=True),
    "hostile": Bad(spoil=hostile),
    "bottomless": Bad(spoil=bottomless),
    "enormous": Bad(spoil=enormous),
    "owned by another": Bad(spoil=owned),
}
