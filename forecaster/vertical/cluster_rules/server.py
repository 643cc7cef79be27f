"""Differences between versions of the API server, each under its name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

_VERSION = re.compile(r"v?(\d+)\.(\d+)")


class Server(NamedTuple):
    """A version of Kubernetes, its feature gates at their defaults."""

    major: int = 1
    minor: int = 37

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parse(cls, text: str) -> Server:
        """Parse `1.36`, `v1.36.3` or `v1.36.3-gke.1`.

        Raises:
            ValueError: there is no version in the text.
        """
        match = _VERSION.match(text)
        if match is None:
            raise ValueError(f"{text!r}: a server version is written like 1.36 or v1.36.3")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def latest(cls, versions: Iterable[str]) -> Server:
        """The latest that kubelets say: none is newer than its API server. Without any, the latest that is known."""
        known = []
        for text in versions:
            with suppress(ValueError):
                known.append(cls.parse(text))
        return max(known, default=LATEST_SERVER)

    @property
    def resizes_pods(self) -> bool:
        """Pods can be resized in place (beta and on since 1.33)."""
        return self >= (1, 33)

    @property
    def shrinks_memory_limits(self) -> bool:
        """A memory limit may be lowered in place; until 1.33 only where the container is restarted for it."""
        return self >= (1, 34)

    @property
    def has_pod_level_resources(self) -> bool:
        """A pod may state requests and limits of its own (beta and on since 1.34)."""
        return self >= (1, 34)

    @property
    def resizes_pod_level(self) -> bool:
        """Pods with pod-level resources can be resized, and these with them."""
        return self >= (1, 36)

    @property
    def resizes_init_containers(self) -> bool:
        """Ordinary init containers can be resized."""
        return self >= (1, 36)

    @property
    def completes_pod_level(self) -> bool:
        """Whether pod-level requests and limits are completed after admission; before 1.37 requests only, before it."""
        return self >= (1, 37)

    @property
    def ignores_empty_pod_level(self) -> bool:
        """An empty pod-level block does not count for the QoS class."""
        return self >= (1, 37)

    @property
    def sums_before_comparing(self) -> bool:
        """A resized pod counts as the largest of three sums; before, as the sum of each container's largest."""
        return self >= (1, 37)


LATEST_SERVER = Server()
