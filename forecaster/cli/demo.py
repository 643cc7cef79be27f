"""`forecaster demo`: the main job on recorded load."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    once: Annotated[bool, typer.Option("--once", help="One cycle, then stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Run the service's own code on real recorded load with a fast clock, and compare with the plain HPA."""
    from forecaster.report.demo import show_one_cycle, show_play

    (show_one_cycle if once else show_play)(as_json=as_json)
