"""The commands as users type them, on a Prometheus-compatible endpoint with three workloads and a day of history."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from forecaster.__main__ import main
from forecaster.cli import app, decisions
from forecaster.cli.options import matching, settings_of
from forecaster.config.settings import Settings
from forecaster.domain.signal import CPU, MEMORY, PODS, REQUESTS
from forecaster.domain.window import MINUTE
from forecaster.publish import publisher
from forecaster.report.formats import Output
from forecaster.resources.neighbours import Neighbours
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import Recording
from tests.support.builders import GIB, NOON, hpa, minutes, workload
from tests.support.recommendations import workload_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from forecaster.domain.workload import Workload

COMMANDS = (
    *("once", "run", "explain", "doctor", "demo", "models", "settings", "hpa", "top", "why-not", "history", "diff"),
    *("recommend", "nodes", "replay", "tune", "backtest", "certificates", "init", "shards"),
)
WEB, CART = workload("web"), workload("cart", autoscaler=replace(hpa(), name="cart-hpa"))
BATCH = workload(id=workload_id("batch", "jobs"), replicas=2, autoscaler=None)
CONFIG = """
history: {minutes_kept: 1h, weeks_kept: 1d}
forecast: {model: last-value}
prometheus: {retries: 0, connect_timeout_seconds: 1}
state: {directory: %s}
"""

SILENT = """
from models import LastValue
class Silent(LastValue):
    __doc__ = ""
"""


@dataclass(frozen=True)
class Printed:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Terminal:
    """Types commands that read this address, at noon unless another instant is given, and returns their output."""

    url: str
    config: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def types(self, *words: str, at: str = NOON.isoformat()) -> Printed:
        return self.types_exactly(*words, "--prometheus", self.url, "--config", str(self.config), "--at", at)

    def types_exactly(self, *words: str) -> Printed:
        self.monkeypatch.setattr("sys.argv", ["forecaster", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = self.capsys.readouterr()
        return Printed(int(ended.value.code or 0), shown.out, shown.err)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Two cores for the web, five for the cart, one for the batch; one GiB a pod; no request rates."""
    workloads = (WEB, CART, BATCH)
    length = 24 * 60 + 60
    pods = np.array([[workload.replicas] for workload in workloads])
    values = {
        CPU: np.repeat([[2.0], [5.0], [1.0]], length, axis=1),
        MEMORY: np.repeat(pods * GIB, length, axis=1),
        REQUESTS: np.full((3, length), np.nan),
        PODS: np.repeat(pods, length, axis=1).astype(float),
    }
    recording = Recording(NOON - (length - 30) * MINUTE, workloads, values)
    with EmbeddedPrometheus(recording, Settings().queries, recording.fleet(NOON)) as served:
        yield served.url


@pytest.fixture
def terminal(
    endpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    config = tmp_path / "settings.yaml"
    config.write_text(CONFIG % tmp_path)
    return Terminal(endpoint, config, capsys, monkeypatch)


def rows(printed: Printed) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(printed.out)))


def names(printed: Printed) -> list[str]:
    return [f"{row['namespace']}/{row['name']}" for row in rows(printed)]


