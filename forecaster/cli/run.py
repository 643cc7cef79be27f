"""`forecaster run`: the service. `forecaster release`: the undo of its writes, without it. `forecaster resume`."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from forecaster.cli.options import (
    ConfigFile,
    Context,
    Kubeconfig,
    SourceOptions,
    api_client,
    given_of,
    grouped,
    settings_of,
)
from forecaster.cli.streams import tell

OBJECTS_ARGUMENT = typer.Argument(metavar="NAMESPACE/NAME", help="Only these HPAs and workloads, e.g. 'shop/*'.")


@grouped
def run(given: SourceOptions) -> None:
    """Run a cycle a minute and serve the results, until SIGTERM."""
    from functools import partial

    from forecaster.app.reload import SettingsFiles
    from forecaster.app.serve import serve
    from forecaster.config.files import fingerprint
    from forecaster.config.text import origins_of

    read = partial(settings_of, given.config, given.prometheus, given.namespace)
    origins = partial(origins_of, given.config, given_of(given.prometheus, given.namespace))
    code = serve(read(), files=SettingsFiles(partial(fingerprint, given.config), read, origins))
    if code:  # the last cycle goes on, in a thread for which the interpreter would wait
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise SystemExit(code)


def release(
    pattern: Annotated[str, OBJECTS_ARGUMENT] = "*",
    expired: Annotated[bool, typer.Option("--expired", help="Only floors that were not renewed in time.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Let the API server check, and change nothing.")] = False,
    at_once: Annotated[
        bool, typer.Option("--now", help="Also counts of mode scale that fall, whatever the load needs.")
    ] = False,
    config: ConfigFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Put back what owners stated, minReplicas and counts, and remove every mark. A service that runs acts again."""
    from fnmatch import fnmatchcase

    from forecaster.app.clock import current
    from forecaster.app.effects import released_objects

    qualified = pattern if "/" in pattern else f"*/{pattern}"
    settings = settings_of(config)
    released = released_objects(
        api_client(kubeconfig or (None if context else settings.acting.kubeconfig), context),
        settings,
        current(),
        expired=expired,
        dry_run=dry_run,
        at_once=at_once,
        chosen=lambda namespace, name: fnmatchcase(f"{namespace}/{name}", qualified),
    )
    done = []
    for outcome in released:
        typer.echo(outcome.line, err=not outcome.done)
        done.append(outcome.done)
    if not done:
        tell(f"Nothing to put back: no HPA or workload {qualified} has a mark of ours.")
    if not all(done):
        raise typer.Exit(1)


def resume(config: ConfigFile = None, kubeconfig: Kubeconfig = None, context: Context = "") -> None:
    """Let a fleet go down that the brake holds, for an hour: more of it than `acting.most_falling` would at once."""
    from forecaster.app.clock import current
    from forecaster.kube.lease import lease_path, resume_falling

    acting = settings_of(config).acting
    client = api_client(kubeconfig or (None if context else acting.kubeconfig), context)
    after = resume_falling(client, lease_path(*acting.lease.split("/")), current())
    tell(f"Lease {acting.lease}: what the brake held goes down now, within the limits of each cycle.")
    if after.paused:
        tell(
            "Writes are still paused: resume them on the dashboard, or set forecaster.dev/pause of the Lease to false."
        )
