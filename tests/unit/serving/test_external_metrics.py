from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from forecaster.domain.decision import Reason, Scale
from forecaster.domain.workload import Target, TargetType
from forecaster.publish.values import Moment
from forecaster.serving.external_metrics import ApiRequest, MetricsApi
from tests.support.builders import hpa, outlooks, policy, workload
from tests.support.horizontal import decided
from tests.support.published import table_of
from tests.support.recommendations import NOON, recommendation, signal_view, workload_id

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.serving.reply import HttpReply

EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
OWN = "/apis/metrics.forecaster.dev/v1beta1"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
SHOP = f"{EXTERNAL}/namespaces/shop"
LATER = Moment(NOON + timedelta(seconds=20), NOON, fresh=True)


@pytest.fixture
def api(tmp_path: Path) -> MetricsApi:
    table = table_of(
        tmp_path / "table",
        recommendation(workload_id("web")),
        recommendation(workload_id("web", kind="StatefulSet")),
        replace(recommendation(workload_id("api")), signals=(signal_view("cpu"),)),
        recommendation(workload_id("lost"), replicas=None, reason=Reason.NO_DATA),
        replace(recommendation(workload_id("blind"), replicas=None, reason=Reason.NO_DATA), signals=()),
    )
    return MetricsApi(lambda: (table, LATER))


def ask(api: MetricsApi, path: str, selector: str | None = None, **request: Any) -> HttpReply:
    query = b"" if selector is None else ("labelSelector=" + quoted(selector)).encode()
    return api.answer(ApiRequest(**({"method": "GET", "path": path, "query": query} | request)))


def quoted(text: str) -> str:
    return text.replace("=", "%3D").replace(",", "%2C").replace(" ", "+").replace("!", "%21")


def body(reply: HttpReply) -> Any:
    return msgspec.json.decode(reply.body)


@pytest.mark.parametrize("metric", ["forecaster_demand", "forecaster_replicas", "queue"])
def test_our_own_group_says_the_same(api: MetricsApi, metric: str) -> None:
    own = f"{OWN}/namespaces/shop/{metric}"
    replies = [ask(api, path, "workload=api,signal=cpu") for path in (f"{SHOP}/{metric}", own)]
    first, second = map(body, replies)
    versions = [answer.pop("apiVersion") for answer in (first, second)]
    assert (replies[0].status, first) == (replies[1].status, second)
    if replies[1].status == 200:
        assert versions == ["external.metrics.k8s.io/v1beta1", "metrics.forecaster.dev/v1beta1"]


def test_an_hpa_that_sleeps_by_itself_reads_the_load_that_comes(tmp_path: Path) -> None:
    """The HPA reads the load and not its count of zero: its own metric wakes it."""
    asleep = workload(replicas=0, autoscaler=hpa(Target("http_requests", TargetType.AVERAGE_VALUE, 50.0), lowest=0))
    outlook = outlooks(requests=0.0, requests_ahead=120.0)
    row = decided(outlook, workload=asleep, under=policy(requests_metric="http_requests"))
    table = table_of(tmp_path / "asleep", row)
    api = MetricsApi(lambda: (table, Moment(row.at + timedelta(seconds=20), row.at, fresh=True)))
    values = {
        name: body(ask(api, f"{SHOP}/{name}", "workload=web,kind=Deployment"))["items"][0]["value"]
        for name in ("forecaster_floor", "forecaster_replicas")
    }
    assert values == {"forecaster_floor": "3", "forecaster_replicas": "3"}
    demand = body(ask(api, f"{SHOP}/forecaster_demand", "workload=web,signal=requests"))
    assert demand["items"][0]["value"] == "120"


def test_a_value_is_a_list_of_one_item_in_the_types_of_the_api(api: MetricsApi) -> None:
    reply = ask(api, f"{SHOP}/forecaster_demand", "workload=api,signal=cpu")
    assert (reply.status, reply.content_type) == (200, b"application/json")
    assert body(reply) == {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {
                "metricName": "forecaster_demand",
                "metricLabels": {
                    "namespace": "shop",
                    "kind": "Deployment",
                    "workload": "api",
                    "signal": "cpu",
                    "quantile": "0.9",
                    "source": "forecast",
                },
                "timestamp": "2026-03-01T12:00:00Z",
                "value": "1750m",
            }
        ],
    }


@pytest.mark.parametrize(
    "selector",
    [
        "workload=api",
        "workload==api",
        "workload in (api,other)",
        "workload=api,kind!=StatefulSet",
        "workload=api,kind notin (StatefulSet)",
        "workload=api,signal",
        "workload=api,!team",
        "workload=api,team!=a",
        " workload = api , namespace=shop",
    ],
)
def test_every_operator_of_a_selector_is_understood(api: MetricsApi, selector: str) -> None:
    reply = ask(api, f"{SHOP}/forecaster_demand", f"{selector},signal=cpu")
    assert [item["value"] for item in body(reply)["items"]] == ["1750m"]


