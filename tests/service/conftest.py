"""What tests of the service begin with: databases, of which each test has SQLite and Postgres, and a recorded check."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import URL

from ragcontract.history.entry import NewEntry, decode
from ragcontract.history.folder import Folder
from ragcontract.service.database import Database, database_url
from ragcontract.service.migrate import migrate
from tests.builders import golden, run, write_jsonl
from tests.history.repository import without_ci
from tests.needs import require
from tests.process import rag_contract
from tests.service.postgres import Cluster, running
from tests.service.served import Served

KINDS = ("sqlite", "postgres")
HOSTILE = "<script>alert(1)</script> ' \u202e \U0001f600"  # tries to get out of wherever it is shown


@pytest.fixture(autouse=True)
def _takes_entries_of_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let services take the entries of tests, whose days are always the same and may be in the future."""
    monkeypatch.setattr("ragcontract.core.bounds.SERVICE_CLOCK_AHEAD", 86_400 * 1_000)


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


def name_of(url: URL) -> str:
    """Return what a user names a database."""
    return url.render_as_string(hide_password=False)


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
def served(database: Database) -> Iterator[Served]:
    """The service, as its clients see it."""
    with Served(database) as served:
        yield served


@pytest.fixture
def checked_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[NewEntry, bytes]:
    """The entry and the report of a check that two of three queries fail."""
    without_ci(monkeypatch)
    monkeypatch.chdir(tmp_path)
    names = [HOSTILE, "q1", "q2"]
    write_jsonl(Path("golden.jsonl"), [golden(name, name, query=HOSTILE, tags=["t1"]) for name in names])
    write_jsonl(Path("current_run.jsonl"), [run(name, "wrong" if name != "q2" else "q2") for name in names])
    Path("ragcontract.yml").write_text("minimums:\n  recall_at_k: 0.9\n")
    assert rag_contract("check", "--name", "docs", "--report-json-detail", "all").code == 1
    assert rag_contract("history", "add", "--history", "history").code == 0
    (path,) = Path("history/entries").rglob("*.json")
    entry = decode(path.read_bytes(), path.relative_to("history").as_posix())
    assert entry.results is not None
    results = Folder("history").results(entry.results.sha256)
    return NewEntry(entry=entry, content=path.read_bytes(), results=results), Path("report.json").read_bytes()
