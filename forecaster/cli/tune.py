"""`forecaster tune`: which policy would have been better, with its expected outcome and its uncertainty."""

from __future__ import annotations

import typer

from forecaster.cli.options import grouped
from forecaster.cli.replay_options import ReplayOptions


@grouped
def tune(given: ReplayOptions) -> None:
    """Search quantile, lead time, stabilization and target on replayed days, and print policy YAML.

    What is proposed was better on days that had no part in choosing it; where the evidence is thin nothing is proposed,
    and the reason is a comment. Exit code 1 when there is no proposal at all.
    """
    from forecaster.app.compose import prepare_process
    from forecaster.cli.replay_inputs import inputs_of
    from forecaster.replay.tuning import tune as tuned
    from forecaster.report.tuned import tuned_text

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
    )
    typer.echo(tuned_text(found), nl=False)
    if not found.proposals:
        raise typer.Exit(1)
