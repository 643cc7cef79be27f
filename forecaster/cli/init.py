"""`forecaster init`: PredictiveAutoscalers for workloads that a cluster already scales and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import Context, Kubeconfig, Namespace, api_client, in_namespaces

if TYPE_CHECKING:
    from forecaster.resources.definitions import Proposal

Folder = Annotated[
    Path | None, typer.Option("--folder", metavar="DIR", help="Write a new file for each namespace there.")
]


def init(
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    folder: Folder = None,
    definitions: Annotated[
        bool, typer.Option("--definitions", help="Print the definitions of both kinds instead; needs no cluster.")
    ] = False,
) -> None:
    """Write a PredictiveAutoscaler for each workload with an HPA, a ScaledObject or a VPA, and what to keep of these.

    All are in mode observe. Nothing is applied: `forecaster init | kubectl apply -f -` does.
    """
    from forecaster.resources.definitions import definitions_text, proposals
    from forecaster.resources.neighbours import neighbours_of

    if definitions:
        typer.echo(definitions_text(), nl=False)
        return
    known = neighbours_of(api_client(kubeconfig, context))
    for path, why in known.unknown.items():
        typer.echo(f"! {path}: {why}", err=True)
    chosen = in_namespaces(namespace)
    proposed = [proposal for proposal in proposals(known) if chosen(proposal.workload.namespace)]
    if folder is None:
        typer.echo("---\n".join(proposal.text() for proposal in proposed), nl=False)
    else:
        _write(folder, proposed)
    if not proposed:
        where = f" in a namespace {namespace}" if namespace else ""
        typer.echo(f"No HPA, ScaledObject or VPA was found{where}.", err=True)
        raise typer.Exit(1)


def _write(folder: Path, proposed: Sequence[Proposal]) -> None:
    """One file for each namespace.

    Raises:
        ConfigError: there is one already.
        StoreError: the folder cannot be made or written.
    """
    from forecaster.errors import ConfigError, Fault, StoreError

    texts = {proposal.workload.namespace: "" for proposal in proposed}
    for proposal in proposed:
        texts[proposal.workload.namespace] += ("---\n" if texts[proposal.workload.namespace] else "") + proposal.text()
    files = {folder / f"{namespace}.yaml": text for namespace, text in texts.items()}
    there = [Fault("--folder", str(file), "it exists already; name another folder") for file in files if file.exists()]
    if there:
        raise ConfigError("--folder", there)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            file.write_text(text, encoding="utf-8")
            typer.echo(str(file))
    except OSError as error:
        raise StoreError(f"--folder {folder}: {error.strerror}; name a folder that may be written") from error
