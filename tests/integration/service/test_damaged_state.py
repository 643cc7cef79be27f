"""Whatever happens to the files of the state directory, a restart decides by what it can still believe, and says so."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.builders import NOON, after
from tests.support.composed import composed, published, recorded_cluster, tick

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.composed import Cluster

SEEDS = (*range(12), 104)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Path]]:
    """A cluster, and the state of a service that ran there and was stopped: all that it ever writes."""
    directory = tmp_path_factory.mktemp("damaged") / "state"
    with recorded_cluster() as cluster:
        with composed(cluster, directory) as service:
            for minute in range(3):
                tick(service, after(minute))
            for entry in service.persisted:
                entry.part.save()
        yield cluster, directory


def damaged(content: bytes, luck: random.Random) -> bytes:
    """Damage a file: cut it short, write other bytes in it or bytes of another file, or empty it."""
    if not content:
        return luck.randbytes(100)
    place = luck.randrange(len(content))
    return luck.choice(
        [
            content[:place],
            content[:place] + luck.randbytes(8) + content[place + 8 :],
            content[:place] + luck.randbytes(2000),
            luck.randbytes(300),
            b"",
            content + content[:place],
        ]
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restart_with_damaged_files_publishes_counts_that_the_load_asks_for(
    story: tuple[Cluster, Path], seed: int, tmp_path: Path
) -> None:
    """Two files, twelve ways: never a 0, never a crash, and by the second cycle all workloads are decided again."""
    cluster, before = story
    directory = tmp_path / "state"
    shutil.copytree(before, directory)
    luck = random.Random(seed)  # noqa: S311  no secret
    files = sorted(file for file in directory.rglob("*") if file.is_file())
    for file in luck.sample(files, 2):
        file.write_bytes(damaged(file.read_bytes(), luck))
    with composed(cluster, directory) as service:
        for minute in (4, 5):
            tick(service, after(minute))
        assert service.report is not None
        table = published(directory)
        counts = {entry.name: table.view(entry).replicas for entry in table.entries}
    assert table.meta.published_at > NOON
    assert {"web", "cart"} == set(counts)
    for name, decided in counts.items():
        assert decided.recommended is not None, (name, decided, service.report.failures)
        assert 3 <= decided.recommended <= 8, (name, decided)
