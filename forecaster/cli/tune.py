"""`forecaster tune`: which policy would have been better, with its expected outcome and its uncertainty."""

from __future__ import annotations

from typing import Annotated

import typer

from forecaster.cli.options import finished, grouped
from forecaster.cli.replay_options import ReplayOptions
from forecaster.cli.streams import tell
from forecaster.report.formats import TuneOutput


@grouped
def tune(
    given: ReplayOptions,
    output: Annotated[TuneOutput, typer.Option("--output", "-o", help="How to print.")] = TuneOutput.YAML,
    allow_shortage: Annotated[
        bool, typer.Option("--allow-shortage", help="Propose what is cheaper and leaves more short than now, too.")
    ] = False,
) -> None:
    """Search quantile, lead time, stabilization and target on replayed days, and print policy YAML.

    What is proposed was better on days that had no part in choosing it, and leaves no more demand short than the policy
    of today; where the evidence is thin nothing is proposed, and the reason is a comment. Exit code 1 when there is no
    proposal at all.
    """
    from forecaster.app.compose import prepare_process
    from forecaster.cli.replay_inputs import inputs_of
    from forecaster.replay.tuning import tune as tuned
    from forecaster.report.progress import shown_progress
    from forecaster.report.tuned import print_tuned

    with shown_progress("tune") as shown:
        shown.began("history", 0.0)
        inputs = inputs_of(given)
        prepare_process()
        found = tuned(
            inputs.traces,
            inputs.policies,
            begin=inputs.begin,
            until=inputs.until,
            model=inputs.settings.forecast.model,
            assumed=inputs.assumed,
            forecasting=inputs.forecasting,
            watch=shown,
            allow_shortage=allow_shortage,
        )
    print_tuned(found, output)
    if output is TuneOutput.NAME:
        for id_, why in found.refused.items():
            tell(f"{id_}: no proposal, {why}.")
    finished(shown)
    if not found.proposals:
        raise typer.Exit(1)
