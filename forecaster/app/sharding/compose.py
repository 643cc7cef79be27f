"""A cycle in shards, put together from settings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from forecaster.app.compose import prepare_process
from forecaster.app.sharding.cycle import ShardedCycle
from forecaster.app.sharding.executors import LocalExecutor

if TYPE_CHECKING:
    from contextlib import ExitStack

    from forecaster.app.sharding.executors import Executor
    from forecaster.app.sharding.learned import LearnedShards
    from forecaster.config.settings import Settings
    from forecaster.config.sharding import ShardingSettings
    from forecaster.cycle.run import Effects
    from forecaster.ports import Source

SHARD_TIME_SHARE = 2 / 3
"""Share of the interval that shards may use: the table, its record and writes to the cluster come after them."""


def sharded_cycle(
    settings: Settings, source: Source, effects: Effects, learned: LearnedShards, parts: ExitStack
) -> ShardedCycle:
    """The cycle of a fleet in shards; `parts` ends it.

    Raises:
        StoreError: a scheduler is named, and Dask is not installed.
    """
    prepare_process()
    executor = executor_of(settings.sharding)
    parts.callback(learned.close)
    parts.callback(executor.close)
    patience = settings.cycle.interval * SHARD_TIME_SHARE
    return ShardedCycle(settings, source, effects, executor, learned, time.perf_counter, patience)


def executor_of(settings: ShardingSettings) -> Executor:
    """Return the executor that runs shards.

    Raises:
        StoreError: a scheduler is named, and Dask is not installed.
    """
    if not settings.scheduler:
        return LocalExecutor()
    from forecaster.app.sharding import dask  # noqa: PLC0415  the extra `dask`

    return dask.executor(settings)