@pytest.mark.parametrize("selector", ["workload=api,kind=StatefulSet", "workload=api,team=a", "workload=api,!kind"])
def test_labels_that_do_not_fit_leave_nothing(api: MetricsApi, selector: str) -> None:
    reply = ask(api, f"{SHOP}/forecaster_replicas", selector)
    assert reply.status == 404
    assert body(reply)["reason"] == "NotFound"


def test_two_values_are_refused_because_an_hpa_would_add_them_up(api: MetricsApi) -> None:
    reply = ask(api, f"{SHOP}/forecaster_replicas", "workload=web")
    assert reply.status == 400
    assert "kind=Deployment" in body(reply)["message"]
    assert "add them up" in body(reply)["message"]
    signals = ask(api, f"{SHOP}/forecaster_demand", "workload=web,kind=Deployment")
    assert signals.status == 400


@pytest.mark.parametrize("selector", [None, "", "kind=Deployment", "workload", "workload!=web", "workload notin (web)"])
def test_a_selector_has_to_say_which_workload(api: MetricsApi, selector: str | None) -> None:
    reply = ask(api, f"{SHOP}/forecaster_replicas", selector)
    assert reply.status == 400
    assert "workload=NAME" in body(reply)["message"]


@pytest.mark.parametrize("selector", ["workload=", "=", "workload=web=x", "workload in (web", "workload=a b", "💥"])
def test_a_bad_selector_is_a_bad_request(api: MetricsApi, selector: str) -> None:
    assert ask(api, f"{SHOP}/forecaster_replicas", selector).status in {400, 404}


@pytest.mark.parametrize("selector", ["workload=" + "a" * 5000, "workload in (" + ",".join("ab" * 200) + ")"])
def test_a_selector_bomb_is_refused_by_its_size(api: MetricsApi, selector: str) -> None:
    reply = ask(api, f"{SHOP}/forecaster_replicas", selector)
    assert reply.status == 400
    assert len(reply.body) < 1000


@pytest.mark.parametrize(
    "path",
    [
        f"{EXTERNAL}/forecaster_demand",
        f"{EXTERNAL}/namespaces/shop",
        f"{EXTERNAL}/namespaces/shop/",
        f"{EXTERNAL}/namespaces//forecaster_demand",
        f"{EXTERNAL}/namespaces/shop/forecaster_demand/",
        f"{EXTERNAL}/namespaces/shop/forecaster_demand/x",
        f"{EXTERNAL}/namespaces/shop/../shop/forecaster_demand",
        f"{EXTERNAL}/namespaces/shop/status",
        f"{EXTERNAL}/",
        "/apis/external.metrics.k8s.io/v1",
        "/apis/external.metrics.k8s.io/v1beta2/namespaces/shop/forecaster_demand",
        "/apis/",
        "/openapi/v4",
        "/",
    ],
)
def test_what_is_not_exactly_a_path_of_ours_does_not_exist(api: MetricsApi, path: str) -> None:
    reply = ask(api, path, "workload=api")
    assert reply.status == 404
    assert body(reply) | {"message": ""} == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "",
        "reason": "NotFound",
        "code": 404,
    }


@pytest.mark.parametrize("metric", ["other", "forecaster_demand ", "a" * 9000, "%00", "..."])
def test_an_unknown_metric_is_not_found(api: MetricsApi, metric: str) -> None:
    reply = ask(api, f"{SHOP}/{metric}", "workload=api")
    assert reply.status == 404
    assert len(reply.body) < 600


@pytest.mark.parametrize("namespace", ["other", "..", "SHOP", "%2e%2e"])
def test_a_workload_is_found_in_its_own_namespace_only(api: MetricsApi, namespace: str) -> None:
    path = f"{EXTERNAL}/namespaces/{namespace}/forecaster_replicas"
    assert ask(api, path, "workload=api").status == 404


def test_a_workload_that_is_only_observed_is_not_published(tmp_path: Path) -> None:
    table = table_of(tmp_path / "table", mode="observe")
    reply = ask(MetricsApi(lambda: (table, LATER)), f"{SHOP}/forecaster_replicas", "workload=web")
    assert reply.status == 404
    assert "mode: publish" in body(reply)["message"]


def test_what_is_not_known_and_cannot_be_kept_is_unavailable_and_never_0(api: MetricsApi) -> None:
    reply = ask(api, f"{SHOP}/forecaster_demand", "workload=blind,signal=cpu")
    assert reply.status == 503
    assert body(reply)["message"] == "forecaster_demand of Deployment shop/blind is not known: no-data"
    assert not reply.headers  # a Retry-After would make Go clients sleep


def test_a_count_that_is_not_known_is_kept(api: MetricsApi) -> None:
    (item,) = body(ask(api, f"{SHOP}/forecaster_replicas", "workload=lost"))["items"]
    assert (item["value"], item["metricLabels"]["source"]) == ("3", "neutral")


