"""/report: the newest page that was written, under a policy in which only its own script runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.publish.reader import TableReader
from forecaster.publish.table import pictures_path
from forecaster.report.page import document
from forecaster.serving.app import create_app
from forecaster.serving.weekly_report import WeeklyReport, policy_of
from tests.support.asgi import Client
from tests.support.builders import NOON

if TYPE_CHECKING:
    from pathlib import Path


def client_of(folder: Path) -> Client:
    readers = TableReader(folder / "table", lambda: NOON), TableReader(pictures_path(folder / "table"))
    report = WeeklyReport(str(folder / "report.html"))
    return Client(create_app(readers[0], pictures=readers[1], report=report))


def test_before_the_first_week_it_says_how_to_make_one(tmp_path: Path) -> None:
    missing = client_of(tmp_path).get("/report")
    assert missing.status_code == 404
    assert "forecaster report --week" in missing.json()["remedy"]


def test_the_newest_page_is_served_with_its_figures(tmp_path: Path) -> None:
    client = client_of(tmp_path)
    for week in ("first", "second"):
        (tmp_path / "report.html").write_text(document(week, [f"<h1>{week}</h1>"]), encoding="utf-8")
        (tmp_path / "report.json").write_text(f'{{"week": "{week}"}}', encoding="utf-8")
        assert f"<h1>{week}</h1>" in client.get("/report").text
        assert client.get("/report.json").json() == {"week": week}
    policy = client.get("/report").headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert "connect-src" not in policy
    assert "script-src 'sha256-" in policy


def test_only_the_script_of_the_page_itself_may_run() -> None:
    """The page's script comes last; what a name might have smuggled in before it does not run."""
    page = document("A week", [])
    smuggled = page.replace("<main>", "<main><script>alert(1)</script>")
    assert policy_of(smuggled.encode()) == policy_of(page.encode())


def test_a_page_without_a_script_runs_none() -> None:
    assert "script-src 'none'" in policy_of(b"<p>nothing</p>")
