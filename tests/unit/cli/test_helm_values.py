"""`recommend -o helm-values`: faults of the map, the overlay that is written, and the text of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from typer.testing import CliRunner, Result

from forecaster.cli import app
from tests.support import objects as given

if TYPE_CHECKING:
    from pathlib import Path

APP = given.container("app", {"cpu": "1", "memory": "1Gi"})
VALUES = "search: {resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}}\nstorefront: {resources: }\n"
VALUES += "hpa: [1]\n"
FAULTS = """\
shop/serch/app: search.resources
shop/recommendations/ap: serch.resources
shop/search: search.resources
shop/search/app: search..resources
shop/storefront/app: hpa
shop/recommendations/app: storefront
shop/checkout/app: storefront.resources
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    names = ("search", "storefront", "recommendations", "checkout")
    given.written(tmp_path / "cluster.json", *(given.deployment("shop", name, APP) for name in names))
    (tmp_path / "values.yaml").write_text(VALUES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(paths: str, folder: Path, *more: str, code: int = 0) -> Result:
    (folder / "sizes.yaml").write_text(paths)
    words = ("recommend", "--demo", "--no-compare", "--objects", "cluster.json", "-o", "helm-values", "--paths")
    done = CliRunner().invoke(app, [*words, "sizes.yaml", "--to", "over.yaml", "--values", "values.yaml", *more])
    assert done.exit_code == code, done.output
    return done


def test_every_fault_is_named_with_its_remedy_and_nothing_is_written(folder: Path) -> None:
    message = str(run(FAULTS, folder, code=1).exception)
    for fault in (
        "shop/serch/app: 'search.resources': no such workload; did you mean shop/search?",
        "shop/recommendations/ap: 'serch.resources': no such container; there are app",
        "shop/recommendations/ap: 'serch.resources': the values have no serch; did you mean search?",
        "shop/search: 'search.resources': write NAMESPACE/NAME/CONTAINER",
        "shop/search/app: 'search..resources': write the path of its resources, such as web.resources",
        "shop/storefront/app: 'hpa': hpa is [1] and no mapping; name the one that holds requests and limits",
        "shop/checkout/app: 'storefront.resources': shop/recommendations/app has storefront already",
    ):
        assert fault in message
    assert not (folder / "over.yaml").exists()


def test_a_size_in_the_values_that_is_none_is_named(folder: Path) -> None:
    (folder / "values.yaml").write_text("search: {resources: {requests: {cpu: much}}}")
    message = str(run("shop/search/app: search.resources", folder, code=1).exception)
    assert "the values have no size there: " in message
    assert "'much'" in message


def test_a_size_that_moved_less_stays_as_the_overlay_has_it(folder: Path) -> None:
    sizes = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    before = {"storefront": {"resources": sizes}}
    (folder / "over.yaml").write_text(yaml.safe_dump(before))
    paths = "shop/recommendations/app: search.resources\nshop/storefront/app: storefront.resources"
    assert "1 of 2 containers moved" in run(paths, folder, "--moved", "50%").stdout
    written = yaml.safe_load((folder / "over.yaml").read_text())
    assert written.keys() == {"search", "storefront"}
    assert written["storefront"] == before["storefront"]


def test_a_size_that_is_held_stays(folder: Path) -> None:
    """Usage of shop/checkout says nothing about the memory that it needs."""
    before = {"search": {"resources": {"requests": {"memory": "2Gi"}}}}
    (folder / "over.yaml").write_text(yaml.safe_dump(before))
    assert "0 of 1 container moved" in run("shop/checkout/app: search.resources", folder).stdout
    assert yaml.safe_load((folder / "over.yaml").read_text()) == before


def test_what_the_cluster_refuses_is_written_as_the_nearest_that_it_takes(folder: Path) -> None:
    given.written(
        folder / "cluster.json",
        given.deployment("shop", "recommendations", APP),
        given.limit_range("shop", max={"memory": "1800Mi"}),
    )
    output = run("shop/recommendations/app: search.resources", folder).stdout
    assert "the nearest that the cluster takes: LimitRange: app: maximum memory per Container is 1800Mi" in output
    assert yaml.safe_load((folder / "over.yaml").read_text())["search"]["resources"]["requests"]["memory"] == "1800Mi"


def test_a_size_that_cannot_be_split_over_containers_is_not_written_and_the_reason_is_printed(folder: Path) -> None:
    two = (given.container("front"), given.container("back"))
    given.written(folder / "cluster.json", given.deployment("shop", "recommendations", *two))
    assert (
        "! shop/recommendations/front: not written: "
        in run("shop/recommendations/front: search.resources", folder).stderr
    )
    assert not (folder / "over.yaml").exists()


def test_what_leaves_the_map_leaves_the_overlay(folder: Path) -> None:
    (folder / "over.yaml").write_text("storefront: {resources: {requests: {cpu: 2}}}")
    run("shop/recommendations/app: search.resources", folder)
    assert yaml.safe_load((folder / "over.yaml").read_text()).keys() == {"search"}


def test_a_dot_of_a_key_is_escaped(folder: Path) -> None:
    (folder / "values.yaml").write_text("shop.example: {resources: {}}")
    run(r"shop/recommendations/app: shop\.example.resources", folder)
    assert yaml.safe_load((folder / "over.yaml").read_text()).keys() == {"shop.example"}


def test_where_nothing_moved_no_file_is_made(folder: Path) -> None:
    result = run("shop/recommendations/app: search.resources", folder, "--moved", "900%")
    assert "0 of 1 container moved by more than 900 % of what Git has." in result.stdout
    assert not (folder / "over.yaml").exists()


def test_of_requests_that_git_never_had_no_money_is_compared(folder: Path) -> None:
    prices = ("--price-core-hour", "1", "--price-gib-hour", "1")
    result = run("shop/storefront/app: storefront.resources", folder, "--moved", "1%", *prices)
    assert "1 of 1 container moved" in result.stdout
    assert "Cost a month" not in result.stdout
    assert "written, 0.2 KiB" in result.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("-o", "helm-values"), "need --to"),
        (("-o", "helm-values", "--to", "x.yaml"), "needs it"),
        (("--paths", "values.yaml"), "no other form takes it"),
        (("--moved", "10"), "write a share such as 10%"),
        (("--moved", "nan%"), "write a share such as 10%"),
        (("-o", "kustomize", "--to", "x", "--moved", "10%"), "takes its size back"),
    ],
    ids=["no file", "no map", "map alone", "no share", "no number", "kustomize"],
)
def test_options_that_do_not_belong_together_are_refused(folder: Path, words: tuple[str, ...], complaint: str) -> None:
    done = CliRunner().invoke(app, ["recommend", "--demo", *words])
    assert done.exit_code == 2
    assert complaint in " ".join(done.output.replace("│", "").split())
    assert not (folder / "x").exists()


def test_markdown_has_all_columns_and_the_money_of_what_moved() -> None:
    words = (
        "recommend",
        "--demo",
        "-o",
        "md",
        "--moved",
        "10%",
        "--price-core-hour",
        "1",
        "--price-gib-hour",
        "1",
    )
    head, rule, *rows = CliRunner().invoke(app, words).stdout.splitlines()
    assert head.startswith("| WORKLOAD | SEVERITY | CPU REQUEST |")
    assert head.count("|") == rule.count("|") == rows[0].count("|")
    assert rows[-1].startswith("Cost a month, in the currency of the prices: ")
    assert not any(row.startswith("| shop/checkout |") for row in rows), "it is held"
