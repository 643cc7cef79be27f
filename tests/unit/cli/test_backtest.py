from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from forecaster.cli import app
from forecaster.cli.catalogue import schema_of
from forecaster.replay import sizers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.domain.vertical_policy import VerticalPolicy
    from forecaster.replay.size_replay import Load


@pytest.fixture(scope="module", autouse=True)
def replayed_once() -> Iterator[None]:
    """Replay the sizes once for all tests, since a replay takes seven of the ten seconds of a command."""
    compute, known = sizers.backtested_sizes, dict[tuple[str, ...], list[sizers.SizeOutcome]]()

    def backtested_sizes(load: Load, policy: VerticalPolicy) -> list[sizers.SizeOutcome]:
        key = (load.resource, *load.names)
        if key not in known:
            known[key] = compute(load, policy)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizers, "backtested_sizes", backtested_sizes)
        yield


def backtest(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["backtest", "vertical", "--demo", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_the_policy_stands_beside_vpa_and_krr() -> None:
    output = backtest("data/*").output
    assert all(word in output for word in ("forecaster", "VPA", "KRR", "OVER LIMIT", "memory: 1 workload,"))


def test_json_has_a_row_for_each_recommender() -> None:
    document = json.loads(backtest("data/*", "-o", "json").output)
    assert list(Draft202012Validator(schema_of("backtest vertical")).iter_errors(document)) == []
    rows = document["memory"]
    assert {row["recommender"] for row in rows} == {"forecaster", "VPA", "KRR"}
    assert all(row["slack"] > 0 for row in rows)


def test_a_name_that_matches_nothing_is_named() -> None:
    assert "did you mean data/reports?" in str(backtest("data/report", code=1).exception)
