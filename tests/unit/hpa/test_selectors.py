from __future__ import annotations

import pytest

from forecaster.hpa.selectors import SelectorError, parse_selector, selector_text


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("  ", {"app": "a"}, True),
        ("app=a", {"app": "a"}, True),
        ("app==a", {"app": "a"}, True),
        ("app = a", {"app": "a"}, True),
        ("app=a", {"app": "b"}, False),
        ("app=a", {}, False),
        ("app=", {"app": ""}, True),
        ("app!=a", {"app": "a"}, False),
        ("app!=a", {}, True),
        ("app in (a, b)", {"app": "b"}, True),
        ("app in (a,b)", {"app": "c"}, False),
        ("app notin (a,b)", {"app": "c"}, True),
        ("app notin (a,b)", {}, True),
        ("app notin (a)", {"app": "a"}, False),
        ("app", {"app": "anything"}, True),
        ("app", {}, False),
        ("!app", {}, True),
        ("!app", {"app": "a"}, False),
        ("app=a,tier in (x,y),!old", {"app": "a", "tier": "y"}, True),
        ("app=a,tier in (x,y),!old", {"app": "a", "tier": "y", "old": "1"}, False),
        ("example.com/app=a", {"example.com/app": "a"}, True),
    ],
)
def test_a_selector_reads_as_the_api_writes_it(text: str, labels: dict[str, str], matches: bool) -> None:  # noqa: FBT001
    assert parse_selector(text).matches(labels) is matches


@pytest.mark.parametrize(
    "text", ["app in (", "cheddar cheese", "=a", "app=a b", "-x=a", f"{'k' * 64}=a", f"k={'v' * 64}"]
)
def test_what_is_no_selector_is_refused_with_its_part(text: str) -> None:
    with pytest.raises(SelectorError, match="unable to parse requirement"):
        parse_selector(text)


def test_names_of_63_signs_fit() -> None:
    assert parse_selector(f"{'k' * 63}={'v' * 63}").matches({"k" * 63: "v" * 63})


def test_the_wire_form_becomes_text() -> None:
    wire = {
        "matchLabels": {"b": "2", "a": "1"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["x", "y"]},
            {"key": "d", "operator": "NotIn", "values": ["z"]},
            {"key": "e", "operator": "Exists"},
            {"key": "f", "operator": "DoesNotExist"},
        ],
    }
    text = selector_text(wire)
    assert text == "a=1,b=2,c in (x,y),d notin (z),e,!f"
    assert parse_selector(text).matches({"a": "1", "b": "2", "c": "y", "e": ""})
    assert not selector_text({})


def test_a_megabyte_of_commas_is_refused_at_once() -> None:
    """A look ahead from each comma took five seconds for 60,000 of them, and 24 minutes for a million."""
    with pytest.raises(SelectorError, match="unable to parse requirement"):
        parse_selector("," * 1_000_000)
    values = ",".join(f"v{i}" for i in range(100_000))
    assert parse_selector(f"app in ({values}),tier=x").matches({"app": "v99999", "tier": "x"})