def test_before_the_first_table_nothing_is_known() -> None:
    reply = ask(MetricsApi(lambda: None), f"{SHOP}/forecaster_demand", "workload=web")
    assert reply.status == 503


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "CONNECT", "TRACE", "OPTIONS", "PROPFIND"])
def test_values_are_only_read(api: MetricsApi, method: str) -> None:
    reply = ask(api, f"{SHOP}/forecaster_demand", "workload=web", method=method)
    assert (reply.status, body(reply)["reason"]) == (405, "MethodNotAllowed")


def test_values_cannot_be_watched(api: MetricsApi) -> None:
    query = b"watch=true&labelSelector=workload%3Dapi"
    assert ask(api, f"{SHOP}/forecaster_replicas", query=query).status == 405


def test_parameters_that_mean_nothing_here_are_ignored(api: MetricsApi) -> None:
    query = b"labelSelector=workload%3Dapi&limit=500&pretty=true&resourceVersion=0&timeoutSeconds=5&fieldSelector=&x"
    assert ask(api, f"{SHOP}/forecaster_replicas", query=query).status == 200


def test_a_flood_of_parameters_is_a_bad_request(api: MetricsApi) -> None:
    assert ask(api, f"{SHOP}/forecaster_replicas", query=b"&".join([b"a=b"] * 100)).status == 400


def test_a_client_that_would_rather_have_protobuf_gets_json(api: MetricsApi) -> None:
    reply = ask(api, f"{SHOP}/forecaster_replicas", "workload=api", accept="application/vnd.kubernetes.protobuf, */*")
    assert (reply.status, reply.content_type) == (200, b"application/json")


def test_kubectl_get_is_answered_with_a_table(api: MetricsApi) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    table = body(ask(api, f"{SHOP}/forecaster_demand", "workload=api,signal=cpu", accept=accept))
    assert table["kind"] == "Table"
    columns = [column["name"] for column in table["columnDefinitions"]]
    assert dict(zip(columns, table["rows"][0]["cells"], strict=True)) == {
        "Metric": "forecaster_demand",
        "Workload": "Deployment/api",
        "Signal": "cpu",
        "Value": "1750m",
        "Source": "forecast",
        "Age": "20s",
    }
    assert table["rows"][0]["object"]["metadata"]["name"] == "forecaster_demand"


def test_the_same_value_as_a_metric_of_its_object(api: MetricsApi) -> None:
    path = f"{CUSTOM}/namespaces/shop/deployments.apps/api/forecaster_demand"
    assert body(ask(api, path)) == {
        "kind": "MetricValueList",
        "apiVersion": "custom.metrics.k8s.io/v1beta2",
        "metadata": {},
        "items": [
            {
                "describedObject": {
                    "kind": "Deployment",
                    "namespace": "shop",
                    "name": "api",
                    "apiVersion": "apps/v1",
                },
                "metric": {"name": "forecaster_demand"},
                "timestamp": "2026-03-01T12:00:00Z",
                "value": "1750m",
            }
        ],
    }


def test_an_object_with_several_signals_is_asked_for_one_of_them(api: MetricsApi) -> None:
    path = f"{CUSTOM}/namespaces/shop/statefulsets.apps/web/forecaster_demand"
    assert ask(api, path).status == 400
    assert ask(api, path, query=b"metricLabelSelector=signal%3Dmemory").status == 200


@pytest.mark.parametrize("target", ["pods/api", "deployments.apps/none", "deployments.apps/*", "nodes/a"])
def test_other_objects_have_no_value(api: MetricsApi, target: str) -> None:
    assert ask(api, f"{CUSTOM}/namespaces/shop/{target}/forecaster_replicas").status in {400, 404}


def test_a_known_value_is_repeated_until_the_next_table(tmp_path: Path) -> None:
    tables = [
        table_of(tmp_path / "one"),
        table_of(tmp_path / "two", replace(recommendation(), replicas=Scale(9, Reason.FORECAST, ""))),
    ]
    served = iter([tables[0], tables[0], tables[1]])
    api = MetricsApi(lambda: (next(served), LATER))
    first, again, later = (ask(api, f"{SHOP}/forecaster_replicas", "workload=web") for _ in range(3))
    assert first is again
    assert body(later)["items"][0]["value"] == "9"


def test_a_value_that_is_no_longer_known_is_not_repeated(tmp_path: Path) -> None:
    table = table_of(tmp_path / "table", publish={"abstain": "last"})
    moments = iter([LATER, LATER._replace(fresh=False)])
    api = MetricsApi(lambda: (table, next(moments)))
    known, stale = (ask(api, f"{SHOP}/forecaster_replicas", "workload=web") for _ in range(2))
    assert [body(reply)["items"][0]["metricLabels"]["source"] for reply in (known, stale)] == ["forecast", "last"]


def test_queries_that_nobody_sends_twice_are_not_kept(tmp_path: Path) -> None:
    table = table_of(tmp_path / "table")
    api = MetricsApi(lambda: (table, LATER))
    query = b"labelSelector=workload%3Dweb&x=" + b"a" * 600
    first, again = (ask(api, f"{SHOP}/forecaster_replicas", query=query) for _ in range(2))
    assert first is not again
    assert first == again
