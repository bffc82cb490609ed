"""The pages of settings: who may do what, and the forms with which administrators change it."""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any

import pytest
from httpx import Response
from litestar.testing import TestClient
from sqlalchemy import Connection, select, update

from ragcontract.core import bounds
from ragcontract.service.accounts import ROLES, add_machine_key, revoke_key, update_user
from ragcontract.service.audit import record
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.tables import audit, projects, tokens, users
from tests.service.askers import (
    FROM_OWN_PAGE,
    HOST,
    ask,
    author,
    by_key,
    by_session,
    client_of,
    new_project,
    new_session,
    new_user,
)
from tests.service.conftest import HOSTILE

FORMS = {
    "/settings/users": {"name": "new", "role": "viewer"},
    "/settings/users/change": {"name": "viewer", "disabled": "yes"},
    "/settings/users/link": {"name": "viewer"},
    "/settings/keys": {"name": "CI", "scopes": "read"},
    "/settings/keys/revoke": {"prefix": "unknown0"},
}
PAGES = ("/settings/users", "/settings/keys", "/settings/keys/revoke?prefix=unknown0", "/settings/audit")


class Desk:
    """An administrator before a browser."""

    def __init__(self, client: TestClient[Any], database: Database) -> None:
        self.client, self.database = client, database
        key = database.write(lambda connection: new_user(connection, "root"))
        self.headers = by_session(database.write(lambda connection: new_session(connection, key)))

    def get(self, path: str) -> str:
        answer = ask(self.client, "GET", path, self.headers)
        assert answer.status_code == 200
        return answer.text

    def post(self, path: str, **fields: Any) -> Response:
        return ask(self.client, "POST", path, self.headers, data=fields)


@pytest.fixture
def desk(database: Database) -> Iterator[Desk]:
    with client_of(database) as client:
        yield Desk(client, database)


def words(html: str) -> str:
    """Return the text of a page, without its marks."""
    main = html.partition("<main")[2].partition(">")[2]
    assert "<script" not in main
    text = " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())
    return re.sub(r" (?=[,.:;])", "", text)


def secret_in(html: str, element: str) -> str:
    """Return the secret that a page shows once."""
    found = re.search(rf'<code id="{element}">([^<]+)</code>', html)
    assert found
    return unescape(found[1])


def alert(answer: Response) -> str:
    """Return the problem that a form shows beside it."""
    return words("<main>" + answer.text.partition('role="alert">')[2].partition("</div>")[0])


def everything(database: Database) -> str:
    """Return what the database has of users, keys and in the audit log."""
    with database.read() as connection:
        return str([connection.execute(select(table)).all() for table in (users, tokens, audit)])


