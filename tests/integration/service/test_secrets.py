"""Secrets stand everywhere they may stand, servers repeat what they are sent, and nothing that is read shows one."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest
import yaml
from typer.testing import CliRunner

from forecaster.app import telemetry
from forecaster.cli import app
from forecaster.publish.reader import TableReader
from forecaster.serving.app import create_app
from tests.support.asgi import Client
from tests.support.builders import after
from tests.support.composed import composed, recorded_cluster, table_path, tick
from tests.support.http_server import Reply, Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.http_server import HttpRequest

SEED = "Xyzzy"
TOKEN, PASSWORD, HEADER, IN_ADDRESS, OF_DATABASE, OF_REMOTE = SECRETS = (
    f"{SEED}-bearer-token",
    f"{SEED}-basic-password",
    f"{SEED}-header-value",
    f"{SEED}-in-the-address",
    f"{SEED}-of-the-database",
    f"{SEED}-of-remote-write",
)
ENCODED = base64.b64encode(f"scraper:{PASSWORD}".encode()).decode()
STATUSES = (200, 401, 403, 404, 422, 500, 503)


def repeats(status: int) -> Server:
    """A debugging proxy: it answers with all that it was sent."""

    def respond(request: HttpRequest) -> Reply:
        return Reply(status, json.dumps({"status": "error", "errorType": "x", "error": dict(request.headers)}).encode())

    return Server(respond)


def chatty(status: int) -> Server:
    """A debugging proxy that answers in the words of a Prometheus."""

    def respond(request: HttpRequest) -> Reply:
        message = f"headers {sorted(request.headers.items())}"
        return Reply(status, json.dumps({"status": "error", "errorType": "bad_data", "error": message}).encode())

    return Server(respond)


@pytest.fixture(params=["token", "password"])
def identity(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, object]:
    """Two ways to say who asks, and a header of one's own."""
    token, password = tmp_path / "token", tmp_path / "password"
    token.write_text(TOKEN)
    password.write_text(PASSWORD)
    ways: dict[str, dict[str, object]] = {
        "token": {"bearer_token_file": str(token)},
        "password": {"username": "scraper", "password_file": str(password)},
    }
    return {**ways[request.param], "headers": {"X-Api-Key": HEADER}, "retries": 0}


@pytest.fixture(params=STATUSES)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with (chatty if request.param % 2 else repeats)(request.param) as running:
        yield running


def test_no_command_and_no_log_says_one(server: Server, identity: dict[str, object], tmp_path: Path) -> None:
    settings = {
        "prometheus": {**identity, "url": server.url},
        "remote_write": {"url": server.url.replace("://", f"://writer:{IN_ADDRESS}@") + "/api/v1/write"},
        "state": {"database": f"postgresql://writer:{OF_DATABASE}@127.0.0.1:9/forecasts"},
        "kubernetes": {"live": "off"},
    }
    config = tmp_path / "settings.yaml"
    config.write_text(yaml.safe_dump(settings))
    for command in (["once"], ["doctor"], ["settings"], ["explain", "shop/web"]):
        done = CliRunner().invoke(app, [*command, "--config", str(config)])
        nothing_is_said(f"{command}", f"{done.output} {done.stderr} {done.exception!r}")
    assert any(HEADER in dict(request.headers).values() for request in server.requests), "it was not sent at all"


def test_the_service_publishes_none(
    identity: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files, logs, metrics and answers hold no secret, in cycles that go well and in cycles that do not."""
    telemetry.configure(level="DEBUG", json=True)
    with repeats(401) as receiver, recorded_cluster() as cluster:
        given = {
            "prometheus": {**identity, "url": cluster.url},
            "remote_write": {"url": receiver.url, "headers": {"X-Key": OF_REMOTE}},
        }
        with composed(cluster, tmp_path / "state", **given) as service:
            for minute in range(2):
                tick(service, after(minute))
            reported = [service.metrics.text(), repr(service.report), repr(service.settings)]
    files = [file.read_bytes().decode("latin-1") for file in (tmp_path / "state").rglob("*") if file.is_file()]
    reader = TableReader(table_path(tmp_path / "state"), lambda: after(1))
    reader.refresh()
    client = Client(create_app(reader))
    paths = ("/", "/healthz", "/metrics", "/openapi/v3", "/api/v1/recommendations", "/api/v1/health", "/health")
    captured = capsys.readouterr()
    for text in (*reported, *files, *(client.get(path).text for path in paths), captured.out, captured.err):
        nothing_is_said("the service", text)
    assert receiver.requests, "nothing was written to it"


def nothing_is_said(where: str, text: str) -> None:
    """Fail where a text has a secret, be it plain or encoded for basic authentication."""
    leaks = [line for line in text.splitlines() if SEED in line or ENCODED in line]
    assert not leaks, f"{where}: {leaks[0][:300]}"
