"""The main job on recorded load: the service's own code against an embedded Prometheus, with a fast clock.

Beside it plays the plain HPA on the same demand. Nothing here decides; what is simulated is in `forecaster.replay`.
"""

from __future__ import annotations


def run_demo(*, once: bool, as_json: bool) -> None:
    """One cycle, or half a day of them and what came of it, on standard output.

    Raises:
        KeyboardInterrupt: Ctrl-C, with the terminal as it was and the endpoint stopped.
    """
    from forecaster.report.demo import show_one_cycle, show_play  # noqa: PLC0415  `--help` answers without numpy

    if once:
        show_one_cycle(as_json=as_json)
    else:
        show_play(as_json=as_json)
