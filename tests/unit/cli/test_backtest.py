from __future__ import annotations

import json

from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from forecaster.cli import app
from forecaster.cli.catalogue import schema_of


def backtest(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["backtest", "vertical", "--demo", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_the_policy_stands_beside_vpa_and_krr() -> None:
    said = backtest("data/*").output
    assert all(word in said for word in ("forecaster", "VPA", "KRR", "OVER LIMIT", "memory: 1 workload,"))


def test_json_has_a_row_for_each_recommender() -> None:
    document = json.loads(backtest("data/reports", "-o", "json").output)
    assert list(Draft202012Validator(schema_of("backtest vertical")).iter_errors(document)) == []
    rows = document["memory"]
    assert {row["recommender"] for row in rows} == {"forecaster", "VPA", "KRR"}
    assert all(row["slack"] > 0 for row in rows)


def test_a_name_that_matches_nothing_is_said() -> None:
    assert "did you mean data/reports?" in str(backtest("data/report", code=1).exception)
