"""Measure the cost of writing forecasts: `python -m benchmarks.remote_write [--workloads N]`.

Samples, protocol buffers and Snappy for one table; sending is the network's. One line per setting of `quantiles`.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice

import cramjam

from benchmarks.serving import recommendation
from forecaster.domain.policy import Policy
from forecaster.publish.publisher import OfferedCycle, offered_cycle
from forecaster.publish.remote_write import ForecastInstants, samples_of, write_request
from forecaster.publish.settings import RemoteWriteSettings
from tests.support.decided_records import decided_fleet

MIB = 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    rows = [recommendation(i) for i in range(parser.parse_args().workloads)]
    policies = [Policy(mode="publish")] * len(rows)
    cycle = offered_cycle(rows[0].at, decided_fleet(rows), policies)
    for quantiles in ("policy", "all"):
        settings = RemoteWriteSettings.model_validate({"quantiles": quantiles})
        print(f"{quantiles}, {len(rows)} workloads x 3 signals: {written(cycle, settings)}")


def written(cycle: OfferedCycle, settings: RemoteWriteSettings) -> str:
    begin, samples = time.process_time(), samples_of(cycle, settings, ForecastInstants())
    series = plain = packed = 0
    while batch := list(islice(samples, settings.series_per_request)):
        body = write_request(batch)
        series, plain = series + len(batch), plain + len(body)
        packed += len(bytes(cramjam.snappy.compress_raw(body)))
    took = time.process_time() - begin
    return f"{series} series, {took:.2f} s CPU, {plain / MIB:.1f} MiB, {packed / MIB:.1f} MiB packed"


if __name__ == "__main__":
    main()
