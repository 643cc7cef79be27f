"""A fleet in shards, as settings ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forecaster.app.sharding.cycle import executor_of
from forecaster.app.sharding.shard import LocalExecutor
from forecaster.config.settings import parse
from forecaster.errors import ConfigError

if TYPE_CHECKING:
    from forecaster.config.sharding import ShardingSettings

TLS = {"ca_file": "/tls/ca.crt", "certificate_file": "/tls/tls.crt", "key_file": "/tls/tls.key"}
SECURE = {"enabled": True, "certificate_file": "/tls/tls.crt", "key_file": "/tls/tls.key", "service": "a/b"}
REPLICAS = {"replicas": {"enabled": True, "host": "10.0.0.1", "ca_file": "/tls/ca.crt"}, "serving": {"secure": SECURE}}


def given(sharding: dict[str, Any] | None = None, **sections: Any) -> ShardingSettings:
    return parse({"sharding": {"enabled": True, **(sharding or {})}, **sections}, "settings.yaml").sharding


def test_a_fleet_is_not_divided_by_default() -> None:
    assert not parse({}, "settings.yaml").sharding.enabled


def test_without_a_scheduler_this_process_computes_the_shards() -> None:
    assert isinstance(executor_of(given()), LocalExecutor)


@pytest.mark.parametrize(
    ("scheduler", "listens_at"),
    [
        ("tls://scheduler.forecaster.svc:8786", "tls://"),
        ("tls://[fd00::1]:8786", "tls://"),
        ("tls://127.0.0.1:8786", "tls://127.0.0.1"),
        ("tcp://localhost:8786", "tcp://localhost"),
    ],
)
def test_scheduler_and_workers_of_loopback_listen_there_alone(scheduler: str, listens_at: str) -> None:
    sharding = given({"scheduler": scheduler, **TLS})
    assert (sharding.listens_at, sharding.port) == (listens_at, 8786)


@pytest.mark.parametrize(
    ("sharding", "sections", "why"),
    [
        ({"scheduler": "scheduler:8786"}, {}, "scheduler must be tls://HOST:PORT"),
        ({"scheduler": "tcp://scheduler.forecaster.svc:8786"}, {}, "without TLS anybody may run code"),
        (
            {"scheduler": "tls://scheduler:8786", "ca_file": "/tls/ca.crt"},
            {},
            "needs ca_file, certificate_file and key",
        ),
        ({"shards": 0}, {}, "1"),
        ({}, REPLICAS, "needs state.database of PostgreSQL"),
    ],
)
def test_what_does_not_go_together_is_refused(sharding: dict[str, Any], sections: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        given(sharding, **sections)


def test_replicas_share_what_was_learned_in_postgresql() -> None:
    assert given(**REPLICAS, state={"database": "postgresql+psycopg://forecaster@postgres/forecaster"}).enabled
