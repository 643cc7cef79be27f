"""Whatever arrives, the parsers answer: a value, or a refusal in the types of the API, quickly."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.quantity import parse_quantity
from forecaster.hpa.selectors import SelectorError, parse_selector
from forecaster.publish.values import Moment, NotNamed
from forecaster.serving.answers import workload_selector
from forecaster.serving.external_metrics import ApiRequest, MetricsApi
from forecaster.serving.reply import quantity
from tests.support.published import table_of
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.publish.reader import PublishedTable

REFUSALS = {400, 404, 405, 503}
SELECTOR_SIGNS = st.text(st.sampled_from("=!(), \tinotwrklad-./web"), max_size=200)
PIECES = st.sampled_from(
    ["apis", "external.metrics.k8s.io", "v1beta1", "namespaces", "shop", "forecaster_demand", "..", ""]
)
PATHS = st.lists(PIECES | st.text(max_size=8), max_size=9).map(lambda parts: "/" + "/".join(parts))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> PublishedTable:
    return table_of(tmp_path_factory.mktemp("property") / "table")


@given(
    method=st.sampled_from(["GET", "HEAD", "POST"]) | st.text(max_size=10),
    path=PATHS | st.text(max_size=60),
    query=st.binary(max_size=80) | SELECTOR_SIGNS.map(lambda text: b"labelSelector=" + quote(text).encode()),
    accept=st.text(max_size=60),
)
def test_every_request_is_answered(table: PublishedTable, method: str, path: str, query: bytes, accept: str) -> None:
    api = MetricsApi(lambda: (table, Moment(NOON + timedelta(seconds=1), NOON, fresh=True)))
    reply = api.answer(ApiRequest(method, path, query, accept))
    document = msgspec.json.decode(reply.body)
    if reply.status == 200:
        assert document["kind"] != "Status"
    else:
        assert reply.status in REFUSALS
        assert (document["kind"], document["code"]) == ("Status", reply.status)
        assert len(reply.body) < 2000


@given(SELECTOR_SIGNS | st.text(max_size=100))
def test_a_selector_is_understood_or_refused_in_a_sentence(text: str) -> None:
    answer = workload_selector(text)
    try:
        parse_selector(text)
    except SelectorError:
        assert isinstance(answer, NotNamed)
    else:
        assert isinstance(answer, NotNamed) == ("say which workload" in str(answer))


class Term(NamedTuple):
    """One requirement of a selector, as it is meant and as it is written."""

    key: str
    operator: str
    values: tuple[str, ...]
    text: str

    def holds(self, labels: Mapping[str, str]) -> bool:
        if self.operator in {"", "!"}:
            return (self.key in labels) is (self.operator == "")
        return (labels.get(self.key) in self.values) is (self.operator in {"=", "==", "in"})


TERMS = {
    "workload": ("web", "api", "nope"),
    "kind": ("Deployment", "StatefulSet"),
    "namespace": ("shop", "other"),
    "signal": ("cpu", "memory", "gpu"),
    "source": ("forecast",),
}
SHOP = [workload_id("api"), workload_id("web"), workload_id("web", kind="StatefulSet")]
ANYWHERE = [workload_id("api", "other"), *SHOP]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> PublishedTable:
    return table_of(tmp_path_factory.mktemp("several") / "table", *map(recommendation, ANYWHERE))


@st.composite
def terms(draw: st.DrawFn, keys: st.SearchStrategy[str]) -> Term:
    key, space = draw(keys), draw(st.sampled_from(["", " ", "\t"]))
    operator = draw(st.sampled_from(["=", "==", "in", "!=", "notin", "", "!"]))
    values = draw(st.lists(st.sampled_from(TERMS[key]), min_size=1, max_size=2))
    if operator in {"in", "notin"}:
        return Term(key, operator, tuple(values), f"{key} {operator}{space}({f',{space}'.join(values)})")
    if operator in {"", "!"}:
        return Term(key, operator, (), f"{space}{operator}{space}{key}")
    return Term(key, operator, (values[0],), f"{key}{space}{operator}{space}{values[0]}")


@given(data=st.data())
def test_a_selector_yields_the_one_value_it_means_and_never_another(
    several: PublishedTable, data: st.DataObject
) -> None:
    """The values are searched for one by one in this test; the service looks them up by the names in the selector."""
    api = MetricsApi(lambda: (several, Moment(NOON + timedelta(seconds=1), NOON, fresh=True)))
    selectors = data.draw(st.lists(terms(st.sampled_from(sorted(TERMS))), max_size=2))
    selectors += data.draw(st.lists(terms(st.just("workload")), max_size=1))
    query = b"labelSelector=" + quote(",".join(selector.text for selector in selectors)).encode()
    reply = api.answer(
        ApiRequest("GET", "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/forecaster_demand", query)
    )
    each = [
        {"namespace": id_.namespace, "kind": id_.kind, "workload": id_.name, "signal": signal}
        for id_ in SHOP
        for signal in ("cpu", "memory", "requests")
    ]
    meant = [labels for labels in each if all(selector.holds(labels) for selector in selectors)]
    if not any(selector.key == "workload" and selector.operator in {"=", "==", "in"} for selector in selectors):
        assert reply.status == 400
    elif len(meant) == 1:
        (item,) = msgspec.json.decode(reply.body)["items"]
        assert meant[0].items() <= item["metricLabels"].items()
    else:
        assert reply.status == (400 if meant else 404)


@given(
    st.floats(min_value=0, max_value=9e15, allow_nan=False),
)
def test_a_quantity_is_never_below_its_value_and_less_than_a_milli_unit_above(value: float) -> None:
    milli = parse_quantity(quantity(value)).milli
    exact = Fraction(value) * 1000
    assert exact - Fraction(1, 10**6) - exact / 2**50 <= milli < exact + 1 + exact / 2**50


@given(st.floats(allow_nan=False))
def test_a_quantity_always_fits_what_an_hpa_counts_in(value: float) -> None:
    text = quantity(value)
    assert text.removesuffix("m").isdigit()
    assert 0 <= parse_quantity(text).milli < 2**63
