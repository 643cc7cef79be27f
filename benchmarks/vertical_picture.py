"""The frontier as an SVG: slack across, mishaps upwards, one curve for each recommender."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.replay.sizers import SizeOutcome

WIDTH, HEIGHT, LEFT, TOP, GAP = 340, 250, 64, 44, 44
COLOURS = {"VPA": "#b3541e", "KRR": "#7a7a7a", "forecaster": "#1f6f8b"}
SECOND, THIRD = "#2a9d6f", "#8a4fb0"


def drawn(groups: Mapping[str, Sequence[SizeOutcome]]) -> str:
    """One panel for each group of loads, two in a row."""
    panels = [_panel(i, name, rows) for i, (name, rows) in enumerate(groups.items())]
    wide, high = 2 * (WIDTH + LEFT + GAP), math.ceil(len(panels) / 2) * (HEIGHT + TOP + GAP) + GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="11">'
    )
    return "\n".join([head, f'<rect width="{wide}" height="{high}" fill="white"/>', *panels, "</svg>"]) + "\n"


def _panel(i: int, name: str, rows: Sequence[SizeOutcome]) -> str:
    x0, y0 = (i % 2) * (WIDTH + LEFT + GAP) + LEFT, (i // 2) * (HEIGHT + TOP + GAP) + TOP
    cpu = name.startswith("CPU")
    points = [(row, row.summary.slack, _mishaps(row, cpu=cpu)) for row in rows]
    across, upwards = max(x for _, x, _ in points) * 1.08, max(y for *_, y in points) * 1.1 or 1.0
    parts = [
        f'<text x="{x0}" y="{y0 - 16}" font-size="13" font-weight="bold">{escape(name)}</text>',
        f'<path d="M{x0} {y0} V{y0 + HEIGHT} H{x0 + WIDTH}" fill="none" stroke="#444"/>',
        f'<text x="{x0 + WIDTH}" y="{y0 + HEIGHT + 28}" text-anchor="end">slack: requested and unused / used</text>',
        f'<text x="{x0 - 56}" y="{y0 - 3}">{"time above the request, %" if cpu else "OOM kills"}</text>',
    ]
    for tick in range(5):
        x, y = x0 + WIDTH * tick / 4, y0 + HEIGHT - HEIGHT * tick / 4
        parts.append(f'<text x="{x:.0f}" y="{y0 + HEIGHT + 14}" text-anchor="middle">{across * tick / 4:.2g}</text>')
        parts.append(f'<text x="{x0 - 6}" y="{y + 4:.0f}" text-anchor="end">{upwards * tick / 4:.3g}</text>')
    families = dict.fromkeys(row.family for row in rows)
    for line, family in enumerate(families):
        colour = _colour(family)
        placed = [
            (x0 + WIDTH * x / across, y0 + HEIGHT - HEIGHT * y / upwards)
            for row, x, y in points
            if row.family == family
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in placed]
        label = (
            f'<text x="{x0 + WIDTH}" y="{y0 + 4 + 15 * line}" text-anchor="end" fill="{colour}">{escape(family)}</text>'
        )
        parts.append(label)
    return "\n".join(parts)


def _colour(family: str) -> str:
    if "follow" in family:
        return THIRD
    return SECOND if "peak" in family or "6 h" in family else COLOURS.get(family.partition(",")[0], "#000")


def _mishaps(row: SizeOutcome, *, cpu: bool) -> float:
    return row.summary.over_request_share * 100 if cpu else float(row.summary.over_limit)
