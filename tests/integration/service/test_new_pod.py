"""A new pod begins with an empty directory: its key and its small state lie in a Secret, bound to the cluster."""

from __future__ import annotations

import gzip
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pytest

from forecaster.cycle.observed import VERSION, Observed
from forecaster.store.signing import MAX_BYTES, StateKeys
from forecaster.store.state import FOREIGN
from forecaster.store.state_secret import CHECKPOINT, KEY, MAX_CHECKPOINT, Checkpoint, StateSecret
from tests.support.builders import after
from tests.support.composed import composed, recorded_cluster, tick
from tests.support.state_server import KUBE_SYSTEM, SECRET, StateServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from forecaster.app.service import Service
    from tests.support.composed import Cluster

NAME = "forecaster/forecaster-state"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with recorded_cluster() as running:
        yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StateServer]:
    with StateServer(tmp_path / "api") as running:
        yield running


@contextmanager
def pod(cluster: Cluster, server: StateServer, directory: Path, **state: Any) -> Iterator[Service]:
    """A service in a pod, with what its directory has."""
    stated = {"directory": str(directory), "secret": NAME} | state
    with composed(cluster, directory, state=stated, **server.given) as service:
        yield service


def save_state(service: Service) -> None:
    """Save the state that outlives the service, as at SIGTERM."""
    for entry in service.persisted:
        entry.part.save()


def observed_of(service: Service) -> Observed:
    return service.cycle.decider.observed  # type: ignore[no-any-return, union-attr]


def gates_of(service: Service) -> dict[str, tuple[int, int, float]]:
    gates = observed_of(service).gates
    return {
        id_.name: (int(gates.gates.standing[row]), int(gates.gates.verdict[row]), float(gates.gates.judged_at[row]))
        for id_, row in gates.fleet.row.items()
    }


def lived(cluster: Cluster, server: StateServer, directory: Path) -> dict[str, tuple[int, int, float]]:
    """A pod that has judged its gates and is gone; return the gates."""
    with pod(cluster, server, directory) as service:
        tick(service, after(0))
        save_state(service)
        return gates_of(service)


class Lived(NamedTuple):
    """State that a pod left behind."""

    data: dict[str, str]
    """Entries of the Secret."""
    gates: dict[str, tuple[int, int, float]]


@pytest.fixture(scope="module")
def one_pod(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """A pod that has judged its gates and is gone."""
    folder = tmp_path_factory.mktemp("pod")
    with StateServer(folder / "api") as running:
        gates = lived(cluster, running, folder / "state")
        return Lived(running.api.objects[SECRET]["data"], gates)


def test_a_new_pod_without_a_volume_goes_on_from_the_gates_of_the_one_before_it(
    cluster: Cluster, server: StateServer, tmp_path: Path
) -> None:
    before = lived(cluster, server, tmp_path / "first")
    assert before.keys() == {"web", "cart"}
    with pod(cluster, server, tmp_path / "second") as service:
        assert gates_of(service) == before
        assert observed_of(service).state.rows == 2
        tick(service, after(1))
        assert gates_of(service) == before
        assert not service.report or service.report.failures == ()
        save_state(service)
    with pod(cluster, server, tmp_path / "third") as service:
        assert gates_of(service) == before


def test_a_directory_with_newer_state_is_believed(cluster: Cluster, server: StateServer, tmp_path: Path) -> None:
    lived(cluster, server, tmp_path / "state")
    older = server.entry(CHECKPOINT)
    with pod(cluster, server, tmp_path / "state") as service:
        tick(service, after(5))
        save_state(service)
        decided = observed_of(service).decided_at
    server.put(CHECKPOINT, older)
    with pod(cluster, server, tmp_path / "state") as service:
        assert observed_of(service).decided_at == decided


def keys(server: StateServer) -> StateKeys:
    return StateKeys.of_text(server.entry(KEY), "the test")


def packed(server: StateServer, *, by: StateKeys | None = None, **changed: object) -> bytes:
    """The checkpoint as it lies there with other contents, signed again."""
    bare = keys(server).verified(gzip.decompress(server.entry(CHECKPOINT)), CHECKPOINT)
    checkpoint = msgspec.json.decode(bare) | changed
    return gzip.compress((by or keys(server)).signed(msgspec.json.encode(checkpoint), CHECKPOINT))


def of_a_later_version(server: StateServer) -> bytes:
    checkpoint = msgspec.json.decode(keys(server).verified(gzip.decompress(server.entry(CHECKPOINT)), CHECKPOINT))
    return packed(server, observed=checkpoint["observed"] | {"version": VERSION + 1})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lambda server: packed(server, by=StateKeys((b"f" * 64,), "")), "was not signed by a key of this release"),
        (lambda _: gzip.compress(b'{"format":1}'), "was not signed by a key of this release"),
        (
            lambda server: packed(server, cluster="uid-of-there"),
            "has the UID uid-of-there, and here it has uid-of-here",
        ),
        (of_a_later_version, f"version {VERSION + 1}, and not {VERSION}"),
        (lambda server: packed(server, format=2), "format 2, and not 1"),
        (lambda _: b"no gzip", "it is damaged"),
        (lambda _: zlib.compress(bytes(MAX_BYTES + 1), 1), f"more than {MAX_BYTES} bytes"),
    ],
    ids=["forged", "unsigned", "foreign", "newer observations", "newer format", "damaged", "enormous"],
)
def test_another_checkpoint_is_refused_by_name_and_the_pod_goes_on(
    cluster: Cluster,
    server: StateServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    one_pod: Lived,
    content: Callable[[StateServer], bytes],
    why: str,
) -> None:
    server.api.objects[SECRET]["data"] = one_pod.data
    server.put(CHECKPOINT, content(server))
    with pod(cluster, server, tmp_path / "second") as service:
        assert gates_of(service) == {}
        assert 'forecaster_state_refused_timestamp_seconds{part="checkpoint"}' in service.metrics.text()
        assert observed_of(service).state.rows == 0
    log = capsys.readouterr().out
    assert f"checkpoint in Secret {NAME}" in log
    assert why in log


