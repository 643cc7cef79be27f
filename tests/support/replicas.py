"""Two replicas as `app` composes them: one Prometheus, real serving processes, a Lease that a test hands on."""

from __future__ import annotations

import ssl
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

from forecaster.app import telemetry
from forecaster.app.child import ServingProcess
from forecaster.app.replicas import Follower, leader_config
from forecaster.app.serve import build_service, state_directory, table_path
from forecaster.config.settings import parse
from forecaster.kube.config import ClientConfig
from forecaster.kube.lease import Election, Leader
from forecaster.serving.options import Address, SecureOptions, ServingOptions
from tests.support.builders import NOON
from tests.support.control_plane.authority import Authority
from tests.support.review_server import ReviewServer
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from forecaster.app.service import Service
    from forecaster.config.settings import Settings
    from forecaster.publish.table import TableMeta
    from tests.support.composed import Cluster
    from tests.support.played_time import PlayedTime

SERVICE = "forecaster/forecaster"
NAME = "forecaster.forecaster.svc"
TOKEN = "Bearer good"


class UntilReleased(Election):
    """Holds until a test says otherwise; never asks a cluster."""

    held: bool = True

    def holds(self) -> bool:
        return self.held

    def leading(self) -> bool:
        return self.held


@dataclass
class Member:
    """One replica."""

    settings: Settings
    serving: ServingProcess
    follower: Follower
    ca: Path
    taken: list[TableMeta]
    election: UntilReleased
    service: Service | None = None
    parts: ExitStack = field(default_factory=ExitStack)

    @property
    def directory(self) -> Path:
        return self.settings.state.directory

    @property
    def leader(self) -> Leader:
        """Leader as the Lease names it."""
        assert self.serving.secure_address
        return Leader(self.election.identity, str(self.serving.secure_address))

    def lead(self) -> Service:
        """Compute from what lies in the directory."""
        self.service = build_service(
            self.settings, self.directory, telemetry.logger(), self.parts, clock=lambda: NOON, election=self.election
        )
        return self.service

    def die(self) -> None:
        """Stop without saving or reporting anything."""
        self.parts.close()
        self.service = None

    def ask(self, path: str) -> httpx.Response:
        """Request a path of the replica's secure port."""
        tls = ssl.create_default_context(cafile=str(self.ca))
        with httpx.Client(verify=tls, headers={"Authorization": TOKEN}, timeout=PATIENCE) as client:
            return client.get(f"https://{self.serving.secure_address}{path}", extensions={"sni_hostname": NAME})

    def until_serving(self, at: datetime) -> None:
        """Wait for the table of an instant."""
        text = at.isoformat().replace("+00:00", "Z")
        url = f"http://{self.serving.address}/readyz"
        wait_until(lambda: text in httpx.get(url, timeout=PATIENCE).text, goal=f"the table of {text}")


@contextmanager
def two_replicas(
    cluster: Cluster, folder: Path, clock: PlayedTime, **given: Mapping[str, object]
) -> Iterator[tuple[Member, Member]]:
    """Both of them, none of which computes yet."""
    with ReviewServer(folder / "cluster") as reviews, ExitStack() as parts:
        issuer = Authority(folder, "serving-ca")
        certificate = issuer.issue("serving", NAME, "127.0.0.1")
        secure = SecureOptions(str(certificate.certificate), str(certificate.key), str(reviews.kubeconfig), SERVICE)
        own = ClientConfig("https://nowhere", authorization=TOKEN)
        members = []
        for name in ("one", "two"):
            settings = parse(
                {
                    "prometheus": {"url": cluster.url, "retries": 0},
                    "state": {"directory": str(folder / name)},
                    "forecast": {"model": "seasonal-naive-day"},
                    "replicas": {"enabled": True, "host": "127.0.0.1", "ca_file": str(issuer.certificate)},
                    "serving": {
                        "secure": {
                            "enabled": True,
                            "certificate_file": str(certificate.certificate),
                            "key_file": str(certificate.key),
                            "service": SERVICE,
                        }
                    },
                    **given,
                },
                "test",
            )
            table = table_path(state_directory(settings.state))
            serving = ServingProcess(
                table,
                Address("127.0.0.1", 0),
                secure_address=Address("127.0.0.1", 0),
                options=ServingOptions(secure=secure, replicas=True),
                program=clock.serving,
            )
            serving.start()
            parts.callback(serving.stop)
            taken: list[TableMeta] = []
            follower = Follower(
                table,
                leader_config(settings, lambda: own),
                taken.append,
                telemetry.logger(),
                lambda: clock().timestamp(),
            )
            parts.callback(follower.close)
            election = UntilReleased(None, "", name, lambda: 0.0, clock)  # type: ignore[arg-type]  # it asks no cluster
            members.append(Member(settings, serving, follower, issuer.certificate, taken, election))
            parts.callback(members[-1].die)
        yield members[0], members[1]
