"""Databases of the service: each test that asks for one runs on SQLite and on Postgres."""

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def address(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[URL]:
    """Give the address of an empty database of a kind."""
    if kind == "sqlite":
        yield database_url(str(folder / "service.db"))
    else:
        with request.getfixturevalue("cluster").new_database() as url:
            yield url


@contextmanager
def opened_database(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Database]:
    """Open a database of a kind that has the tables of the service, and nothing in them."""
    with address(kind, request, folder) as url:
        database = Database(url)
        database.write(metadata.create_all)
        yield database
        database.close()


@pytest.fixture(params=KINDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    """The address of an empty database."""
    with address(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables of the service, and nothing in them."""
    with opened_database(request.param, request, tmp_path) as database:
        yield database
