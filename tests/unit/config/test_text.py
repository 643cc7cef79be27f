"""The printed settings are the defaults, and the example in deploy/ is what is printed."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from forecaster.config import text
from forecaster.config.settings import Settings, parse, setting_paths
from forecaster.config.text import explained_setting, origins_of, schema_of_settings, settings_text
from forecaster.errors import ConfigError, UnknownName

EXAMPLE = Path(__file__).parents[3] / "deploy" / "examples" / "settings.yaml"


def test_the_printed_settings_parse_to_the_defaults() -> None:
    assert parse(yaml.safe_load(settings_text()), "printed") == Settings()


def test_the_example_is_what_is_printed() -> None:
    assert EXAMPLE.read_text() == settings_text(), "run: ./dev run forecaster settings > deploy/examples/settings.yaml"


def test_every_setting_says_what_it_means() -> None:
    lines = settings_text().splitlines()
    silent = [
        line
        for above, line in pairwise(lines)
        if line and not line.lstrip().startswith("#") and not above.lstrip().startswith("#")
    ]
    assert silent == []


def test_a_setting_explains_itself_as_a_field_of_kubectl_does() -> None:
    lines = explained_setting("policy.vertical.min_memory").splitlines()
    assert lines[0] == 'policy.vertical.min_memory: "16Mi"'
    assert "  Allowed: number or a quantity such as 250m or 64Mi" in lines
    assert max(map(len, lines)) <= 80


def test_every_setting_and_section_can_be_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "schema_of_settings", cache(schema_of_settings))  # made once, not for each of them
    assert [path for path, _ in setting_paths() if path not in explained_setting(path)] == []


def test_a_section_lists_what_stands_in_it() -> None:
    assert "  lead_time " in explained_setting("policy.horizontal")


def test_a_setting_that_there_is_not_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"did you mean policy.horizontal.lead_time\?"):
        explained_setting("policy.horizontal.lead_tme")
    with pytest.raises(ConfigError, match=r"did you mean prometheus.retries\?"):
        parse({"prometheus": {"retrys": 1}}, "file")
    with pytest.raises(ConfigError, match=r"overrides\[0\].*did you mean policy.horizontal.lead_time\?"):
        parse({"overrides": [{"policy": {"horizontal": {"lead_tme": "5m"}}}]}, "file")


def test_origins_name_the_last_that_says_it(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("{prometheus: {url: http://a, headers: {X-Key: secret}}, policy: {mode: publish}}")
    assert origins_of(file, {"prometheus": {"url": "http://b"}}) == {
        "prometheus.url": "command line",
        "prometheus.headers.X-Key": str(file),
        "policy.mode": str(file),
    }


def test_the_schema_is_one_and_takes_what_the_settings_take() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = schema_of_settings()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    good = {"policy": {"horizontal": {"lead_time": "3m"}, "vertical": {"min_memory": "64Mi"}}}
    assert list(validator.iter_errors(good)) == []
    assert list(validator.iter_errors(yaml.safe_load(settings_text()))) == []
    assert [
        len(list(validator.iter_errors({"policy": {"horizontal": {"lead_time": bad}}}))) for bad in (3, "soon")
    ] != [0, 0]
