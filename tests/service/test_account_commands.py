"""``service user`` and ``service token``: the first accounts, on the command line."""

from pathlib import Path

import pytest
from sqlalchemy import URL, select

from ragcontract.core import bounds
from ragcontract.history.entry import folder_of
from ragcontract.service.database import Database
from ragcontract.service.tables import audit, projects
from tests.process import Ended, rag_contract
from tests.service.askers import FROM_OWN_PAGE, ask, by_key, client_of
from tests.service.conftest import name_of


def service(url: URL, *argv: str) -> Ended:
    return rag_contract("service", *argv, "--db", name_of(url))


def test_a_user_is_added_and_logs_in_with_the_link_that_is_printed(migrated: URL, database: Database) -> None:
    added = service(migrated, "user", "add", "ana", "--role", "editor", "--url", "https://rag.example/")
    assert (added.code, added.out.count("\n")) == (0, 1)
    address, _, link = added.out.strip().partition("?link=")
    assert address == "https://rag.example/login"
    assert "works once, within 15 minutes" in added.err
    again = service(migrated, "user", "link", "ana").out.strip().partition("?link=")[2]
    with client_of(database) as client:
        answers = [ask(client, "POST", "/login", FROM_OWN_PAGE, data={"link": each}) for each in (link, again)]
    assert [answer.status_code for answer in answers] == [401, 200]
    with database.read() as connection:
        assert connection.execute(select(audit.c.actor)).scalars().first() == "command line"


@pytest.mark.parametrize("contract", ["docs", "My Docs"])
def test_a_key_is_printed_and_its_project_created(contract: str, migrated: URL, database: Database) -> None:
    argv = ("token", "add", "ci", "--scope", "record", "--scope", "read", "--project", contract, "--expires", "1")
    first, second = service(migrated, *argv), service(migrated, *argv)
    assert [ended.code for ended in (first, second)] == [0, 0]
    assert (first.err, second.err) == (f"created project {folder_of(contract)}\n", "")
    with database.read() as connection:
        row = connection.execute(select(projects)).one()
    assert (row.slug, row.name) == (folder_of(contract), contract)
    assert len(row.secret) == 64
    with client_of(database) as client:
        assert ask(client, "GET", "/", by_key(second.out.strip())).status_code == 200


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (("user", "add", "Ana", "--role", "viewer"), "name: expected"),
        (("user", "add", "ana", "--role", "owner"), "'owner' is not one of"),
        (("user", "link", "nobody"), "there is no user nobody"),
        (("user", "link", "ana", "--url", "rag.example"), "'rag.example' is not an address such as https://"),
        (("user", "add", "ana"), "Missing option '--role'. Choose from:\n  viewer,"),
        (("token", "add", "ci"), "Missing option '--scope'"),
        (("token", "add", "ci", "--scope", "link"), "'link' is not one of"),
        (("token", "add", "", "--scope", "read"), "name: expected"),
        (("token", "add", "ci", "--scope", "read", "--expires", str(bounds.KEY_DAYS + 1)), "'--expires'"),
    ],
)
@pytest.mark.usefixtures("database")
def test_what_is_wrong_is_said(argv: tuple[str, ...], problem: str, migrated: URL) -> None:
    ended = service(migrated, *argv)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err


@pytest.mark.usefixtures("database")
def test_a_user_is_added_once(migrated: URL) -> None:
    first, second = (service(migrated, "user", "add", "ana", "--role", "admin") for _ in range(2))
    assert (first.code, second.code) == (0, 2)
    assert "there is a user ana already" in second.err


@pytest.mark.parametrize(
    "argv",
    [("user", "add", "ana", "--role", "admin"), ("user", "link", "ana"), ("token", "add", "ci", "--scope", "read")],
)
def test_an_account_in_a_database_that_nobody_serves_is_refused(
    argv: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # not the folder in which it is served
    ended = rag_contract("service", *argv)
    assert (ended.code, ended.out) == (2, "")
    assert "--db service.db: there is no such file; name the one that is served" in ended.err
    assert not list(tmp_path.iterdir())