def test_everybody_sees_the_own_role_and_only_administrators_see_who_has_which(database: Database) -> None:
    keys = database.write(lambda connection: {role: new_user(connection, f"user-{role}", role) for role in ROLES})
    with client_of(database) as client:
        for role, key in keys.items():
            text = words(ask(client, "GET", "/settings", by_key(key)).text)
            assert f"You are user-{role}. Your role is {role}: you may read all projects" in text
            assert f"{role} (you)" in text
            assert f"rc_{key.split('_')[1]}_… made " in text
            assert key not in text
            others = [name for name in ROLES if name != role and f"user-{name}" in text]
            assert others == (["viewer", "editor"] if role == "admin" else [])
            assert ("Users Keys Alerts Audit log" in text) == (role == "admin")


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_others_than_administrators_can_neither_see_nor_send_the_forms(role: str, database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana", role))
    headers = by_session(database.write(lambda connection: new_session(connection, key)), Accept="text/html")
    with client_of(database) as client:
        before = everything(database)
        answers = [ask(client, "GET", path, headers) for path in PAGES]
        answers += [ask(client, "POST", path, headers, data=fields) for path, fields in FORMS.items()]
        for answer in answers:
            assert answer.status_code == 403
            assert "Forbidden Your role or key may not do this If you need this" in words(answer.text)
        assert "<form" not in ask(client, "GET", "/settings", headers).text.partition("<main")[2]
        assert everything(database) == before


@pytest.mark.parametrize("path", FORMS)
def test_a_form_of_another_site_changes_nothing(path: str, desk: Desk) -> None:
    before = everything(desk.database)
    headers = {**desk.headers, "Sec-Fetch-Site": "cross-site"}
    assert ask(desk.client, "POST", path, headers, data=FORMS[path]).status_code == 403
    assert everything(desk.database) == before


def test_a_machine_sees_its_scopes(database: Database) -> None:
    def fill(connection: Connection) -> str:
        return add_machine_key(connection, "ci", ["record"], author(), project_id=new_project(connection, "docs")).text

    key = database.write(fill)
    with client_of(database) as client:
        text = words(ask(client, "GET", "/settings", by_key(key)).text)
    assert f"This is the key key: rc_{key.split('_')[1]} of a machine" not in text
    assert f"This is the key rc_{key.split('_')[1]} of a machine. It is for one project." in text
    assert "record in this key (send runs" in text
    assert "read (read projects" in text


@pytest.mark.parametrize("name", ["ana@example.com", "true", "123"])
def test_a_user_is_added_and_logs_in_with_the_link_that_is_shown_once(name: str, desk: Desk) -> None:
    answer = desk.post("/settings/users", name=f" {name} ", role="editor")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert f"Send this link to {name} now. It works once, within 15 minutes" in words(answer.text)
    link = secret_in(answer.text, "link")
    assert link.startswith(f"https://{HOST}/login?link=rc_")
    assert "Log in with this link" in ask(desk.client, "GET", link).text
    secret = link.rpartition("_")[2]
    for path in ("/settings", "/settings/users", "/settings/keys", "/settings/audit"):
        assert secret not in desk.get(path)
    assert secret not in everything(desk.database)
    page = words(desk.get("/settings/users"))
    assert "2 people may log in: 1 admin, 1 editor, 0 viewers." in page
    assert f"{name} editor added 20" in page


@pytest.mark.parametrize(
    ("fields", "status", "problem"),
    [
        ({"name": "root", "role": "editor"}, 409, "there is a user root already"),
        ({"name": "Ana", "role": "editor"}, 422, "Name: expected 1 to 100 lower-case letters"),
        ({"name": HOSTILE, "role": "editor"}, 422, "Name: expected 1 to 100 lower-case letters"),
        ({"name": "", "role": "editor"}, 422, "Name: expected 1 to 100 lower-case letters"),
        ({"name": "ana", "role": "owner"}, 422, "Role: expected viewer, editor, admin"),
    ],
)
def test_a_user_who_cannot_be_added_is_explained_and_what_was_typed_stays(
    fields: dict[str, str], status: int, problem: str, desk: Desk
) -> None:
    answer = desk.post("/settings/users", **fields)
    assert answer.status_code == status
    assert alert(answer).startswith(problem)
    typed = re.search(r'<input name="name" value="([^"]*)"', answer.text)
    assert typed
    assert unescape(typed[1]) == fields["name"]
    assert f'<option value="{fields["role"]}" selected>' in answer.text or fields["role"] == "owner"
    with desk.database.read() as connection:
        assert connection.execute(select(users.c.name)).scalars().all() == ["root"]


def test_the_role_of_a_user_is_changed_and_the_user_disabled_and_enabled(desk: Desk) -> None:
    desk.database.write(lambda connection: new_user(connection, "ana", "viewer"))
    for fields, state in (
        ({"role": "admin"}, ("admin", False)),
        ({"disabled": "yes"}, ("admin", True)),
        ({"disabled": "no"}, ("admin", False)),
    ):
        answer = desk.post("/settings/users/change", name="ana", **fields)
        assert (answer.status_code, answer.headers["location"]) == (303, "/settings/users")
        with desk.database.read() as connection:
            ana = connection.execute(select(users).where(users.c.name == "ana")).one()
        assert (ana.role, ana.disabled_at is not None) == state
        assert ("ana disabled since" in words(desk.get("/settings/users"))) == state[1]
        assert ("the user is disabled" in desk.get("/settings/keys")) == state[1]
    assert desk.post("/settings/users/change", name="ana", role="owner").status_code == 422
    assert desk.post("/settings/users/change", name="nobody", role="admin").status_code == 404


@pytest.mark.parametrize("fields", [{"disabled": "yes"}, {"role": "viewer"}])
def test_the_last_administrator_cannot_be_locked_out(fields: dict[str, str], desk: Desk) -> None:
    answer = desk.post("/settings/users/change", name="root", **fields)
    assert answer.status_code == 409
    assert alert(answer) == "root is the last administrator; make another user one first"
    assert "1 person may log in: 1 admin" in words(desk.get("/settings/users"))


def test_a_new_link_replaces_the_one_before(desk: Desk) -> None:
    desk.database.write(lambda connection: new_user(connection, "ana"))
    links = [secret_in(desk.post("/settings/users/link", name="ana").text, "link") for _ in range(2)]
    logins = [
        ask(desk.client, "POST", "/login", FROM_OWN_PAGE, data={"link": link.partition("=")[2]}) for link in links
    ]
    assert [login.status_code for login in logins] == [401, 200]
    assert desk.post("/settings/users/link", name="nobody").status_code == 404
    desk.database.write(lambda connection: update_user(connection, "ana", author(), disabled=True))
    answer = desk.post("/settings/users/link", name="ana")
    assert (answer.status_code, alert(answer)) == (409, "ana is disabled")


def test_a_key_of_a_machine_is_shown_once_with_what_ci_needs(desk: Desk) -> None:
    desk.database.write(lambda connection: new_project(connection, "docs"))
    answer = desk.post("/settings/keys", name=" CI of docs ", scopes=["record", "read"], project="docs", days="30")
    assert answer.status_code == 200
    key = secret_in(answer.text, "key")
    assert f"history: https://{HOST} baseline: history:last-pass" in words(answer.text)
    assert "RAG_CONTRACT_TOKEN: ${{ secrets.RAG_CONTRACT_TOKEN }}" in words(answer.text)
    assert ask(desk.client, "GET", "/", by_key(key)).status_code == 200
    for path in ("/settings", "/settings/users", "/settings/keys", "/settings/audit"):
        assert key.rpartition("_")[2] not in desk.get(path)
    assert key not in everything(desk.database)
    with desk.database.read() as connection:
        row = connection.execute(select(tokens).order_by(tokens.c.id.desc()).limit(1)).one()
    assert (row.name, row.scopes, row.expires_at - row.created_at) == ("CI of docs", "read record", 30 * DAY)
    page = words(desk.get("/settings/keys"))
    assert "2 keys are valid: 1 of machines, 1 of users." in page
    assert f"CI of docs rc_{row.prefix} a machine read, record docs 20" in page


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": ""}, "What it is for: expected 1 to 100 ASCII characters"),
        ({"name": HOSTILE}, "What it is for: expected 1 to 100 ASCII characters"),
        ({"scopes": []}, "What it may do: expected at least one of read, ingest, record, run"),
        ({"project": "nowhere"}, "Project: there is none with this slug"),
        ({"days": "0"}, f"Days: expected 1 to {bounds.KEY_DAYS:,}"),
        ({"days": "9" * 50}, f"Days: expected 1 to {bounds.KEY_DAYS:,}"),
        ({"days": "9" * 5_000}, "Days: "),
        ({"days": "soon"}, "Days: 'soon' is not a number of days"),
        ({"days": "-1"}, "Days: '-1' is not a number of days"),
        ({"days": "٣"}, "Days: '٣' is not a number of days"),
    ],
)
def test_a_key_that_cannot_be_made_is_explained_and_what_was_typed_stays(
    change: Mapping[str, Any], problem: str, desk: Desk
) -> None:
    fields = {"name": "CI", "scopes": ["run"], "project": "", "days": "7", **change}
    answer = desk.post("/settings/keys", **fields)
    assert answer.status_code == 422
    assert alert(answer).startswith(problem)
    typed = {name: re.search(rf'<input name="{name}" value="([^"]*)"', answer.text) for name in ("name", "days")}
    assert {name: found and unescape(found[1]) for name, found in typed.items()} == {
        name: fields[name] for name in typed
    }
    ticked = re.findall(r'value="(\w+)" checked', answer.text)
    assert ticked == fields["scopes"]
    assert "<details open>" in answer.text
    with desk.database.read() as connection:
        assert len(connection.execute(select(tokens)).all()) == 1


