"""`forecaster run`: the service. `forecaster release`: the undo of what it wrote, without it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import ConfigFile, Namespace, PrometheusUrl, settings_of

if TYPE_CHECKING:
    from forecaster.actuators.values import LiveAutoscaler

HPAS = typer.Argument(metavar="[NAMESPACE/NAME]", help="Only these HPAs; shell patterns.")
KUBECONFIG = typer.Option(help="Client configuration; default: the pod's own service account.")


def run(prometheus: PrometheusUrl = None, config: ConfigFile = None, namespace: Namespace = None) -> None:
    """Run a cycle a minute and serve the results, until SIGTERM."""
    from forecaster.app.serve import serve

    code = serve(settings_of(config, prometheus, namespace))
    if code:  # the last cycle goes on, in a thread for which the interpreter would wait
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise SystemExit(code)


def release(
    pattern: Annotated[str, HPAS] = "*",
    expired: Annotated[bool, typer.Option("--expired", help="Only floors that were not renewed in time.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask the API server, and change nothing.")] = False,
    kubeconfig: Annotated[Path | None, KUBECONFIG] = None,
) -> None:
    """Put back the minReplicas that owners stated, and remove every mark. A service in mode floor raises again."""
    from fnmatch import fnmatchcase

    from forecaster.actuators.acting import release as releasing
    from forecaster.actuators.autoscalers import Autoscalers
    from forecaster.app.clock import current
    from forecaster.kube.client import ApiClient
    from forecaster.kube.config import client_config_source

    wanted = pattern if "/" in pattern else f"*/{pattern}"

    def chosen(one: LiveAutoscaler) -> bool:
        return fnmatchcase(f"{one.namespace}/{one.name}", wanted)

    autoscalers = Autoscalers(ApiClient(client_config_source(kubeconfig)).configured(), dry_run=dry_run)
    left = 0
    for one in releasing(autoscalers, current(), expired=expired, chosen=chosen):
        typer.echo(one.line, err=not one.done)
        left += not one.done
    if left:
        raise typer.Exit(1)
