"""Databases of the service: each test that asks for one runs on SQLite and on Postgres."""

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import URL

from ragcontract.service.database import Database, database_url
from ragcontract.service.migrate import migrate
from tests.needs import require
from tests.service.postgres import Cluster, running

KINDS = ("sqlite", "postgres")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    require("postgres")
    with running() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def template_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database as the migrations make it."""
    path = tmp_path_factory.mktemp("template") / "service.db"
    with open_database(database_url(str(path))) as database:
        migrate(database)
    return path


@pytest.fixture(scope="session")
def template_database(cluster: Cluster) -> Iterator[str]:
    """The name of a Postgres database as the migrations make it."""
    with cluster.new_database() as url:
        with open_database(url) as database:
            migrate(database)
        yield str(url.database)


@contextmanager
def open_database(url: URL) -> Iterator[Database]:
    """Open a database until the block ends."""
    database = Database(url)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def address(kind: str, request: pytest.FixtureRequest, folder: Path, *, template: bool = False) -> Iterator[URL]:
    """Give the address of a database of a kind: an empty one, or one that has the tables."""
    if kind == "sqlite":
        file = folder / "service.db"
        if template:
            shutil.copy(request.getfixturevalue("template_file"), file)
        yield database_url(str(file))
    else:
        name = request.getfixturevalue("template_database") if template else "template0"
        with request.getfixturevalue("cluster").new_database(name) as url:
            yield url


@contextmanager
def opened_database(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Database]:
    """Open a database of a kind that has the tables of the service, and nothing in them."""
    with address(kind, request, folder, template=True) as url, open_database(url) as database:
        yield database


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def empty(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    """The address of an empty database."""
    with address(kind, request, tmp_path) as url:
        yield url


@pytest.fixture
def migrated(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    """The address of a database with the tables of the service, and nothing in them."""
    with address(kind, request, tmp_path, template=True) as url:
        yield url


@pytest.fixture
def database(migrated: URL) -> Iterator[Database]:
    """A database with the tables of the service, and nothing in them."""
    with open_database(migrated) as database:
        yield database


@pytest.fixture
def free_port() -> int:
    """A port of this machine at which nobody answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