def test_a_scope_that_there_is_not_is_refused(desk: Desk) -> None:
    for scopes in ("admin", ["read", "link"]):
        assert desk.post("/settings/keys", name="CI", scopes=scopes).status_code == 422
    with desk.database.read() as connection:
        assert len(connection.execute(select(tokens)).all()) == 1


def test_a_key_is_revoked_after_a_question(desk: Desk) -> None:
    key = desk.database.write(lambda connection: add_machine_key(connection, "CI", ["read"], author()))
    path = f"/settings/keys/revoke?prefix={key.prefix}"
    assert path in desk.get("/settings/keys")
    assert "What uses this key can no longer reach the service then." in words(desk.get(path))
    assert ask(desk.client, "GET", "/", by_key(key.text)).status_code == 200
    answer = desk.post("/settings/keys/revoke", prefix=key.prefix)
    assert (answer.status_code, answer.headers["location"]) == (303, "/settings/keys")
    assert ask(desk.client, "GET", "/", by_key(key.text)).status_code == 401
    page = desk.get("/settings/keys")
    assert "revoked 20" in words(page)
    assert path not in page
    assert "revoked a key" in words(desk.get("/settings/audit"))
    for method, data in (("GET", None), ("POST", {"prefix": "unknown0"})):
        answer = ask(desk.client, method, "/settings/keys/revoke?prefix=unknown0", desk.headers, data=data)
        assert answer.status_code == 404


