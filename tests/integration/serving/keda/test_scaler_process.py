"""The real process over gRPC: as KEDA asks it, and as others might."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import grpc
import pytest

from forecaster.domain.workload import Target, TargetType
from forecaster.serving.keda import externalscaler_pb2 as wire
from tests.support.control_plane.authority import Authority, KeyPair
from tests.support.keda import CPU, ScalerProcess, ask, keda_client, reference
from tests.support.recommendations import ahead, recommendation, signal_view
from tests.support.tables import publish
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.domain.decision import Recommendation

CPU_TRIGGER = [f"{key}={value}" for key, value in CPU.items()]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return publish(tmp_path / "table", at=datetime.now(UTC), mode="publish")


@pytest.fixture
def scaler(table: Path) -> Iterator[ScalerProcess]:
    with ScalerProcess(table) as running:
        yield running


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki", "scaler-ca")


@pytest.fixture
def guarded(table: Path, authority: Authority) -> Iterator[ScalerProcess]:
    with ScalerProcess(table, *certificates(authority, "localhost"), "--client-name", "keda-operator") as running:
        yield running


def certificates(authority: Authority, name: str) -> list[str]:
    pair = authority.issue("server", name)
    options = {"--certificate": pair.certificate, "--key": pair.key, "--client-ca": authority.certificate}
    return [str(word) for option in options.items() for word in option]


def is_active(channel: grpc.Channel) -> bool:
    """Whether the scaler says that a workload is active; it may be asked again."""
    try:
        return bool(ask(channel, "IsActive", reference()).result)
    except grpc.RpcError:
        return False


def code_of(channel: grpc.Channel, call: str, request: object) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as refused:
        ask(channel, call, request)
    return refused.value.code()


class TestAsKedaAsks:
    def test_its_own_client_reads_target_value_and_activity(self, scaler: ScalerProcess) -> None:
        target = {"metricName": "forecaster-cpu", "targetSize": 0, "targetSizeFloat": 0.5}
        assert keda_client(scaler.address, "GetMetricSpec", *CPU_TRIGGER) == [target]
        value = {"metricName": "forecaster-cpu", "metricValue": 0, "metricValueFloat": 1.75}
        assert keda_client(scaler.address, "GetMetrics", *CPU_TRIGGER) == [value]
        assert keda_client(scaler.address, "IsActive", *CPU_TRIGGER) == [{"result": True}]

    def test_counts_are_whole_in_both_fields(self, scaler: ScalerProcess) -> None:
        value = {"metricName": "forecaster-replicas", "metricValue": 5, "metricValueFloat": 5}
        assert keda_client(scaler.address, "GetMetrics", "metric=replicas") == [value]

    def test_a_stream_of_targets_says_the_target_at_once_and_stays_open(self, scaler: ScalerProcess) -> None:
        """KEDA keeps the target: it counts failures towards `fallback` only for a target that it knows."""
        (target,) = keda_client(scaler.address, "GetMetricSpec", *CPU_TRIGGER)
        assert keda_client(scaler.address, "StreamMetricSpec", *CPU_TRIGGER, seconds=2) == [target]

    def test_a_trigger_with_a_fault_has_a_target_and_no_number(self, scaler: ScalerProcess) -> None:
        """KEDA counts the failures of a number towards `fallback`; without a target there is nothing to count."""
        target = {"metricName": "faulty-trigger", "targetSize": 1, "targetSizeFloat": 1}
        for call in ("GetMetricSpec", "StreamMetricSpec"):
            assert keda_client(scaler.address, call, "signal=cpu", seconds=2) == [target]
        for call in ("GetMetrics", "IsActive", "StreamIsActive"):
            (refused,) = keda_client(scaler.address, call, "signal=cpu")
            assert refused["error"] == "InvalidArgument"
            assert "trigger target: say what one replica carries" in refused["message"]

    def test_a_number_that_the_hpa_multiplies_by_its_pods_is_refused(self, tmp_path: Path) -> None:
        """By a target of type Value a count that is kept would be squared."""
        targets = (Target("s0-forecaster-cpu", TargetType.VALUE, 0.5),)
        row = replace(recommendation(), targets=targets)
        table = publish(tmp_path / "table", row, at=datetime.now(UTC), mode="publish")
        with ScalerProcess(table) as running:
            (refused,) = keda_client(running.address, "GetMetrics", *CPU_TRIGGER)
        assert refused["error"] == "InvalidArgument"
        assert "trigger metricType: Value says nothing about one replica; use AverageValue" in refused["message"]

    def test_the_push_stream_says_the_state_at_once_and_each_change(self, table: Path) -> None:
        publish(table, waiting_for_load(), at=datetime.now(UTC), mode="publish")
        with ScalerProcess(table) as scaler, listening(scaler) as answers:
            wait_until(lambda: answers == [False], goal="the first state")
            publish(table, at=datetime.now(UTC), mode="publish")  # load is forecast within the lead time
            wait_until(lambda: answers == [False, True], goal="the wake-up")

    def test_targets_come_before_the_first_table_values_do_not(self, tmp_path: Path) -> None:
        with ScalerProcess(tmp_path / "table") as early, early.channel() as channel:
            assert ask(channel, "GetMetricSpec", reference()).metricSpecs[0].targetSizeFloat == 0.5
            assert code_of(channel, "IsActive", reference()) is grpc.StatusCode.UNAVAILABLE

    def test_a_signal_that_is_not_measured_is_refused_at_once_with_those_that_are(self, tmp_path: Path) -> None:
        """Its HPA, which is not read yet, would have it answered by the present count for minutes."""
        table = publish(tmp_path / "table", at=datetime.now(UTC), mode="publish")
        with ScalerProcess(table) as running, running.channel() as channel:
            request = wire.GetMetricsRequest(scaledObjectRef=reference(signal="disk", target="1"))
            with pytest.raises(grpc.RpcError) as refused:
                ask(channel, "GetMetrics", request)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert refused.value.details().startswith("trigger signal 'disk': use cpu, memory, requests")

    def test_values_that_are_too_old_are_an_error_that_keda_counts(self, tmp_path: Path) -> None:
        row = replace(recommendation(), replicas_now=0)
        old = publish(tmp_path / "table", row, at=datetime.now(UTC) - timedelta(hours=2), mode="publish")
        with ScalerProcess(old) as running, running.channel() as channel:
            request = wire.GetMetricsRequest(scaledObjectRef=reference(), metricName="cpu")
            assert code_of(channel, "GetMetrics", request) is grpc.StatusCode.UNAVAILABLE


@contextmanager
def listening(scaler: ScalerProcess) -> Iterator[list[bool]]:
    """Answers of a push stream so far."""
    answers: list[bool] = []
    call = "/externalscaler.ExternalScaler/StreamIsActive"
    with scaler.channel() as channel:
        open_stream = channel.unary_stream(
            call, wire.ScaledObjectRef.SerializeToString, wire.IsActiveResponse.FromString
        )
        stream = open_stream(reference(signal="requests", target="100"))

        def listen() -> None:
            with suppress(grpc.RpcError):  # cancelled below
                answers.extend(answer.result for answer in stream)

        thread = threading.Thread(target=listen)
        thread.start()
        yield answers
        stream.cancel()
        thread.join()


def waiting_for_load() -> Recommendation:
    """A workload at zero, with nothing forecast."""
    nothing = replace(signal_view("requests"), measured=0.0, forecast=replace(ahead(), peak=0.0))
    return replace(recommendation(now=0, replicas=None), signals=(nothing,))


class TestWhoMayAsk:
    def test_a_client_of_the_right_name_is_answered(self, guarded: ScalerProcess, authority: Authority) -> None:
        client = authority.issue("client", common_name="keda-operator")
        assert keda_client(guarded.address, "IsActive", *CPU_TRIGGER, tls=(authority, client)) == [{"result": True}]

    def test_one_of_another_name_is_refused_and_written_down_once(
        self, guarded: ScalerProcess, authority: Authority
    ) -> None:
        client = authority.issue("client", common_name="somebody")
        with guarded.channel(authority, client) as channel:
            for _ in range(3):
                assert code_of(channel, "IsActive", reference()) is grpc.StatusCode.PERMISSION_DENIED
        (line,) = guarded.log.read_text().splitlines()
        assert "scaler_call_denied" in line
        assert "somebody" in line

    @pytest.mark.parametrize("who", ["nobody", "of another authority", "expired", "in plaintext"])
    def test_the_others_do_not_get_past_the_handshake(
        self, guarded: ScalerProcess, authority: Authority, tmp_path: Path, who: str
    ) -> None:
        clients: dict[str, KeyPair | None] = {
            "nobody": None,
            "in plaintext": None,
            "of another authority": Authority(tmp_path / "other", "other").issue("c", common_name="keda-operator"),
            "expired": authority.issue("c", common_name="keda-operator", until=datetime(2020, 1, 1, tzinfo=UTC)),
        }
        with guarded.channel(None if who == "in plaintext" else authority, clients[who]) as channel:
            assert code_of(channel, "IsActive", reference()) is grpc.StatusCode.UNAVAILABLE

    def test_certificates_are_replaced_while_it_runs(self, guarded: ScalerProcess, authority: Authority) -> None:
        client = authority.issue("client", common_name="keda-operator")
        before = shown_by(guarded, authority, client)
        authority.issue("server", "localhost")
        assert shown_by(guarded, authority, client) != before
        with guarded.channel(authority, client) as channel:
            assert ask(channel, "IsActive", reference()).result

    def test_half_of_a_rotation_is_written_down_alone(self, guarded: ScalerProcess, authority: Authority) -> None:
        client = authority.issue("client", common_name="keda-operator")
        before = shown_by(guarded, authority, client)
        pair = KeyPair(authority.certificate.with_name("server.crt"), authority.certificate.with_name("server.key"))
        pair.key.write_bytes(authority.issue("other", "localhost").key.read_bytes())
        assert shown_by(guarded, authority, client) == before
        assert '"event":"certificate_not_used"' in guarded.log.read_text()


def shown_by(scaler: ScalerProcess, authority: Authority, client: KeyPair) -> bytes:
    """The certificate that a new connection is shown."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.load_cert_chain(client.certificate, client.key)
    host, port = scaler.address.split(":")
    with socket.create_connection((host, int(port))) as plain, context.wrap_socket(plain, server_hostname=host) as tls:
        shown = tls.getpeercert(binary_form=True)
    assert shown
    return shown