class TestHelp:
    def test_lists_every_command(self) -> None:
        shown = CliRunner().invoke(app, ["--help"])
        assert shown.exit_code == 0
        assert [command for command in COMMANDS if f" {command} " not in shown.output] == []

    @pytest.mark.parametrize(
        "command", [*([name] for name in COMMANDS), ["hpa", "explain"], ["backtest", "vertical"]], ids=" ".join
    )
    def test_help_cuts_nothing_and_names_values_as_people_do(self, command: list[str]) -> None:
        shown = CliRunner().invoke(app, [*command, "--help"]).output
        assert re.search(r"<[a-z ]+>|\w\.\.\.$", shown, re.MULTILINE) is None, shown

    @pytest.mark.parametrize("command", COMMANDS)
    def test_of_each_command_answers(self, command: str) -> None:
        shown = CliRunner().invoke(app, [command, "--help"])
        assert shown.exit_code == 0
        assert "Usage:" in shown.output

    @pytest.mark.parametrize("command", [("once",), ("models",), ("schema",), ("settings",), ("hpa", "explain")])
    def test_an_argument_that_may_be_left_out_is_in_brackets_once(
        self, terminal: Terminal, command: Sequence[str]
    ) -> None:
        usage = terminal.types_exactly(*command, "-h").out.splitlines()[0]
        assert ("[" in usage.partition("[OPTIONS]")[2], "[[" in usage) == (True, False)

    def test_is_what_a_bare_command_shows(self) -> None:
        assert "Usage:" in CliRunner().invoke(app, []).output

    def test_as_a_plugin_it_has_the_name_that_was_typed(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.argv", ["/usr/local/bin/kubectl-forecaster", "once", "-h"])
        with pytest.raises(SystemExit):
            main()
        assert capsys.readouterr().out.startswith("Usage: kubectl forecaster once ")

    def test_every_command_has_examples(self) -> None:
        texts = {name: CliRunner().invoke(app, [name, "-h"]).output for name in COMMANDS}
        assert [name for name, text in texts.items() if "Examples:" not in text] == ["hpa", "backtest", "shards"]


class TestOnce:
    def test_prints_a_table_of_all_workloads_in_the_order_of_their_names(self, terminal: Terminal) -> None:
        printed = terminal.types("once")
        first = [line.split()[0] for line in printed.out.splitlines()]
        assert (printed.code, first) == (0, ["WORKLOAD", "jobs/batch", "shop/cart", "shop/web"])

    def test_prints_json_as_the_api_answers_it(self, terminal: Terminal) -> None:
        web = json.loads(terminal.types("once", "-o", "json").out)["recommendations"][-1]
        assert (web["name"], web["replicas"]["now"], web["replicas"]["recommended"]) == ("web", 4, 4)
        assert [signal["signal"] for signal in web["signals"]] == ["cpu"]

    def test_takes_the_age_of_the_latest_sample_from_all_that_was_read(self, terminal: Terminal) -> None:
        """Samples end at 12:29; the last part that was read has none in its last ten minutes."""
        terminal.config.write_text(
            f"{CONFIG.replace('1h', '3h') % terminal.config.parent}policy: {{max_sample_age: 20m}}"
        )
        web = json.loads(terminal.types("once", "-o", "json", at=(NOON + minutes(47)).isoformat()).out)
        signal = web["recommendations"][-1]["signals"][0]
        assert (signal["measured"], signal["measured_at"]) == (2.0, "2026-03-01T12:29:00Z")

    def test_prints_the_same_as_yaml(self, terminal: Terminal) -> None:
        in_json = json.loads(terminal.types("once", "-o", "json").out)
        in_yaml = yaml.safe_load(terminal.types("once", "-o", "yaml").out)
        assert json.loads(json.dumps(in_yaml, default=lambda at: at.isoformat().replace("+00:00", "Z"))) == in_json

    def test_prints_numbers_of_base_units_as_csv(self, terminal: Terminal) -> None:
        _, cart, web = rows(terminal.types("once", "-o", "csv"))
        assert (cart["replicas_now"], cart["replicas"], cart["reason"]) == ("4", "10", "gated")
        assert (web["memory_request_bytes_now"], web["cpu_limit_cores_now"]) == (str(int(GIB)), "2.0")

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("shop/*", ["shop/cart", "shop/web"]),
            ("web", ["shop/web"]),
            ("jobs/b*", ["jobs/batch"]),
            ("w?b", ["shop/web"]),
        ],
    )
    def test_shows_only_the_workloads_of_a_pattern(
        self, terminal: Terminal, pattern: str, expected: Sequence[str]
    ) -> None:
        assert names(terminal.types("once", pattern, "-o", "csv")) == expected

    @pytest.mark.parametrize(
        ("typed", "answer"),
        [
            ("shop/catr", "no workload matches 'shop/catr'; did you mean shop/cart?"),
            ("wbe", "did you mean shop/web?"),
            ("nowhere/*", "there are jobs/batch, shop/cart, shop/web"),
        ],
    )
    def test_names_what_is_near_a_name_that_matches_nothing(self, terminal: Terminal, typed: str, answer: str) -> None:
        printed = terminal.types("once", typed)
        assert (printed.code, printed.out) == (1, "")
        assert answer in printed.err

    def test_recommend_names_it_too(self, terminal: Terminal) -> None:
        printed = terminal.types("recommend", "shop/catr")
        assert (printed.code, printed.out) == (1, "")
        assert "no workload matches 'shop/catr'; did you mean shop/cart?" in printed.err

    @pytest.mark.parametrize("form", list(Output))
    def test_where_there_is_no_workload_every_form_says_so_on_standard_error(self, form: Output) -> None:
        recording = Recording(NOON, (), dict.fromkeys((CPU, MEMORY, PODS, REQUESTS), np.zeros((0, 9))))
        with EmbeddedPrometheus(recording, Queries(), recording.fleet(NOON)) as empty:
            answer = CliRunner().invoke(app, ["once", "--prometheus", empty.url, "-o", form])
        assert (answer.exit_code, "No workload was found" in answer.stderr) == (1, True)
        assert json.loads(answer.stdout) == {"recommendations": []} if form is Output.JSON else True

    def test_a_namespace_without_workloads_is_an_error(self, terminal: Terminal) -> None:
        assert terminal.types("once", "-n", "nowhere").code == 1

    def test_a_misspelt_namespace_is_answered_with_the_nearest(self, terminal: Terminal) -> None:
        printed = terminal.types("once", "-n", "shpo")
        assert (printed.code, printed.out) == (1, "")
        assert "no namespace matches 'shpo'; did you mean shop?" in printed.err

    def test_replay_of_a_misspelt_namespace_is_answered_too(self, terminal: Terminal) -> None:
        given = ("--prometheus", terminal.url, "--config", str(terminal.config), "--until", NOON.isoformat())
        printed = terminal.types_exactly("replay", "--from-prometheus", "-n", "shpo", *given)
        assert (printed.code, printed.out) == (1, "")
        assert "no namespace matches 'shpo'; did you mean shop?" in printed.err

    @pytest.mark.parametrize(
        ("spelt", "expected"), [("shop", ["shop/cart", "shop/web"]), ("j*,nowhere", ["jobs/batch"])]
    )
    def test_reads_only_the_namespaces_that_are_named(
        self, terminal: Terminal, spelt: str, expected: Sequence[str]
    ) -> None:
        assert terminal.types("once", "-n", spelt, "-o", "name").out.split() == expected

    def test_leaves_out_columns_at_80_and_has_all_of_them_wide(
        self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        narrow, wide = terminal.types("once").out, terminal.types("once", "-o", "wide").out
        assert max(map(len, narrow.splitlines())) <= 80
        assert ["MEMORY LIMIT" in text for text in (narrow, wide)] == [False, True]

    def test_says_which_override_no_workload_has(self, terminal: Terminal) -> None:
        idle = "overrides: [{match: {name: crat}, policy: {}}, {match: {name: cart}, policy: {}}]"
        terminal.config.write_text(terminal.config.read_text() + idle)
        assert "overrides[0] matches no workload: name 'crat'" in terminal.types("once").err
        assert "overrides[1]" not in terminal.types("once").err

    def test_takes_policies_from_the_file(self, terminal: Terminal) -> None:
        terminal.config.write_text(
            terminal.config.read_text() + "overrides: [{match: {name: cart}, policy: {horizontal: {max_replicas: 7}}}]"
        )
        assert [row["replicas"] for row in rows(terminal.types("once", "shop/*", "-o", "csv"))] == ["7", "4"]

    def test_decides_at_the_last_full_minute_of_the_instant_given(self, terminal: Terminal) -> None:
        (row,) = rows(terminal.types("once", "web", "-o", "csv", at="2026-03-01T13:20:59+01:00"))
        assert row["at"] == (NOON + minutes(20)).isoformat()


class TestTop:
    def test_shows_one_picture_and_stops_when_told_to(self, terminal: Terminal) -> None:
        printed = terminal.types_exactly(
            "top", "shop/*", "--once", "--prometheus", terminal.url, "--config", str(terminal.config)
        )
        assert (printed.code, "2 workloads, " in printed.out, "shop/web" in printed.out) == (0, True, True)

    def test_names_the_workloads_there_are_when_none_matches(self, terminal: Terminal) -> None:
        printed = terminal.types_exactly(
            "top", "nosuch", "--prometheus", terminal.url, "--config", str(terminal.config)
        )
        assert (printed.code, "there are jobs/batch, shop/cart, shop/web" in printed.err) == (1, True)

    def test_of_the_demo_begins_where_the_demo_does(self, terminal: Terminal) -> None:
        printed = terminal.types_exactly("top", "shop/recommendations", "--once", "--demo")
        assert (printed.code, printed.out.splitlines()[0]) == (0, "2021-10-19 00:00 UTC: 1 workload, 1 up")

    def test_draws_the_last_hours_at_80_columns(self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        printed = terminal.types_exactly(
            "top", "shop/*", "--once", "--prometheus", terminal.url, "--config", str(terminal.config)
        )
        assert "LAST 12 H" in printed.out
        assert max(map(len, printed.out.splitlines())) <= 80


class TestMistakes:
    def test_a_value_is_answered_with_the_right_spelling_and_a_file_that_is_missing_in_words(
        self, terminal: Terminal, tmp_path: Path
    ) -> None:
        terminal.config.write_text("policy: {mode: publsh, vertical: {mode: inplace}}")
        errors = terminal.types_exactly("settings", "--config", str(terminal.config)).err
        assert "policy.mode: 'publsh': must be one of observe, publish, floor, scale" in errors
        assert "did you mean publish?" in errors
        assert "did you mean in-place?" in errors
        missing = terminal.types_exactly("settings", "--config", str(tmp_path / "none.yaml"))
        assert "none.yaml' does not exist" in missing.err

    def test_a_prometheus_that_does_not_answer_names_the_doctor(self, terminal: Terminal) -> None:
        printed = terminal.types_exactly(
            "replay", "--from-prometheus", "--prometheus", "http://127.0.0.1:9", "--config", str(terminal.config)
        )
        assert (printed.code, "`forecaster doctor` tries" in printed.err) == (1, True)


class TestExplain:
    def test_prints_the_record_of_one_workload(self, terminal: Terminal) -> None:
        printed = terminal.types("explain", "shop/cart")
        lines = [line.strip() for line in printed.out.splitlines()]
        assert printed.code == 0
        assert lines[1].startswith("cpu, the last 12 h: ██")
        assert lines[:1] + lines[2:4] == [
            "Deployment shop/cart at 2026-03-01 12:00:00 UTC",
            "replicas: 4 now, owned by HPA cart-hpa",
            "cpu: target 50 % of 1000m a pod",
        ]
        assert any(line.startswith("=> 10 replicas (gated)") for line in lines)

    def test_says_what_count_and_size_together_would_be(self, terminal: Terminal) -> None:
        printed = terminal.types("explain", "shop/cart", "--joint")
        (line,) = (line.strip() for line in printed.out.splitlines() if "together:" in line)
        assert line.startswith("together: ")

    def test_makes_the_offers_of_a_fleet_once_for_all_that_it_explains(self, terminal: Terminal) -> None:
        """Making the offers for each of a hundred workloads took eleven seconds in a fleet of 2,000."""
        with patch.object(publisher, "offered_cycle", wraps=publisher.offered_cycle) as offers:
            printed = terminal.types("explain", "shop/*")
        assert printed.out.count("Deployment shop/") == 2
        assert offers.call_count == 1

    def test_an_hpa_goes_by_measured_demand_alone_unless_its_minimum_follows_the_forecast(
        self, terminal: Terminal
    ) -> None:
        """In mode floor the forecast reaches the HPA, whatever metrics it reads."""
        policy = "policy: {mode: publish, horizontal: {gate: false}}\n"
        floor = "overrides: [{match: {name: web}, policy: {mode: floor}}]\nfloor: {enabled: true}\n"
        terminal.config.write_text(terminal.config.read_text() + policy + floor)
        wave = 3.0 + np.tile(np.repeat([-1.0, 1.0], 10), 80)
        values = {CPU: wave * np.ones((2, 1)), PODS: np.full((2, 1600), 4.0)}
        unknown = dict.fromkeys((MEMORY, REQUESTS), np.full((2, 1600), np.nan))
        recording = Recording(NOON - 1569 * MINUTE, (WEB, CART), values | unknown)
        with EmbeddedPrometheus(recording, Settings().queries, recording.fleet(NOON)) as served:
            printed = replace(terminal, url=served.url).types("explain", "shop/*")
        assert printed.out.count("(forecast)") == 2, printed.out
        assert [line for line in printed.out.splitlines() if "This is a recommendation: HPA cart-hpa" in line]
        assert "This is a recommendation: HPA web" not in printed.out

    def test_names_the_known_workloads_when_it_does_not_know_the_given_one(self, terminal: Terminal) -> None:
        printed = terminal.types("explain", "shop/cat")
        assert (printed.code, printed.out) == (1, "")
        assert "'shop/cat'" in printed.err
        assert "shop/cart" in printed.err


class TestWhyNot:
    def test_reads_each_signal_once_for_all_workloads(self, terminal: Terminal) -> None:
        with patch.object(decisions, "largest_between", wraps=decisions.largest_between) as read:
            printed = terminal.types("why-not", "shop/*")
        assert printed.code == 0, printed.err
        came = re.findall(r"what came until 12:30 UTC: cpu (\w+), which fills (\d+) pods", printed.out)
        assert sorted(came) == [("2000m", "4"), ("5000m", "10")]
        signals = [call.args[-1] for call in read.call_args_list]
        assert len(signals) == len(set(signals))


class TestDoctor:
    def test_says_what_is_well_and_what_to_do_about_the_rest(self, terminal: Terminal) -> None:
        printed = terminal.types_exactly(
            "doctor", "--prometheus", "http://127.0.0.1:1", "--config", str(terminal.config)
        )
        lines = printed.out.splitlines()
        remedies = [below.strip()[0] for line, below in pairwise(lines) if line.startswith("BAD")]
        assert (printed.code, printed.err) == (1, "")
        assert set(remedies) == {"→"}
        assert f"ok state directory: {terminal.config.parent} is writable" in " ".join(printed.out.split())
        assert lines[-1].startswith("Not ready: 1 of ")
        assert lines[-1].endswith(" checks failed: address")


class TestFaults:
    @pytest.mark.parametrize(
        "command",
        [("once",), ("explain", "shop/web"), ("recommend",), ("nodes",), ("why-not", "shop/web")],
        ids=lambda command: command[0],
    )
    def test_a_prometheus_that_is_down_is_a_message_and_no_traceback(
        self, terminal: Terminal, command: tuple[str, ...]
    ) -> None:
        nobody = Terminal("http://127.0.0.1:1", terminal.config, terminal.capsys, terminal.monkeypatch)
        printed = nobody.types(*command)
        assert (printed.code, printed.out) == (1, "")
        assert printed.err.count("127.0.0.1:1") == 1
        assert printed.err.endswith("`forecaster doctor` tries each thing that is needed and says what to do.\n")
        assert "Traceback" not in printed.err

    def test_two_policies_that_nothing_could_be_read_for_do_not_decide_alike(self, terminal: Terminal) -> None:
        files = (str(terminal.config), str(terminal.config))
        printed = terminal.types_exactly("diff", *files, "--prometheus", "http://127.0.0.1:1", "-o", "json")
        assert (printed.code, printed.out) == (1, "")
        assert "Connection refused" in printed.err

    @pytest.mark.parametrize("at", ["noon", "2026-03-01T12:00:00"])
    def test_an_instant_that_is_none_is_a_message_with_an_example(self, terminal: Terminal, at: str) -> None:
        printed = terminal.types("once", at=at)
        assert (printed.code, printed.out) == (2, "")
        assert f"--at: '{at}': " in printed.err

    def test_all_faults_of_a_file_come_at_once(self, terminal: Terminal) -> None:
        terminal.config.write_text("{cycle: {interval: 7m}, policy: {horizontal: {quantile: 2}}}")
        printed = terminal.types("once")
        assert (printed.code, printed.out) == (1, "")
        assert [path in printed.err for path in ("cycle.interval", "policy.horizontal.quantile")] == [True, True]

    def test_a_wrong_command_line_is_2_and_not_the_1_of_a_difference_or_a_bad_check(self, terminal: Terminal) -> None:
        both = (str(terminal.config),) * 2
        for words in (
            ("diff", *both, "--at", "25:99"),
            ("diff", *both[1:], "none"),
            ("explain", "web", "--set", "lead"),
            ("doctor", "--config", "none.yaml"),
            ("hpa", "explain", "none.yaml"),
        ):
            where = () if "hpa" in words else ("--prometheus", terminal.url)
            assert terminal.types_exactly(*words, *where).code == 2

    @pytest.mark.parametrize("config", [(), ("--config",)], ids=["alone", "beside a file without a fault"])
    def test_an_address_that_is_none_is_a_fault_of_the_command_line(
        self, terminal: Terminal, config: tuple[str, ...]
    ) -> None:
        file = [str(terminal.config)] if config else []
        printed = terminal.types_exactly("once", *config, *file, "--prometheus", "prometheus:9090")
        assert printed.code == 2
        assert "command line:" in printed.err
        assert "prometheus.url" in printed.err

    def test_an_unknown_format_is_refused_with_the_known_ones(self, terminal: Terminal) -> None:
        printed = terminal.types("once", "-o", "xml")
        assert printed.code == 2
        assert "csv" in printed.err


class TestOptions:
    def test_come_over_the_file(self, terminal: Terminal) -> None:
        settings = settings_of(terminal.config, "http://given:9090", "shop,team-*")
        assert (settings.prometheus.url, settings.prometheus.retries) == ("http://given:9090", 0)
        assert settings.queries.namespaces == "shop|team-.*"

    @pytest.mark.parametrize(
        ("pattern", "meant"), [("web", {WEB}), ("*/web", {WEB}), ("bank/*", set()), ("*", {WEB, CART})]
    )
    def test_a_pattern_without_a_slash_means_any_namespace(self, pattern: str, meant: set[Workload]) -> None:
        assert matching((WEB.id, CART.id), pattern) == {workload.id for workload in meant}


class TestSettings:
    def test_a_key_is_explained_with_its_value_in_the_file(self, terminal: Terminal) -> None:
        text = terminal.types_exactly("settings", "forecast.model", "--config", str(terminal.config)).out
        assert text.startswith('forecast.model: "adaptive"\n')
        assert text.splitlines()[-1].split() == ["forecast.model", "last-value", str(terminal.config)]

    def test_prints_all_of_them(self, terminal: Terminal) -> None:
        printed = terminal.types_exactly("settings")
        assert yaml.safe_load(printed.out)["policy"]["horizontal"]["quantile"] == 0.9

    def test_checks_a_file(self, terminal: Terminal) -> None:
        printed = terminal.types_exactly("settings", "--config", str(terminal.config))
        assert (printed.code, printed.out.strip()) == (0, f"{terminal.config}: no fault found")

    def test_refuses_a_file_with_faults(self, terminal: Terminal) -> None:
        terminal.config.write_text("cycle: {intervall: 1m}")
        printed = terminal.types_exactly("settings", "--config", str(terminal.config))
        assert printed.code == 1
        assert "cycle.intervall" in printed.err


def test_a_model_is_described_without_the_code_of_its_docstring(terminal: Terminal) -> None:
    text = terminal.types_exactly("models", "seasonal-naive-week").out
    assert "the yardstick" in text
    assert ">>>" not in text


def test_models_are_listed_with_a_line_each(terminal: Terminal) -> None:
    lines = terminal.types_exactly("models").out.splitlines()
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)
    assert "ridge" in {line.split()[0] for line in lines}


def test_a_model_of_ones_own_without_a_docstring_is_listed(terminal: Terminal) -> None:
    terminal.monkeypatch.syspath_prepend(terminal.config.parent)
    (terminal.config.parent / "silent_models.py").write_text(SILENT)
    printed = terminal.types_exactly("models", "silent_models:Silent", "-o", "json")
    assert json.loads(printed.out) == {"models": [{"name": "silent_models:Silent", "summary": ""}]}


def test_init_names_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("forecaster.cli.init.api_client", lambda _kubeconfig, _context: None)
    monkeypatch.setattr("forecaster.resources.neighbours.neighbours_of", lambda _client: Neighbours())
    result = CliRunner().invoke(app, ["init", "--folder", str(tmp_path / "file" / "autoscalers")])
    assert "autoscalers: Not a directory; name a folder that may be written" in str(result.exception)


def test_processes_of_shards_ask_for_the_address_of_the_scheduler() -> None:
    for role in ("worker", "scheduler"):
        result = CliRunner().invoke(app, ["shards", role])
        assert result.exit_code == 2
        assert "sharding.scheduler is empty" in result.output


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        (
            ("explain", "shop/web", "-o", "xml"),
            "Invalid value for '--output' / '-o': 'xml' is not one of 'text', 'json'",
        ),
        (("hpa", "simulate", "-o", "xml"), "Invalid value for '--output' / '-o': 'xml' is not one of 'table'"),
        (("top", "--rows", "0"), "Invalid value for '--rows': must be at least 1"),
        (("top", "--rows", "few"), "Invalid value for '--rows': must be a whole number"),
        (("once", "--demo", "--prometheus", "http://p:9090"), "leave --prometheus out, or --demo"),
        (("diff", ".", ".", "--prometheus", "http://p:9090", "--demo"), "leave --prometheus out, or --demo"),
    ],
)
def test_a_value_that_an_option_does_not_take_is_refused_in_plain_words(given: Sequence[str], refusal: str) -> None:
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 2
    assert refusal in " ".join(result.output.split())