def test_with_the_key_of_a_person_it_is_said_that_the_person_is_logged_out(desk: Desk) -> None:
    key = desk.database.write(lambda connection: new_user(connection, "ana"))
    page = desk.get(f"/settings/keys/revoke?prefix={key.split('_')[1]}")
    assert "The key of ana is no longer valid then, and the user is logged out." in words(page)


def test_only_valid_keys_are_counted(desk: Desk) -> None:
    def fill(connection: Connection) -> None:
        add_machine_key(connection, "expired", ["read"], author(now_ms() - 2 * DAY), days=1)
        revoke_key(connection, add_machine_key(connection, "revoked", ["read"], author()).prefix, author())
        new_user(connection, "ana")
        update_user(connection, "ana", author(), disabled=True)

    desk.database.write(fill)
    page = words(desk.get("/settings/keys"))
    assert "1 key is valid: 0 of machines, 1 of users." in page
    assert "expired 20" in page


@pytest.mark.parametrize("path", ["/settings/users", "/settings/keys", "/settings/audit"])
def test_lists_go_on_with_a_link(path: str, desk: Desk) -> None:
    def fill(connection: Connection) -> None:
        for number in range(60):
            new_user(connection, f"user{number:02}x", "viewer")

    desk.database.write(fill)
    names: list[str] = []
    following: str | None = path
    while following:
        page = desk.get(following)
        listed = words(page)
        names += re.findall(r"user\d\dx|root", listed.partition("All")[2] if path != "/settings/audit" else listed)
        link = re.search(rf'<a href="({path}\?cursor=[^"]+)" rel="next">', page)
        following = link and unescape(link[1])
    assert [*dict.fromkeys(names)] == [*(f"user{number:02}x" for number in reversed(range(60))), "root"] or (
        path == "/settings/audit" and {*names} >= {f"user{number:02}x" for number in range(60)}
    )
    assert ask(desk.client, "GET", f"{path}?cursor=x", desk.headers).status_code == 422


def test_the_audit_log_is_read_in_words_and_shows_hostile_text_as_text(desk: Desk) -> None:
    desk.database.write(lambda connection: record(connection, author(), "user.role", HOSTILE, HOSTILE))
    text = words(desk.get("/settings/audit"))
    assert "a test changed a role <script>alert(1)</script> ' \\u202e" in text
    assert "root logged in with a key" in text


def test_a_hostile_project_is_offered_as_text(desk: Desk) -> None:
    def fill(connection: Connection) -> None:
        number = new_project(connection, "docs")
        connection.execute(update(projects).where(projects.c.id == number).values(name=HOSTILE))

    desk.database.write(fill)
    page = desk.get("/settings/keys")
    assert "<script>alert(1)</script> ' \\u202e" in words(page)
    assert '<option value="docs">' in page
