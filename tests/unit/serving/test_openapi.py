"""Answers keep the promises of the OpenAPI document, whatever is asked."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from forecaster.publish.reader import TableReader
from forecaster.serving.app import create_app
from forecaster.serving.openapi import document
from tests.support.asgi import Client
from tests.support.published import publisher
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.serving.app import FrontApplication

SCHEMA = schemathesis.openapi.from_dict(document("1"))


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FrontApplication:
    path: Path = tmp_path_factory.mktemp("openapi") / "table"
    rows = [
        recommendation(),
        recommendation(workload_id("web", kind="StatefulSet")),
        recommendation(workload_id("api")),
    ]
    publisher(path).publish(NOON, rows)
    reader = TableReader(path, lambda: NOON + timedelta(seconds=10))
    reader.refresh()
    return create_app(reader)


@SCHEMA.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_promised(app: FrontApplication, case: schemathesis.Case) -> None:
    # A token that fits its schema need not be ours, and a name need not be that of one thing alone.
    case.call_and_validate(app=app, excluded_checks=[positive_data_acceptance])


def test_the_document_is_served(app: FrontApplication) -> None:
    served = Client(app).get("/api/v1/openapi.json").json()
    assert served["openapi"] == "3.1.0"
    assert len(served["paths"]) == 7
    assert json.dumps(served).count("RecommendationView") > 2
