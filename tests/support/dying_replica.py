"""A leader that is killed within a write: `python -m tests.support.dying_replica KUBECONFIG NAMESPACE COUNT MODE STEP`.

It leads, runs one cycle for the Deployment `web` of the namespace, and sends itself SIGKILL at the step.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from forecaster.actuators.floor.autoscalers import Autoscalers
from forecaster.kube.client import ApiClient
from tests.support.control_plane.acting import ActingReplica

STEPS = {
    "before the write is sent": (ApiClient, "apply", "before"),
    "after the write was answered, before its Event": (ApiClient, "apply", "after"),
    "after its Event": (Autoscalers, "record", "after"),
    "between a restoring and the end of its marks": (ApiClient, "patch", "hpas"),
}
"""Methods that are replaced, and the moment in them at which the process dies."""


class OfFile:
    """The part of a control plane that a replica uses."""

    def __init__(self, kubeconfig: str) -> None:
        self._kubeconfig = Path(kubeconfig)

    def account(self, *_: str) -> Path:
        return self._kubeconfig


def dying(owner: type, name: str, when: str) -> None:
    """Let a method be the last thing that this process does."""
    method = getattr(owner, name)

    def last(self: Any, *arguments: Any) -> Any:
        if when == "hpas" and "horizontalpodautoscalers" not in str(arguments[0]):
            return method(self, *arguments)
        if when == "after":
            method(self, *arguments)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    setattr(owner, name, last)


def main(kubeconfig: str, namespace: str, count: str, mode: str, step: str) -> None:
    """The program."""
    with ExitStack() as parts:
        settings = {"floor": {"enabled": True}, "policy": {"mode": mode}}
        replica = ActingReplica(OfFile(kubeconfig), parts, settings)  # type: ignore[arg-type]
        replica.until_leading()
        dying(*STEPS[step])
        replica.cycle(namespace, int(count))


if __name__ == "__main__":
    main(*sys.argv[1:])
