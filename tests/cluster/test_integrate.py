"""docs/integrate.md, block by block."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

import httpx
import pytest
import yaml
from starlette.applications import Starlette

from forecaster.app.rights import fallback_checks
from forecaster.config.settings import parse
from forecaster.domain.window import MINUTE
from forecaster.publish.reader import TableReader
from forecaster.publish.remote_write import RemoteWriter
from forecaster.publish.settings import RemoteWriteSettings
from forecaster.serving.integrations import IntegrationPages
from tests.support.asgi import Client
from tests.support.control_plane.binaries import cache
from tests.support.control_plane.deployed import ROOT
from tests.support.integrate_page import blocks, of_kind
from tests.support.prometheus import RealPrometheus, find_binaries
from tests.support.published import offered_cycle
from tests.support.recommendations import NOON, ahead, recommendation, signal_view
from tests.support.secure_serving import SecureServing
from tests.support.tables import publish
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from tests.support.control_plane.plane import ControlPlane
    from tests.support.prometheus import Binaries

MANIFESTS = [each for text in of_kind("kubectl") for each in yaml.safe_load_all(text)]
TRIED = {
    "kubectl",
    "kustomization",
    "settings",
    "prometheus",
    "scraped",
    "written",
    "watermark",
    "watermark-request",
    "watermark-reply",
    "kapacity",
}


def test_every_block_is_tried() -> None:
    """Blocks for a shell are the lines that other tests run as programs."""
    kinds = {kind for language, kind, _ in blocks() if language != "sh"}
    assert kinds == TRIED


@pytest.fixture(scope="module")
def with_keda(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """An API server that knows KEDA's kinds, and the namespace of the page."""
    if not (cache() / "keda-crds").is_dir():
        pytest.skip("no custom resources of KEDA: run .ci/keda")
    control_plane.install(cache() / "keda-crds")
    control_plane.api.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    yield control_plane
    control_plane.uninstall(cache() / "keda-crds")


class TestManifests:
    @pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
    def test_an_api_server_takes_each(self, with_keda: ControlPlane, manifest: object) -> None:
        with_keda.kubectl("apply", "--dry-run=server", "--validate=strict", "-f-", given=yaml.safe_dump(manifest))

    def test_the_doctor_finds_the_fallbacks_of_the_page_and_misses_one_that_is_taken_away(
        self, with_keda: ControlPlane
    ) -> None:
        settings = parse({"kubernetes": {"kubeconfig": str(with_keda.kubeconfig)}}, "test")
        assert fallback_checks(settings) == []
        for manifest in (each for each in MANIFESTS if each["kind"] == "ScaledObject"):
            with_keda.api.create(manifest, "shop")
        assert [check.detail for check in fallback_checks(settings)] == ["each of 3 ScaledObjects has one"]
        with_keda.api.merge("ScaledObject", "web-by-prometheus", {"spec": {"fallback": None}}, "shop")
        (check,) = fallback_checks(settings)
        assert (check.ok, check.detail) == (False, "ScaledObject shop/web-by-prometheus states no fallback")

    def test_the_example_files_are_those_of_the_page(self) -> None:
        page = next(each for each in MANIFESTS if each["kind"] == "ScaledObject")
        example = list(yaml.safe_load_all((ROOT / "deploy/examples/keda-scaledobject.yaml").read_text()))[1]
        page["spec"]["triggers"][0]["metadata"].pop("kind")
        assert example == page

    def test_the_overlay_builds(self, control_plane: ControlPlane, tmp_path: Path) -> None:
        (text,) = of_kind("kustomization")
        overlay = yaml.safe_load(text)
        for key in ("resources", "components"):
            overlay[key] = [os.path.relpath(ROOT / each, tmp_path) for each in overlay[key]]
        overlay["components"] = [each for each in overlay["components"] if "cert-manager" not in each]
        (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        built = control_plane.kubectl("kustomize", str(tmp_path))
        control_plane.api.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "forecaster"}})
        # The template of a Job that another test made with another image cannot be changed.
        control_plane.kubectl("delete", "job", "--all", "--namespace=forecaster")
        control_plane.kubectl("apply", "--dry-run=server", "-f-", given=built)


@pytest.mark.parametrize("text", of_kind("settings"))
def test_settings_are_good(text: str) -> None:
    parse(yaml.safe_load(text), "docs/integrate.md")


