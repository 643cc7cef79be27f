"""Answers that HPAs read while Prometheus is away: errors, and no number or count of the past."""

from __future__ import annotations

import json
import signal as signals
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import yaml

from forecaster.app.serve import table_path
from forecaster.domain.layers import merged
from forecaster.domain.workload import Target, TargetType
from forecaster.publish.reader import TableReader
from forecaster.serving.app import create_app
from tests.support.asgi import Client
from tests.support.builders import NOON, after, hpa, workload
from tests.support.composed import composed, recorded_cluster, tick
from tests.support.fakes import FakeSource, nobody_answers
from tests.support.faulty_proxy import FaultyProxy
from tests.support.snippets import snippets
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from httpx import Response

OURS = Target("forecaster_demand", TargetType.AVERAGE_VALUE, 0.5)
VALUE = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/forecaster_demand?labelSelector=workload=web,signal="


def hpa_answer(directory: Path, minute: int, signal: str = "cpu") -> Response:
    """Return the answer that the HPA controller gets, seconds after a cycle."""
    reader = TableReader(table_path(directory), lambda: after(minute))
    reader.refresh()
    return Client(create_app(reader)).get(VALUE + signal)


def test_a_count_of_the_past_is_asked_of_no_hpa(tmp_path: Path) -> None:
    """A person scales from 4 to 30 while nothing is known: nothing here asks them back to 4."""
    with recorded_cluster([workload("web", autoscaler=hpa(OURS))]) as cluster, composed(cluster, tmp_path) as service:
        tick(service, NOON)
        assert hpa_answer(tmp_path, 0).is_success
        service.cycle.source = FakeSource([], down=nobody_answers())
        for minute in range(1, 13):
            tick(service, after(minute))
            answer = hpa_answer(tmp_path, minute)
            assert answer.status_code == 503
            assert "source-down" in answer.json()["message"]


def test_the_runbook_takes_the_forecast_out_though_the_owner_states_the_mode(tmp_path: Path) -> None:
    """An annotation, which stands above `mode: observe` of the settings, does so; the HPA is answered as before."""
    (fragment,) = (
        snippet.text
        for snippet in snippets()
        if snippet.page.name == "runbooks.md" and "max_replicas: 1" in snippet.text
    )
    policy = {"mode": "observe", "horizontal": {"gate": False}}
    target, counts = 0.253, {}
    for name, given in {"before": {}, "after": yaml.safe_load(fragment)["policy"]}.items():
        web = workload("web", autoscaler=hpa(replace(OURS, value=target)))
        with (
            recorded_cluster([web]) as cluster,
            composed(cluster, tmp_path / name, policy=merged(policy, given)) as service,
        ):
            service.cycle.policies.annotate({web.id: "publish"})
            for minute in range(3):
                tick(service, after(minute))
            answer = hpa_answer(tmp_path / name, 2).json()["items"][0]["value"]
            counts[name] = ceil(round(float(answer.replace("m", "e-3")) / target, 6))
    measured = 2.51
    assert counts == {"before": 11, "after": ceil(measured / target)}


def test_two_targets_of_our_demand_are_an_error_with_a_sentence(tmp_path: Path) -> None:
    """A target means requests by its selector, which no inventory tells: as CPU it would ask for thousands of pods."""
    both = hpa(OURS, Target("forecaster_demand", TargetType.AVERAGE_VALUE, 100.0))
    with recorded_cluster([workload("web", autoscaler=both)]) as cluster, composed(cluster, tmp_path) as service:
        tick(service, NOON)
        answer = hpa_answer(tmp_path, 0)
    assert answer.status_code == 400
    assert "2 targets of forecaster_demand that differ" in answer.json()["message"]


def test_a_signal_that_decides_nothing_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    with recorded_cluster([workload("web", autoscaler=hpa(OURS))]) as cluster, composed(cluster, tmp_path) as service:
        tick(service, NOON)
        answer = hpa_answer(tmp_path, 0, "requests")
    assert answer.status_code == 404
    assert "is not decided by requests; there are cpu" in answer.json()["message"]


def test_a_workload_that_is_not_there_is_named(tmp_path: Path) -> None:
    with recorded_cluster([workload("shop")]) as cluster, composed(cluster, tmp_path) as service:
        tick(service, NOON)
        answer = hpa_answer(tmp_path, 0)
    assert (answer.status_code, answer.json()["message"]) == (404, "no workload web in namespace shop")


def test_a_fleet_without_a_sample_of_anything_has_a_line_in_the_report(tmp_path: Path) -> None:
    """After a start while kube-state-metrics is away, workloads are known, and nothing that joins with them."""
    with recorded_cluster() as cluster, composed(cluster, tmp_path) as service:
        tick(service, after(60 * 7))  # four hours after the last sample
        assert service.report
        (line,) = (failure for failure in service.report.failures if failure.startswith("no signal"))
        assert line.startswith("no signal has a sample of any of 2 workloads: see `forecaster doctor`")
    with recorded_cluster() as cluster, composed(cluster, tmp_path / "other") as service:
        tick(service, NOON)
        assert service.report
        assert service.report.failures == ()


def test_the_service_ends_after_its_grace_although_prometheus_answers_nothing(tmp_path: Path) -> None:
    """Nothing waits for the cycle that is cut off, which would wait ten minutes for its answer."""
    log, config = tmp_path / "log", tmp_path / "settings.yaml"
    with socket.create_server(("127.0.0.1", 0)) as silent, log.open("w") as errors:
        silent.settimeout(PATIENCE)
        settings = {
            "prometheus": {"url": f"http://127.0.0.1:{silent.getsockname()[1]}", "read_timeout_seconds": 600},
            "cycle": {"grace": "1s"},
            "serving": {"enabled": False},
            "state": {"directory": str(tmp_path)},
        }
        config.write_text(json.dumps(settings))
        command = [sys.executable, "-m", "forecaster", "run", "--config", str(config)]
        process = subprocess.Popen(command, stderr=errors)
        try:
            with silent.accept()[0], silent.accept()[0]:  # the start asks whose Prometheus it is, then a cycle reads
                process.send_signal(signals.SIGTERM)
                assert process.wait(60) == 1
        finally:
            process.kill()
            process.wait()
    assert '"finished": false' in log.read_text()


def test_ctrl_c_in_the_first_cycle_of_top_ends_it_after_one_picture() -> None:
    """Without the mend the next cycle began a minute later, with half a picture on the screen."""
    with recorded_cluster() as cluster, FaultyProxy(cluster.url) as proxy:
        proxy.slow = "container_cpu_usage_seconds_total"
        with interruptible("top", "--prometheus", proxy.url) as process:
            wait_until(lambda: proxy.kept_waiting > 0, goal="the observations")
            process.send_signal(signals.SIGINT)
            proxy.mended()
            output = process.communicate(timeout=60)
    assert (process.returncode, "shop/web" in output[0]) == (130, True)


@contextmanager
def interruptible(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command that takes Ctrl-C as on a terminal: a shell's background ignores it."""
    before = signals.signal(signals.SIGINT, signals.default_int_handler)
    command, pipe = [sys.executable, "-m", "forecaster", *words], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        signals.signal(signals.SIGINT, before)
        try:
            yield process
        finally:
            process.kill()


def test_ctrl_c_before_anything_is_known_ends_a_command_as_interrupted() -> None:
    """The command does not end as one that failed, with advice about a Prometheus that had no time to answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE)
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with interruptible("once", "--prometheus", address) as process, silent.accept()[0]:
            process.send_signal(signals.SIGINT)
            output = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, ("", ""))
