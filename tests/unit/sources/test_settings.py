from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from forecaster.sources.settings import PrometheusSettings


@pytest.mark.parametrize("end", ["/", " ", "/api/v1", "/api/v1/\n"])
def test_the_end_of_an_address_is_tidied(end: str) -> None:
    assert PrometheusSettings(url=f"https://prom.example/prefix{end}").url == "https://prom.example/prefix"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"url": "prometheus:9090"}, "address like"),
        ({"url": "ftp://prometheus"}, "address like"),
        ({"url": "http://"}, "address like"),
        ({"url": "http://prom/?a=b"}, "query or fragment"),
        ({"username": "ali"}, "belong together"),
        ({"password_file": "/secret"}, "belong together"),
        ({"username": "ali", "password_file": "/p", "bearer_token_file": "/t"}, "either"),
        ({"client_key_file": "/key"}, "needs client_certificate_file"),
        ({"retries": -1}, "greater than or equal to 0"),
        ({"colour": "blue"}, "Extra inputs"),
    ],
)
def test_what_cannot_work_is_refused(given: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        PrometheusSettings(**given)


def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(ValidationError, match="must not contain credentials") as caught:
        PrometheusSettings(url="http://ali:sesame@prom:9090")
    assert "sesame" not in str(caught.value)
    assert "sesame" not in repr(caught.value.errors())


def test_header_values_are_not_shown() -> None:
    settings = PrometheusSettings(headers={"X-Token": "sesame"})
    assert "sesame" not in repr(settings)
    assert "sesame" not in settings.model_dump_json()


def test_every_field_explains_itself() -> None:
    assert [name for name, field in PrometheusSettings.model_fields.items() if not field.description] == []


def test_files_are_paths() -> None:
    assert PrometheusSettings(ca_file="/etc/ca.pem").ca_file == Path("/etc/ca.pem")