class TestOtherControllers:
    def test_the_webhook_gives_that_reply_to_that_request(self, tmp_path: Path) -> None:
        (request,), (reply,) = of_kind("watermark-request"), of_kind("watermark-reply")
        answered = seams(tmp_path).post("/api/v1/recommenders/watermark", request.encode())
        assert answered.json() == json.loads(reply)

    def test_its_manifest_names_our_address(self) -> None:
        (text,) = of_kind("watermark")
        spec = yaml.safe_load(text)["spec"]
        assert spec["recommender"]["url"].endswith("svc:8080/api/v1/recommenders/watermark")

    def test_the_config_map_is_the_one_that_is_answered_and_that_an_api_server_takes(
        self, control_plane: ControlPlane, tmp_path: Path
    ) -> None:
        (text,) = of_kind("kapacity")
        answered = seams(tmp_path).get("/api/v1/namespaces/shop/workloads/Deployment/web/kapacity/web-portrait").json()
        assert answered == yaml.safe_load(text)
        control_plane.api.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        control_plane.kubectl("apply", "--dry-run=server", "-f-", given=json.dumps(answered))


def seams(folder: Path) -> Client:
    reader = TableReader(publish(folder / "table", mode="publish"), lambda: NOON + timedelta(seconds=20))
    reader.refresh()
    return Client(Starlette(routes=IntegrationPages(reader).routes()))


class TestPrometheus:
    @pytest.fixture
    def binaries(self) -> Binaries:
        programs = find_binaries()
        if programs is None:
            pytest.skip("no prometheus and promtool: run .ci/prometheus")
        return programs

    @pytest.fixture
    def scraping(self, binaries: Binaries, tmp_path: Path) -> Iterator[RealPrometheus]:
        """A Prometheus with the page's configuration, at the address of a real serving process."""
        table = publish(tmp_path / "table", at=datetime.now(UTC), mode="publish", gauges="counts")
        token = tmp_path / "token"
        token.write_text("good", encoding="utf-8")
        (text,) = of_kind("prometheus")
        with SecureServing(tmp_path, table) as serving:
            replaced = {
                "forecaster.forecaster.svc:443": f"localhost:{serving.port}",
                "forecaster.forecaster.svc": "localhost",
                "/etc/prometheus/forecaster/ca.crt": str(serving.issuer.certificate),
                "/var/run/secrets/kubernetes.io/serviceaccount/token": str(token),
                "30s": "1s",
            }
            config = reduce(lambda result, pair: result.replace(*pair), replaced.items(), text)
            with RealPrometheus(binaries, tmp_path / "data", config=config) as running:
                yield running

    def test_it_scrapes_us_and_answers_the_queries(self, scraping: RealPrometheus) -> None:
        queries = [line for text in of_kind("scraped") for line in text.splitlines()]
        trigger = next(each for each in MANIFESTS if each["metadata"]["name"] == "web-by-prometheus")
        queries.append(trigger["spec"]["triggers"][0]["metadata"]["query"])
        wait_until(lambda: bool(ask(scraping, "forecaster_workload_measured")), goal="a scrape")
        for query in queries:
            assert len(ask(scraping, query)) == 1, query

    def test_it_takes_our_writes_and_lays_forecast_over_actual(self, binaries: Binaries, tmp_path: Path) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        options = ["--web.enable-remote-write-receiver"]
        with RealPrometheus(binaries, tmp_path / "data", options=options) as receiver:
            given = next(block for text in of_kind("settings") if "remote_write" in (block := yaml.safe_load(text)))
            settings = RemoteWriteSettings(**given["remote_write"]).model_copy(
                update={"url": f"{receiver.url}/api/v1/write"}
            )
            writer = RemoteWriter(settings)
            for k in range(14):
                row = cycle(now - (13 - k) * MINUTE)
                writer.receive(offered_cycle(row, at=row.at))
                writer.settle(PATIENCE)
            writer.receive(offered_cycle(at=now))
            writer.close()
            for query in (line for text in of_kind("written") for line in text.splitlines()):
                assert len(ask(receiver, query)) == 1, query


def cycle(at: datetime) -> Recommendation:
    forecast = replace(ahead(at), quantile=0.9, begin=at + 3 * MINUTE)
    return replace(recommendation(at=at), signals=(replace(signal_view("cpu", at), forecast=forecast),))


def ask(prometheus: RealPrometheus, query: str) -> list[float]:
    answer = (
        httpx.get(f"{prometheus.url}/api/v1/query", params={"query": query}, timeout=PATIENCE).raise_for_status().json()
    )
    return [float(row["value"][1]) for row in answer["data"]["result"]]
