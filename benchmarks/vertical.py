"""Requests and limits replayed over recorded and made-up containers: `python -m benchmarks.vertical`.

Prints the frontier of the VPA at several margins, KRR and ours, writes it into a dated file of benchmarks/results/ and
draws the picture beside it. `--speed` measures how long one core sizes 10,000 workloads of two containers instead.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.bench.sizes import recorded
from benchmarks.made_up_memory import synthetic_memory, weekly_peak
from benchmarks.record import record, result_path
from benchmarks.size_frontier import size_frontier
from benchmarks.vertical_picture import drawn
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.replay.size_replay import STEPS_A_DAY
from forecaster.replay.sizers import SizeOutcome, size_outcomes
from forecaster.vertical.recommenders.vpa import VpaPanel
from forecaster.vertical.sizing.cpu import cpu_sizes
from forecaster.vertical.sizing.memory import memory_sizes
from forecaster.vertical.sizing.panel import ContainerPanel

HEAD = (
    "| recommender | setting | slack | of total | over limit | time over request | changes |",
    "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speed", action="store_true", help="measure time instead")
    if parser.parse_args().speed:
        speed()
        return
    groups = {
        "Memory, recorded": recorded("memory"),
        "Memory, made up": [synthetic_memory()],
        "CPU, recorded": recorded("cpu"),
    }
    by_group = {name: size_outcomes(loads, size_frontier(loads[0].resource)) for name, loads in groups.items()}
    by_group["Memory, a peak on Mondays"] = size_outcomes([weekly_peak()], size_frontier("memory"))
    text = "\n\n".join(f"### {name}\n\n{table(rows)}" for name, rows in by_group.items())
    print(text)
    picture = result_path("sizes", ".svg")
    picture.write_text(drawn(by_group))
    figure = f"![Slack against mishaps]({picture.name})"
    record("sizes", "Requests and limits", "python -m benchmarks.vertical", f"{figure}\n\n{text}")


def table(rows: list[SizeOutcome]) -> str:
    return "\n".join([*HEAD, *map(_row, rows)])


def _row(outcome: SizeOutcome) -> str:
    s = outcome.summary
    cells = (
        f"{s.slack:.2f}",
        f"{s.slack_of_total:.2f}",
        f"{s.over_limit}",
        f"{s.over_request_share * 100:.2f} %",
        s.changes,
    )
    return f"| {outcome.family} | {outcome.setting} | {' | '.join(map(str, cells))} |"


def speed(containers: int = 20_000, chunk: int = 2_000, days: int = 14) -> None:
    """CPU seconds of one core for 10,000 workloads of two containers, from raw five-minute points."""
    rng = np.random.default_rng(1)
    cpu = rng.gamma(2, 0.2, (chunk, days * STEPS_A_DAY)).astype(np.float32)
    memory = rng.gamma(9, 1e8, (chunk, days * STEPS_A_DAY)).astype(np.float32)
    unknown = np.full(chunk, np.nan)
    like = rng.uniform(0.1, 1.0, (chunk, days))
    usage = ContainerPanel(
        *(cpu, memory, STEPS_A_DAY, *[unknown] * 4, np.zeros(chunk)), growth=np.ones(chunk), likeness=like
    )
    begin = time.process_time()
    for _ in range(containers // chunk):
        cpu_sizes(usage, VerticalPolicy())
        memory_sizes(usage, VerticalPolicy())
    print(f"ours: {time.process_time() - begin:.2f} s for {containers} containers, {days} days at 5 min")
    eight = 8 * STEPS_A_DAY
    at = 1_700_006_400 + np.arange(eight) * 300
    begin = time.process_time()
    panel = VpaPanel(containers)
    for _ in range(containers // chunk):
        VpaPanel(chunk).add_cpu(cpu[:, -eight:].astype(float), at)
    whole = np.tile(memory[:, -eight:].T, (1, containers // chunk))
    for column, instant in enumerate(at.tolist()):
        panel.add_memory(whole[column].astype(float), instant)
    panel.add_cpu(np.full((containers, 2), 0.1), at[:2])
    panel.recommend()
    print(f"VPA: {time.process_time() - begin:.2f} s for {containers} containers, 8 days at 5 min")


if __name__ == "__main__":
    main()
