"""`forecaster run`: the service."""

from __future__ import annotations

from forecaster.cli.options import ConfigFile, Namespace, PrometheusUrl, settings_of


def run(prometheus: PrometheusUrl = None, config: ConfigFile = None, namespace: Namespace = None) -> None:
    """Run a cycle a minute and serve the results, until SIGTERM."""
    from forecaster.app.serve import serve

    raise SystemExit(serve(settings_of(config, prometheus, namespace)))
