"""From the settings file to what the serving process is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from forecaster.app.outlets import serving_options
from forecaster.config.settings import parse
from forecaster.errors import ConfigError
from forecaster.serving.options import SecureOptions, ServingOptions, UpstreamOptions

PAIR = {"certificate_file": "/tls/tls.crt", "key_file": "/tls/tls.key"}


def options(**serving: Any) -> ServingOptions:
    given = serving_options(parse({"serving": serving}, "settings.yaml").serving)
    return msgspec.json.decode(msgspec.json.encode(given), type=ServingOptions)  # as it goes over the command line


def test_by_default_there_is_no_secure_door() -> None:
    assert options() == ServingOptions()


def test_staleness_is_told_in_seconds() -> None:
    assert options(stale_after="5m").stale_after_seconds == 300.0


def test_a_secure_door_has_its_certificate_and_our_service() -> None:
    parsed = options(secure={"enabled": True, **PAIR, "service": "forecaster/forecaster"})
    assert parsed.secure == SecureOptions("/tls/tls.crt", "/tls/tls.key", service="forecaster/forecaster")


@pytest.mark.parametrize(("server", "port"), [("https://old.keda.svc", 443), ("https://old.keda.svc:6443", 6443)])
def test_the_adapter_behind_us_is_an_address_and_an_authority(server: str, port: int) -> None:
    parsed = options(secure={"enabled": True, **PAIR, "upstream": {"server": server, "ca_file": "/old/ca.crt"}})
    assert parsed.secure is not None
    assert parsed.secure.upstream == UpstreamOptions(
        "old.keda.svc", port, "/old/ca.crt", "/var/run/secrets/kubernetes.io/serviceaccount/token"
    )


@pytest.mark.parametrize(
    "secure",
    [
        {"enabled": True},
        {"enabled": True, "certificate_file": "/tls/tls.crt"},
        {"upstream": {"server": "https://old.keda.svc"}},
        {"upstream": {"server": "http://old.keda.svc", "ca_file": "/old/ca.crt"}},
        {"service": "forecaster"},
    ],
    ids=["no pair", "no key", "unverified", "plaintext", "no namespace"],
)
def test_what_would_not_be_safe_is_refused(secure: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"serving\.secure"):
        parse({"serving": {"secure": secure}}, "settings.yaml")


def test_the_example_in_the_documentation_is_accepted() -> None:
    page = (Path(__file__).parents[3] / "docs" / "external-metrics.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(serving:\n.*?)```", page, re.DOTALL)
    assert parse(yaml.safe_load(example), "docs").serving.secure.enabled


@pytest.mark.parametrize("zone", ["Europe", "Europe/Berln", "x" * 300])
def test_a_zone_that_there_is_not_is_refused_by_its_path(zone: str) -> None:
    with pytest.raises(ConfigError, match=r"serving\.holidays\.zone: '(Eur|xxx)"):
        parse({"serving": {"holidays": {"zone": zone}}}, "test")


def test_a_country_without_holidays_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="DE-BY for a region"):
        parse({"serving": {"holidays": {"countries": ["XX"]}}}, "test")


def test_half_a_price_is_refused() -> None:
    with pytest.raises(ConfigError, match="half a price"):
        parse({"prices": {"core_hour": 0.03}}, "test")
