from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from tests.support import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_numbers = count()


class Programs(NamedTuple):
    """PostgreSQL's server programs, and the user that may run them."""

    place: Path
    owner: str


@pytest.fixture(scope="session")
def postgres_programs() -> Programs:
    place, owner = postgres.binaries(), postgres.user()
    if place is None:
        pytest.skip("no PostgreSQL: install the package `postgresql`, or name its bin directory in POSTGRES_BIN")
    if owner is None:
        pytest.skip("PostgreSQL refuses root, and there is no user `postgres` to run it")
    return Programs(place, owner)


@pytest.fixture(scope="session")
def postgres_server(postgres_programs: Programs) -> Iterator[str]:
    with postgres.server(*postgres_programs) as address:
        yield address


@pytest.fixture
def postgres_address(postgres_server: str) -> str:
    """A database of one's own."""
    name = f"ledger{next(_numbers)}"
    engine = create_engine(postgres_server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return make_url(postgres_server).set(database=name).render_as_string(hide_password=False)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each kind of database in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    address: str = request.getfixturevalue("postgres_address")
    return address
