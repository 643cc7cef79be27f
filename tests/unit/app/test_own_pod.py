"""Events beside our own pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forecaster.app.own_pod import OwnPod, SettingsEvents
from forecaster.kube.client import ApiError, UnreachableError
from tests.support.fences import Log
from tests.support.recommendations import NOON

if TYPE_CHECKING:
    from forecaster.actuators.marks import EventObject

NAMED = {"POD_NAMESPACE": "forecaster", "POD_NAME": "forecaster-0", "POD_UID": "1234"}


class Client:
    """Keeps the Events that it is sent, or fails."""

    def __init__(self, fails: ApiError | None = None) -> None:
        self.fails, self.sent, self.closed = fails, list[Any](), False
        self.written = self.sent

    def create(self, _path: str, event: EventObject, _kind: type) -> None:
        if self.fails:
            raise self.fails
        self.sent.append(event)

    def close(self) -> None:
        self.closed = True


def events(client: Client, log: Log) -> SettingsEvents:
    pod = OwnPod.of_environment(NAMED)
    assert pod is not None
    return SettingsEvents(pod, lambda: client, lambda: NOON, log)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("missing", NAMED)
def test_without_the_downward_api_there_is_no_pod_to_tell(missing: str) -> None:
    assert OwnPod.of_environment({key: value for key, value in NAMED.items() if key != missing}) is None


def test_refused_settings_are_a_warning_and_good_ones_are_told() -> None:
    client = Client()
    sender = events(client, Log(client))
    sender.tell("policy.mode: 'flor' is none")
    sender.tell("")
    assert [(event.type, event.reason, event.metadata.namespace) for event in client.sent] == [
        ("Warning", "SettingsRefused", "forecaster"),
        ("Normal", "SettingsTakenOver", "forecaster"),
    ]
    assert client.sent[0].message == "The previous settings stay in force: policy.mode: 'flor' is none"
    assert (client.sent[0].involved_object.kind, client.sent[0].involved_object.uid) == ("Pod", "1234")
    assert client.closed


@pytest.mark.parametrize("error", [ApiError("forbidden", 403), UnreachableError("no answer")])
def test_an_event_that_cannot_be_put_there_is_a_line_in_the_log(error: ApiError) -> None:
    client = Client(error)
    log = Log(client)
    events(client, log).tell("a fault")
    ((event, facts),) = log.lines
    assert (event, facts["by"]) == ("cluster_event_lost", "settings")
