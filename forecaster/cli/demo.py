"""`forecaster demo`: the main job on recorded load."""

from __future__ import annotations

from typing import Annotated

import typer

from forecaster.cli.options import OutputForm
from forecaster.report.formats import Output


def demo(
    once: Annotated[bool, typer.Option("--once", help="Run one cycle, then stop.")] = False,
    output: OutputForm = Output.TABLE,
    serve: Annotated[bool, typer.Option("--serve", help="Serve these hours in the dashboard.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the dashboard; 0 takes a free one.")] = 8080,
) -> None:
    """Run the service's own code on real recorded load with a fast clock, and compare with the plain HPA."""
    from forecaster.report.demo import show_dashboard, show_one_cycle, show_play

    if serve:
        show_dashboard(port)
        return
    (show_one_cycle if once else show_play)(output)
