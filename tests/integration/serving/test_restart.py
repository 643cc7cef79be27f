"""A serving process that starts anew in a pod that is ready: what the front proxy's first requests are answered."""

from __future__ import annotations

import os
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.published import publisher
from tests.support.recommendations import recommendation
from tests.support.secure_serving import SecureServing
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[SecureServing]:
    now = datetime.now(UTC)
    publisher(tmp_path / "table").publish(now, [recommendation(at=now)])
    with SecureServing(tmp_path, tmp_path / "table") as running:
        yield running


def killed(serving: SecureServing) -> None:
    """Kill the process and wait until it is gone; the next one starts by itself."""
    before = serving.process.pid
    assert before is not None
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{before}").exists(), goal="the end of the process")


def test_the_first_requests_wait_until_the_front_proxy_is_known(serving: SecureServing) -> None:
    """The API server takes a second for each answer; before, these requests were a 401 until it had answered."""
    serving.reviews.delay = 1.0
    answers: list[httpx.Response] = []
    killed(serving)
    clients = [threading.Thread(target=lambda: answers.append(serving.as_proxy())) for _ in range(8)]
    for client in clients:
        client.start()
    unready = serving.plain("/readyz")
    for client in clients:
        client.join()
    assert unready.status_code == 503
    assert "extension-apiserver-authentication has not been read yet" in unready.json()["detail"]
    assert [answer.status_code for answer in answers] == [200] * 8
    assert serving.plain("/readyz").status_code == 200


@pytest.mark.slow
def test_without_the_api_server_the_front_proxy_is_told_so_and_is_not_a_stranger(serving: SecureServing) -> None:
    """After the wait the answer is 503, an error that passes; the proxy is served as soon as the API server is back."""
    serving.reviews.down = True
    killed(serving)
    answer = serving.as_proxy()
    assert answer.status_code == 503
    assert answer.json()["message"] == "the cluster's front proxy is not known yet"
    assert serving.plain("/readyz").status_code == 503
    serving.reviews.down = False
    wait_until(lambda: serving.as_proxy().status_code == 200, goal="the front proxy")
