"""Pages of the site that are made of schemas when it is built: settings and metrics."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import generate_latest

from forecaster.app.telemetry import Metrics
from forecaster.config.text import setting_rows
from forecaster.publish.reader import TableReader
from forecaster.serving.metrics import FAMILIES, ServingMetrics

LONGEST = 60
PLAIN = {"", "string", "object", "boolean", "array", "integer", "number"}
"""Types that say nothing of what is allowed."""


def settings_page() -> str:
    """Every setting by section: its default, what it means, what is allowed."""
    lines = [
        "# Settings",
        "",
        "All of them, as `forecaster settings` and `forecaster settings KEY` print them. [Configure](configure.md)",
        "says where they stand and which to reach for; `forecaster settings --schema` is for editors.",
        "",
    ]
    sections: dict[str, list[str]] = {}
    for one in setting_rows():
        meaning = f"{one.meaning}{f' Allowed: {one.allowed}.' if one.allowed not in PLAIN else ''}"
        sections.setdefault(one.section, []).append(_row(f"`{one.name}`", f"`{_short(one.default)}`", meaning))
    for section, rows in sections.items():
        heading = f"## {section or 'Lists'}"
        lines += [heading, "", "| setting | default | meaning |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;") for cell in cells) + " |"


def metrics_page() -> str:
    """Every metric of both processes with its type and help."""
    kinds, helps = _declared(Metrics("0").text())
    metrics = ServingMetrics(TableReader(Path("none")))
    serving, serving_helps = _declared(generate_latest(metrics).decode())
    lines = ["# Metrics", "", "[Operations](operations.md#metrics) says which to watch and what to do about it.", ""]
    groups = {
        "Of every workload, as a reader of the table is told": [
            (name, "gauge", text) for name, text in FAMILIES.items()
        ],
        "Of the computing process": [(name, kind, helps[name]) for name, kind in kinds.items()],
        "Of the serving process": [(name, kind, serving_helps[name]) for name, kind in serving.items()],
    }
    seen: set[str] = set()
    for title, rows in groups.items():
        fresh = [row for row in rows if row[0] not in seen]
        seen |= {row[0] for row in fresh}
        lines += [f"## {title}", "", "| metric | type | meaning |", "| --- | --- | --- |"]
        lines += [*(_row(f"`{name}`", kind, text) for name, kind, text in sorted(fresh)), ""]
    return "\n".join(lines)


def _declared(text: str) -> tuple[dict[str, str], dict[str, str]]:
    kinds, helps = {}, {}
    for line in text.splitlines():
        if line.startswith(("# TYPE forecaster_", "# HELP forecaster_")):
            _, what, name, rest = line.split(" ", 3)
            if not name.endswith("_created"):
                (kinds if what == "TYPE" else helps)[name] = rest
    return kinds, helps


PAGES = {"settings.md": settings_page, "metrics.md": metrics_page}
