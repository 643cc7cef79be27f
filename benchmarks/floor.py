"""Mode floor over many HPAs: `python -m benchmarks.floor [--workloads N] [--record]`.

HPAs as an API server lists them, watched without a network: the memory that stays, and seconds of CPU to look at all
of them and to plan the writes of one cycle. `record` writes the figures to benchmarks/results.
"""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from benchmarks.procfs import rss_mib
from benchmarks.record import record
from benchmarks.watch import Listing, hpa, listed
from forecaster.actuators.floor.autoscalers import listed_autoscaler
from forecaster.actuators.floor.plan import floor_plan
from forecaster.actuators.floor.values import FloorOffer
from forecaster.actuators.settings import FloorSettings
from forecaster.app.effects import watched_autoscalers
from forecaster.kube.client import decoder_of
from forecaster.kube.collection import ObjectPage
from forecaster.kube.objects import HorizontalPodAutoscaler
from forecaster.resources.neighbours import HPAS
from forecaster.sources.live import LiveCluster

if TYPE_CHECKING:
    from forecaster.actuators.limits import Memory

RULES = FloorSettings(enabled=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    text = "\n".join(["| | |", "| --- | ---: |", *rows(options.workloads)])
    print(text)
    if options.record:
        print(
            record("floor", "Mode floor", f"python -m benchmarks.floor --workloads {options.workloads} --record", text)
        )


def rows(count: int) -> list[str]:
    """Each figure as a row of a table."""
    cluster, begin = LiveCluster(), rss_mib()
    listed(HPAS, cluster.hpas, Listing(count, hpa), begin)
    watch_mib = rss_mib() - begin
    body = msgspec.json.encode({"metadata": {}, "items": [hpa(i) for i in range(count)]})
    began = time.process_time()
    autoscalers = [
        listed_autoscaler(page_item)
        for page_item in decoder_of(ObjectPage[HorizontalPodAutoscaler]).decode(body).items or ()
    ]
    listing = time.process_time() - began
    began = time.process_time()
    watched = watched_autoscalers(cluster)
    looking = time.process_time() - began
    assert watched is not None
    assert [hpa.target for hpa in watched] == [hpa.target for hpa in autoscalers]
    memory: Memory = {}
    offers = {hpa.target: FloorOffer(hpa.min_replicas + 1) for hpa in watched}
    seconds = []
    for minute in range(8):
        began = time.process_time()
        plan = floor_plan(watched, offers, lambda _: True, memory, datetime.now(UTC) + timedelta(minutes=minute), RULES)
        seconds.append(time.process_time() - began)
        memory = plan.memory
    return [
        f"| HPAs | {count:,} |",
        f"| kept of them by the watch, MiB | {watch_mib:.0f} |",
        f"| looked at as they are watched, seconds of CPU a cycle | {looking:.2f} |",
        f"| decoded where they are listed ({len(body) / 2**20:.0f} MiB), seconds of CPU a cycle | {listing:.2f} |",
        f"| the plan, all asking for more, seconds of CPU a cycle | {sorted(seconds)[4]:.2f} |",
        f"| changes of that cycle, before its limits | {len(plan.writes):,} |",
    ]


if __name__ == "__main__":
    main()
