"""One file, every fault of it at once."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from forecaster.config.settings import Settings, load, parse
from forecaster.domain.policy import Policy
from forecaster.domain.workload import WorkloadId
from forecaster.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

CART = WorkloadId("shop", "Deployment", "cart")


def faults(text: str) -> dict[str, tuple[object, str]]:
    """Value and sentence of each fault, by path."""
    with pytest.raises(ConfigError) as refused:
        parse(yaml.safe_load(text), "settings.yaml")
    return {fault.path: (fault.value, fault.allowed) for fault in refused.value.faults}


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "settings.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


class TestFaults:
    def test_all_of_all_sections_come_at_once_with_path_and_value(self) -> None:
        refused = faults("""
            prometheus: {url: "not an address", retries: 99}
            cycle: {interval: 7m}
            policy: {horizontal: {quantile: 2}, vertical: {oom_price: -1}}
            overrides:
              - match: {name: cart}
                policy: {horizontal: {lead_time: soon}}
        """)
        assert {path: value for path, (value, _) in refused.items()} == {
            "prometheus.url": "not an address",
            "prometheus.retries": 99,
            "cycle.interval": "7m",
            "policy.horizontal.quantile": 2,
            "policy.vertical.oom_price": -1,
            "overrides[0].policy.horizontal.lead_time": "soon",
        }

    @pytest.mark.parametrize(
        ("text", "path", "allowed"),
        [
            ("policy: {horizontal: {quantile: 2}}", "policy.horizontal.quantile", "0.99"),
            ("policy: {vertical: {mode: initial}}", "policy", "resize.initial: true"),
            ("policy: {vertical: {evict: true}}", "policy.vertical", "needs mode in-place"),
            ("resize: {initial: true}", "resize", "needs enabled: true"),
            ("resize: {enabled: true, initial: true}", "resize", "serving.secure.enabled"),
            ("cycle: {interval: 30s}", "cycle.interval", "1 minute"),
            ("cycle: {interval: 7m}", "cycle.interval", "divide an hour"),
            ("forecast: {model: oracle}", "forecast.model", "ridge"),
            ("policy: {min_history: 5h}", "policy.min_history", "3 hours"),
            ("policy: {horizontal: {lead_time: 13h}}", "policy.horizontal.lead_time", "at most 12h"),
            ("policy: {max_sample_age: yesterday}", "policy.max_sample_age", "1h30m"),
            ("policy: {max_sample_age: 99999999999d}", "policy.max_sample_age", "must be a duration"),
            ("state: {database: a, database_file: b}", "state.database_file", "either"),
            ("policy: {mode: floor}", "policy", "floor.enabled: true"),
            ("overrides: [{policy: {mode: floor}}]", "overrides", "floor.enabled: true"),
            ("{cycle: {interval: 5m}, floor: {expires_after: 20m}}", "floor", "five times cycle.interval"),
            ("acting: {lease: forecaster}", "acting.lease", "pattern"),
            ("policy: {mode: scale, horizontal: {min_replicas: 1, max_replicas: 9}}", "policy", "scale.enabled: true"),
            ("policy: {vertical: {mode: in-place}}", "policy", "resize.enabled: true"),
            ("{kubernetes: {live: off}, resize: {enabled: true}}", "resize", "kubernetes.live is off"),
            (
                "policy: {vertical: {mode: in-place, beside_hpa: keep-scale-point}}",
                "policy.vertical",
                "beside_hpa: keep",
            ),
            ("{scale: {enabled: true}, policy: {mode: scale}}", "policy", "needs horizontal.min_replicas and"),
        ],
    )
    def test_each_names_what_is_allowed(self, text: str, path: str, allowed: str) -> None:
        assert allowed in faults(text)[path][1]

    def test_a_duration_is_repeated_as_it_was_written(self) -> None:
        assert faults("cycle: {interval: 30s}")["cycle.interval"][0] == "30s"

    def test_one_between_settings_names_no_value(self) -> None:
        with pytest.raises(ConfigError, match=r"\n  policy: mode floor needs floor.enabled: true, and"):
            parse({"policy": {"mode": "floor"}}, "settings.yaml")

    @pytest.mark.parametrize(
        ("text", "path"),
        [
            ("prometeus: {}", "prometeus"),
            ("prometheus: {adress: x}", "prometheus.adress"),
            ("policy: {horizontal: {leadtime: 3m}}", "policy.horizontal.leadtime"),
            ("overrides: [{policy: {quantile: 0.9}}]", "overrides[0].policy.quantile"),
            ("overrides: [{match: {owner: x}}]", "overrides[0].match.owner"),
        ],
    )
    def test_unknown_keys_are_refused(self, text: str, path: str) -> None:
        assert list(faults(text)) == [path]
        assert "no such setting; " in faults(text)[path][1]

    @pytest.mark.parametrize(
        ("text", "meant"),
        [
            ("prometeus: {}", "prometheus"),
            ("policy: {horizontal: {leadtime: 3m}}", "policy.horizontal.lead_time"),
            ("overrides: [{policy: {quantile: 0.9}}]", "policy.horizontal.quantile"),
            ("overrides: [{match: {owner: x}}]", ""),
        ],
    )
    def test_unknown_keys_are_answered_with_those_that_are_near(self, text: str, meant: str) -> None:
        ((_, sentence),) = faults(text).values()
        assert (f"did you mean {meant}?" if meant else "see docs/configure.md") in sentence

    def test_a_section_that_is_stated_twice_is_refused_and_not_half_of_it_dropped(self, tmp_path: Path) -> None:
        file = tmp_path / "settings.yaml"
        file.write_text(
            "policy: {mode: publish}\nserving: &a {port: 1}\nkeda: {<<: *a, port: 2}\npolicy: {paused: true}\n"
        )
        with pytest.raises(ConfigError, match="line 4, column 1: policy is stated twice"):
            load(file)
        file.write_text(file.read_text().rpartition("policy")[0])
        assert load(file).keda.port == 2

    def test_merges_of_merges_are_refused_before_they_fill_the_memory(self, tmp_path: Path) -> None:
        nine = {name: ", ".join([f"*{before}"] * 9) for before, name in pairwise("abcdefghi")}
        merges = [f"{name}: &{name} {{<<: [{names}]}}" for name, names in nine.items()]
        (tmp_path / "settings.yaml").write_text("\n".join(["a: &a {mode: publish}", *merges]))
        with pytest.raises(ConfigError, match=r"column \d+: its merges repeat one another"):
            load(tmp_path / "settings.yaml")

    def test_a_folder_of_manifests_is_refused_with_what_was_expected(self, tmp_path: Path) -> None:
        (tmp_path / "all.yaml").write_text("kind: Role\n---\nkind: RoleBinding\n")
        with pytest.raises(ConfigError, match="line 2, column 1: expected a single document"):
            load(tmp_path)

    def test_sections_that_are_none_or_lists_are_one_fault_each(self) -> None:
        refused = faults("{prometheus: , policy: [1], overrides: {a: b}}")
        assert set(refused) == {"prometheus", "policy", "overrides"}

    @pytest.mark.parametrize("odd", ["5", "", "{a: 1}", "[5]"])
    def test_odd_amounts_of_an_override_are_a_fault(self, odd: str) -> None:
        refused = faults(f"overrides: [{{match: {{name: cart}}, policy: {{horizontal: {{pod_amounts: {odd}}}}}}}]")
        assert [key.startswith("overrides[0].policy.horizontal.pod_amounts") for key in refused] == [True]

    def test_a_forecast_cannot_ask_for_more_minutes_than_are_kept(self) -> None:
        assert "minutes_kept" in faults("{history: {minutes_kept: 1h}, policy: {min_history: 2h}}")["policy"][1]

    def test_overrides_of_many_namespaces_that_say_the_same_are_not_checked_pair_by_pair(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fragments = {"namespace": "{max_replicas: 50}", "name": "{min_replicas: 2}"}
        lines = [
            f"- {{match: {{{key}: x-{number}}}, policy: {{horizontal: {fragment}}}}}"
            for key, fragment in fragments.items()
            for number in range(40)
        ]
        checked: list[object] = []
        model_validate = Policy.model_validate
        monkeypatch.setattr(Policy, "model_validate", lambda value: checked.append(value) or model_validate(value))
        settings = parse(yaml.safe_load("overrides:\n" + "\n".join(lines)), "settings.yaml")
        assert len(settings.overrides) == 80
        assert len(checked) < 200

    def test_an_override_that_breaks_a_rule_together_with_the_defaults_is_found(self) -> None:
        refused = faults("""
            policy: {horizontal: {min_replicas: 5}}
            overrides: [{match: {name: cart}, policy: {horizontal: {max_replicas: 3}}}]
        """)
        assert "min_replicas 5" in refused["overrides[0].policy.horizontal.max_replicas"][1]

    @pytest.mark.parametrize("other", ["{name: cart}", "{name: 'c*'}", "{kind: Deployment}", "{}"])
    def test_overrides_that_break_a_rule_together_are_found_where_a_workload_may_meet_both(self, other: str) -> None:
        refused = faults(f"""
            overrides:
              - {{match: {{namespace: shop, name: '*rt'}}, policy: {{horizontal: {{min_replicas: 5}}}}}}
              - {{match: {other}, policy: {{horizontal: {{max_replicas: 3}}}}}}
        """)
        assert "overrides[0]" in refused["overrides[1].policy.horizontal.max_replicas"][1]

    @pytest.mark.parametrize("other", ["{name: web}", "{namespace: bank}"])
    def test_overrides_that_no_workload_meets_together_are_no_fault(self, other: str) -> None:
        settings = parse(
            yaml.safe_load(f"""
            overrides:
              - {{match: {{namespace: shop, name: '*rt'}}, policy: {{horizontal: {{min_replicas: 5}}}}}}
              - {{match: {other}, policy: {{horizontal: {{max_replicas: 3}}}}}}
        """),
            "settings.yaml",
        )
        assert settings.policies.of(CART).horizontal.min_replicas == 5

    @pytest.mark.parametrize(
        "text",
        [
            "prometheus: {password: hunter2}",
            "prometheus: {headers: {X-Scope-OrgID: [hunter2]}}",
            "prometheus: {headers: hunter2}",
            "prometheus: {url: 'http://admin:hunter2@prometheus:9090'}",
            "state: {token: hunter2}",
            "prometheus: {api_key: hunter2}",
            "remote_write: {authorization: Bearer hunter2}",
            "state: {database_passwd: hunter2}",
            "remote_write: {url: 'mimir://admin:hunter2@mimir/push'}",
            "remote_write: {urll: 'https://mimir/push?key=hunter2'}",
            "serving: {secure: {upstream: {server: 'https://admin:hunter2@adapter'}}}",
        ],
    )
    def test_secrets_are_not_repeated(self, text: str) -> None:
        with pytest.raises(ConfigError) as refused:
            parse(yaml.safe_load(text), "settings.yaml")
        assert "hunter2" not in str(refused.value)

    def test_long_values_are_cut(self) -> None:
        value, _ = faults(f"cycle: {{interval: {'x' * 5000}}}")["cycle.interval"]
        assert len(str(value)) < 100

    def test_the_message_has_one_line_for_each(self) -> None:
        with pytest.raises(ConfigError) as refused:
            parse({"a": 1, "b": 2}, "settings.yaml")
        assert str(refused.value).splitlines() == [
            "settings.yaml:",
            "  a: 1: no such setting; see docs/configure.md for those there are",
            "  b: 2: no such setting; see docs/configure.md for those there are",
        ]


class TestFile:
    def test_an_empty_one_gives_the_defaults(self, tmp_path: Path) -> None:
        assert load(written(tmp_path, "# nothing set\n")) == Settings()

    def test_no_file_gives_the_defaults(self) -> None:
        assert load() == Settings()

    def test_durations_are_read_as_text(self, tmp_path: Path) -> None:
        settings = load(written(tmp_path, "{cycle: {delay: 10s}, policy: {horizontal: {lead_time: 1m30s}}}"))
        assert settings.cycle.delay == timedelta(seconds=10)
        assert settings.policy.horizontal.lead_time == timedelta(seconds=90)

    def test_what_the_command_line_says_comes_over_it(self, tmp_path: Path) -> None:
        path = written(tmp_path, "prometheus: {url: 'http://file:9090', retries: 5}")
        settings = load(path, {"prometheus": {"url": "http://given:9090"}})
        assert (settings.prometheus.url, settings.prometheus.retries) == ("http://given:9090", 5)

    def test_overrides_reach_the_workloads_they_mean(self, tmp_path: Path) -> None:
        settings = load(
            written(
                tmp_path,
                """
                policy: {horizontal: {lead_time: 5m}}
                overrides:
                  - match: {namespace: shop}
                    policy: {horizontal: {quantile: 0.9}}
                  - match: {name: c*}
                    policy: {horizontal: {quantile: 0.95}}
                """,
            )
        )
        policy = settings.policies.of(CART).horizontal
        assert (policy.lead_time, policy.quantile) == (timedelta(minutes=5), 0.95)

    def test_the_documented_example_parses_and_says_what_its_comments_promise(self) -> None:
        settings = parse(
            yaml.safe_load("""
            queries:
              namespaces: "shop|team-.*"
            policy:
              horizontal: {quantile: 0.9}
            overrides:
              - match: {namespace: shop, name: "checkout*"}
                policy: {horizontal: {quantile: 0.95, lead_time: 5m}}
              - match: {kind: StatefulSet}
                policy: {vertical: {memory_limit: keep-ratio}}
            """),
            "docs/configure.md",
        )
        assert settings.policies.of(CART) == Settings().policy
        assert settings.policies.of(CART._replace(name="checkout-api")).horizontal.quantile == 0.95
        assert settings.policies.of(CART._replace(kind="StatefulSet")).vertical.memory_limit == "keep-ratio"


class TestUnreadable:
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("prometheus: {url: [", id="unfinished"),
            pytest.param("a: b: c", id="two colons"),
            pytest.param("since: 2026-13-45", id="a day that does not exist"),
            pytest.param("x: !!python/object/apply:os.system [true]", id="an object of Python"),
            pytest.param("[" * 3000, id="deeper than anybody nests"),
            pytest.param(b"\xff\xfe\x00", id="not UTF-8"),
            pytest.param("- a list", id="not a mapping"),
            pytest.param("just words", id="a scalar"),
        ],
    )
    def test_is_one_fault_of_the_file(self, tmp_path: Path, text: str | bytes) -> None:
        with pytest.raises(ConfigError) as refused:
            load(written(tmp_path, text))
        assert [fault.path for fault in refused.value.faults] == ["(file)"]
        assert str(tmp_path / "settings.yaml") in str(refused.value)

    def test_yaml_says_where(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="line 2, column 5"):
            load(written(tmp_path, "a: 1\nb: c: d\n"))

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
            load(tmp_path / "nowhere.yaml")

    def test_a_folder_without_settings_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"there is no \*\.yaml file in this folder"):
            load(tmp_path)

    def test_the_files_of_a_folder_are_put_over_each_other_by_name(self, tmp_path: Path) -> None:
        (tmp_path / "10-base.yaml").write_text("serving: {port: 1, host: here}\n")
        (tmp_path / "20-more.yaml").write_text("serving: {port: 2}\ncycle: {interval: 5m}\n")
        (tmp_path / "README.md").write_text("no settings")
        settings = load(tmp_path)
        assert (settings.serving.host, settings.serving.port) == ("here", 2)
        assert settings.cycle.interval == timedelta(minutes=5)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("5m")
NAMES = st.sampled_from(
    ("prometheus", "queries", "policy", "overrides", "match", "horizontal", "quantile", "headers", "name", "url")
)
VALUES: st.SearchStrategy[Any] = st.deferred(
    lambda: SCALARS | st.lists(VALUES, max_size=3) | st.dictionaries(NAMES | SCALARS, VALUES, max_size=4)
)


@given(st.dictionaries(NAMES, VALUES))
def test_whatever_is_written_gives_settings_or_faults(value: dict[str, Any]) -> None:
    with suppress(ConfigError):
        assert isinstance(parse(value, "settings.yaml"), Settings)


class TestKeda:
    def test_it_listens_with_certificates_or_says_that_it_does_without(self) -> None:
        assert parse({"keda": {"enabled": True, "certificate_file": "c", "key_file": "k"}}, "x").keda.enabled
        assert parse({"keda": {"enabled": True, "plaintext": True}}, "x").keda.enabled

    @pytest.mark.parametrize(
        ("text", "allowed"),
        [
            ("keda: {enabled: true}", "either certificate_file and key_file, or plaintext"),
            ("keda: {enabled: true, plaintext: true, certificate_file: c, key_file: k}", "either"),
            ("keda: {certificate_file: c}", "belong together"),
            ("keda: {client_names: [keda-operator]}", "without TLS no client has a name"),
            ("keda: {certificate_file: c, key_file: k, client_names: [a]}", "which certificates are believed"),
        ],
    )
    def test_who_may_ask_is_said_without_contradiction(self, text: str, allowed: str) -> None:
        assert allowed in faults(text)["keda"][1]


class TestEnvironment:
    """Variables stand over the file and below the command line."""

    def test_names_a_setting_by_its_path(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        file = tmp_path / "settings.yaml"
        file.write_text("prometheus: {url: http://file:9090, retries: 7}")
        monkeypatch.setenv("FORECASTER__PROMETHEUS__URL", "http://environment:9090")
        settings = load(file).prometheus
        assert (settings.url, settings.retries) == ("http://environment:9090", 7)
        assert load(file, {"prometheus": {"url": "http://option:9090"}}).prometheus.url == "http://option:9090"

    def test_that_is_wrong_is_a_fault_with_its_path(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FORECASTER__POLICY__HORIZONTAL__QUANTILE", "2")
        with pytest.raises(ConfigError, match=r"environment and command line:\n.*policy.horizontal.quantile"):
            load()

    @pytest.mark.parametrize("name", ["FORECASTER__PROMETHEOS__URL", "FORECASTER__"])
    def test_that_names_no_section_is_refused(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        monkeypatch.setenv(name, "secret")
        with pytest.raises(ConfigError, match=name) as refused:
            load()
        assert "secret" not in str(refused.value)

    def test_all_that_cannot_be_read_are_named_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FORECASTER__OVERRIDES", "[nope")
        monkeypatch.setenv("FORECASTER__KEDA__CLIENT_NAMES", "a,b")
        monkeypatch.setenv("FORECASTER__KEDA__PORT", "9090")
        monkeypatch.setenv("FORECASTER__PROMTHEUS__URL", "http://prometheus:9090")
        with pytest.raises(ConfigError) as refused:
            load()
        keda, overrides, prometheus = refused.value.faults
        assert (keda.path, overrides.path) == ("FORECASTER__KEDA__CLIENT_NAMES", "FORECASTER__OVERRIDES")
        assert "JSON" in keda.allowed
        assert "a section follows" in prometheus.allowed

    def test_of_other_tools_is_left_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FORECASTER_CACHE", "/somewhere")
        assert load() == Settings()
