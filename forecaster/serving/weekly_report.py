"""/report: the newest page of `forecaster report --html`, and its figures beside it as /report.json."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forecaster.serving.rest import ProblemError

REMEDY = "`forecaster report --week --from-prometheus --html FILE` writes one; serving.report names the file."
REPORT_MAX = 64 << 20
SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


class WeeklyReport:
    """A file that another program replaces once a week, read anew for every request."""

    def __init__(self, page: str) -> None:
        self._page = Path(page)

    def routes(self) -> list[Route]:
        """The page, and its figures."""
        return [Route("/report", self.page), Route("/report.json", self.figures)]

    def made_at(self) -> datetime | None:
        """Return when the page was written; None where there is none."""
        try:
            return datetime.fromtimestamp(int(self._page.stat().st_mtime), UTC)
        except OSError:
            return None

    async def page(self, _request: Request) -> Response:
        """The page, in which nothing runs but its own script, and that asks nothing of this host either."""
        body = await asyncio.to_thread(_read, self._page)
        return Response(
            body, media_type="text/html", headers={**REPORT_GUARDS, "Content-Security-Policy": policy_of(body)}
        )

    async def figures(self, _request: Request) -> Response:
        """Return the figures of the report as JSON."""
        body = await asyncio.to_thread(_read, self._page.with_suffix(".json"))
        return Response(body, media_type="application/json", headers=REPORT_GUARDS)


REPORT_GUARDS = {"Cache-Control": "no-cache", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


def policy_of(page: bytes) -> str:
    """The content security policy of a page that is one file: its script, which comes last, by its digest."""
    digests = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in SCRIPT.findall(page)[-1:]]
    scripts = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; sandbox allow-scripts; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size <= REPORT_MAX:
            return path.read_bytes()
    except OSError:
        pass
    raise ProblemError(HTTPStatus.NOT_FOUND, f"there is no report at {path.name}", REMEDY)
