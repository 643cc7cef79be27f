"""`forecaster certificates`: our own certificate for the aggregated API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forecaster.cli.options import Context, Kubeconfig, api_client

if TYPE_CHECKING:
    from forecaster.certificates.renew import CertificateSpec, CertificateStore

SERVICE_OPTION = typer.Option(help="NAMESPACE/NAME of the Service that the certificate is for.")
SECRET_OPTION = typer.Option(help="NAMESPACE/NAME of the Secret that holds it; it must exist and may be empty.")
API_SERVICE = typer.Option("--api-service", help="APIService of ours that has to trust it; may be repeated.")
WEBHOOK_OPTION = typer.Option(
    "--webhook", help="MutatingWebhookConfiguration of ours that has to trust it; may be repeated."
)
CERTIFICATE_ATTEMPTS = 3
"""The second of two runs at a time finds a conflict and starts again."""


def certificates(
    service: Annotated[str, SERVICE_OPTION],
    secret: Annotated[str, SECRET_OPTION],
    api_services: Annotated[list[str] | None, API_SERVICE] = None,
    webhooks: Annotated[list[str] | None, WEBHOOK_OPTION] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="Days for which a new one is valid.")] = 90,
    renew_before: Annotated[int, typer.Option(min=0, help="Renew it this many days before it expires.")] = 30,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Make a certificate if there is none or its end is near, and have what is registered trust it. Run it daily."""
    from datetime import timedelta

    from forecaster.certificates import renew
    from forecaster.certificates.renew import ApiCluster

    if not all(name.count("/") == 1 and all(name.split("/")) for name in (service, secret)):
        raise typer.BadParameter("--service and --secret are NAMESPACE/NAME")
    if renew_before >= days:
        raise typer.BadParameter(f"--renew-before {renew_before} is not below --days {days}")
    registered = [renew.Registered(renew.API_SERVICE, name) for name in api_services or ()]
    registered += [renew.Registered(renew.WEBHOOK, name) for name in webhooks or ()]
    spec = renew.CertificateSpec(service, registered, timedelta(days=days), timedelta(days=renew_before))
    _renew(ApiCluster(api_client(kubeconfig, context), secret), spec, CERTIFICATE_ATTEMPTS)


def _renew(store: CertificateStore, spec: CertificateSpec, attempts: int) -> None:
    from datetime import UTC, datetime

    from forecaster.certificates.renew import ChangedError, renew_certificate

    try:
        for line in renew_certificate(store, spec, datetime.now(UTC)):
            typer.echo(line)
    except ChangedError:
        if attempts == 1:
            raise
        _renew(store, spec, attempts - 1)