class TestAttacks:
    def test_triggers_reach_no_other_namespace(self, scaler: ScalerProcess) -> None:
        with scaler.channel() as channel:
            request = reference(namespace="bank", **CPU, workload="../shop/web")
            assert code_of(channel, "IsActive", request) is grpc.StatusCode.NOT_FOUND

    def test_garbage_is_refused_and_others_go_on(self, scaler: ScalerProcess) -> None:
        host, port = scaler.address.split(":")
        for junk in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 5000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 5000):
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(junk)
        with scaler.channel() as channel:
            raw = channel.unary_unary("/externalscaler.ExternalScaler/IsActive")
            with pytest.raises(grpc.RpcError) as refused:
                raw(b"\xff\xff\xff\xff", timeout=PATIENCE)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert ask(channel, "IsActive", reference()).result

    def test_a_target_that_int64_does_not_have_is_told_as_a_fraction_alone(self, scaler: ScalerProcess) -> None:
        with scaler.channel() as channel:
            (spec,) = ask(channel, "GetMetricSpec", reference(signal="cpu", target="1e30")).metricSpecs
            assert (spec.targetSize, spec.targetSizeFloat) == (0, 2.0**63)
            assert ask(channel, "IsActive", reference()).result

    def test_what_is_too_large_is_refused(self, scaler: ScalerProcess) -> None:
        with scaler.channel() as channel:
            large = reference(**CPU, workload="x" * 100_000)
            assert code_of(channel, "IsActive", large) is grpc.StatusCode.RESOURCE_EXHAUSTED

    def test_half_open_connections_keep_nobody_out(self, guarded: ScalerProcess, authority: Authority) -> None:
        host, port = guarded.address.split(":")
        client = authority.issue("client", common_name="keda-operator")
        with ExitStack() as silent:
            for _ in range(500):
                silent.enter_context(socket.create_connection((host, int(port))))
            with guarded.channel(authority, client) as channel:
                wait_until(lambda: is_active(channel), goal="an answer beside 500 silent connections")

    def test_thousands_of_calls_at_once_are_all_answered(self, scaler: ScalerProcess) -> None:
        """KEDA comes back with all its triggers; each call that is cancelled would count towards a fallback."""
        request = wire.GetMetricsRequest(scaledObjectRef=reference(), metricName="cpu")
        with scaler.channel() as channel:
            method = channel.unary_unary(
                "/externalscaler.ExternalScaler/GetMetrics",
                wire.GetMetricsRequest.SerializeToString,
                wire.GetMetricsResponse.FromString,
            )
            calls = [method.future(request, timeout=PATIENCE) for _ in range(4000)]
            assert {call.code() for call in calls} == {grpc.StatusCode.OK}

    def test_a_torn_table_leaves_the_last_one(self, scaler: ScalerProcess, table: Path) -> None:
        table.write_bytes(table.read_bytes()[:200])
        with scaler.channel() as channel:
            assert ask(channel, "IsActive", reference()).result


def test_a_taken_address_ends_it_with_a_sentence(scaler: ScalerProcess, table: Path) -> None:
    command = [sys.executable, "-m", "forecaster.serving.keda", "--table", str(table)]
    command += ["--address", scaler.address.replace("localhost", "127.0.0.1")]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert refused.returncode == 1
    assert "forecaster keda: " in refused.stderr


def test_it_loads_nothing_that_computes() -> None:
    program = "import sys, forecaster.serving.keda.__main__; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    forbidden = {"numpy", "pandas", "pydantic", "models", "sqlalchemy", "starlette", "uvicorn", "requests"}
    assert forbidden.isdisjoint(loaded)
