"""Databases of the service: each test that asks for one runs on SQLite and on Postgres."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL

from ragcontract.service.database import Database, database_url
from ragcontract.service.tables import metadata
from tests.needs import require
from tests.service.postgres import Cluster, running

KINDS = ("sqlite", "postgres")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    require("postgres")
    with running() as cluster:
        yield cluster


@pytest.fixture(params=KINDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    """The address of an empty database."""
    if request.param == "sqlite":
        yield database_url(str(tmp_path / "service.db"))
    else:
        with request.getfixturevalue("cluster").new_database() as url:
            yield url


@pytest.fixture
def database(empty: URL) -> Iterator[Database]:
    """A database with the tables of the service, and nothing in them."""
    database = Database(empty)
    database.write(metadata.create_all)
    yield database
    database.close()