def test_an_api_server_that_is_away_or_refuses_leaves_the_state_unknown(
    cluster: Cluster, server: StateServer, tmp_path: Path, one_pod: Lived, capsys: pytest.CaptureFixture[str]
) -> None:
    server.api.objects[SECRET]["data"] = one_pod.data
    server.api.fault = lambda request: 403 if request.target == SECRET else None
    with pod(cluster, server, tmp_path / "second") as service:
        assert gates_of(service) == {}
        tick(service, after(1))
        assert gates_of(service).keys() == {"web", "cart"}
        assert service.report
        assert service.report.failures == ()
    assert "bind the rights of deploy/base to this account" in capsys.readouterr().out
    server.api.fault = lambda _: None
    with pod(cluster, server, tmp_path / "third") as service:
        assert gates_of(service) == one_pod.gates


def test_state_is_bound_to_the_uid_of_kube_system(
    cluster: Cluster, server: StateServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lived(cluster, server, tmp_path / "state")
    server.api.objects[KUBE_SYSTEM] = {"metadata": {"name": "kube-system", "uid": "uid-of-there"}}
    with pod(cluster, server, tmp_path / "state") as service:
        assert observed_of(service).state.rows == 0
    log = capsys.readouterr().out
    assert "its kube-system has the UID uid-of-here, and here uid-of-there" in log
    assert (tmp_path / "state" / FOREIGN / "observed.json").exists()


def test_without_the_right_to_read_the_uid_prometheus_tells_the_cluster(
    cluster: Cluster, server: StateServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lived(cluster, server, tmp_path / "state")
    server.api.fault = lambda request: 403 if request.target == KUBE_SYSTEM else None
    with pod(cluster, server, tmp_path / "state") as service:
        assert observed_of(service).state.rows == 2
    assert "cluster_uid_not_read" in capsys.readouterr().out


class TestTheSecret:
    def test_gets_a_key_once_and_every_pod_reads_it(self, server: StateServer) -> None:
        first, second = (StateSecret(server.api.client(), NAME).keys() for _ in range(2))
        assert first.keys == second.keys == (server.entry(KEY),)
        assert len(first.keys[0]) == 64
        assert first.of_release

    def test_is_written_by_one_process_at_a_time_and_keeps_its_key(self, server: StateServer) -> None:
        old, new = (StateSecret(server.api.client(), NAME) for _ in range(2))
        keys = old.keys()
        new.keys()
        old.write(CHECKPOINT, b"of the old pod")
        new.write(CHECKPOINT, b"by an older version")
        assert server.entry(CHECKPOINT) == b"of the old pod"
        new.write(CHECKPOINT, b"of the new pod")
        assert server.entry(CHECKPOINT) == b"of the new pod"
        assert keys.keys == (server.entry(KEY),)

    def test_is_written_where_something_has_changed_and_by_the_leader_alone(self, server: StateServer) -> None:
        secret = StateSecret(server.api.client(), NAME)
        leads = [False]
        checkpoint = Checkpoint(secret, secret.keys(), "", Observed(), lambda: leads[0])
        before = len(server.api.requests)
        checkpoint.save()
        assert len(server.api.requests) == before
        leads[0] = True
        checkpoint.save()
        checkpoint.save()
        assert [request for request in server.api.requests[before:] if "PATCH" in request] == [f"PATCH {SECRET}"]

    def test_has_what_is_dearest_to_learn_where_not_all_has_room(self, server: StateServer) -> None:
        left: list[tuple[str, ...]] = []
        secret = StateSecret(server.api.client(), NAME)
        checkpoint = Checkpoint(secret, secret.keys(), "", Large(), tell_left=left.append)
        checkpoint.save()
        checkpoint.save()
        assert left == [("stabilization",)]
        assert len(server.entry(CHECKPOINT)) <= MAX_CHECKPOINT


class Large:
    """A state that does not compress."""

    decided_at = 0.0

    def encoded_within(self, most: int, pack: Callable[[bytes], bytes]) -> tuple[bytes, bytes, tuple[str, ...]]:
        text = np.random.default_rng(1).bytes(most).hex()
        whole, part = (msgspec.json.encode({"text": each}) for each in (text, text[:1000]))
        assert len(pack(whole)) > most > len(pack(part))
        return part, pack(part), ("stabilization",)


def test_observations_leave_out_the_cheapest_part_first(cluster: Cluster, tmp_path: Path) -> None:
    with composed(cluster, tmp_path) as service:
        tick(service, after(0))
        observed = observed_of(service)
    sizes: list[int] = []

    def packed(content: bytes) -> bytes:
        sizes.append(len(content))
        return bytes(3 - len(sizes))

    content, _, left = observed.encoded_within(0, packed)
    assert left == ("stabilization", "capacities")
    assert sizes[0] > sizes[1] >= sizes[2]
    other = Observed()
    other.restore(content)
    assert other.state.rows == 0
    assert other.gates.fleet.row == observed.gates.fleet.row
