"""Who may use which route. A route of the service without a row here fails the first test."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from litestar import Litestar
from litestar.routes import HTTPRoute
from litestar.testing import TestClient
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.history.entry import NewEntry
from ragcontract.service.database import Database
from ragcontract.service.web.app import routes
from tests.service.askers import FROM_OWN_PAGE, Asker, ask, askers, client_of

NOBODY: frozenset[str] = frozenset()
ADMIN = frozenset({"admin"})
EDITOR = frozenset({"editor", "admin"})
RECORD = frozenset({"record"})
INGEST = frozenset({"ingest"})
READ = frozenset({"viewer", "editor", "admin", "read"})
RUN = frozenset({"editor", "admin", "run"})
EVERYBODY_SIGNED_IN = READ | {"ingest", "record", "run"}
EVERYBODY: None = None
CONTENT = b"{}"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
JSON_BODY: Mapping[str, Any] = {"json": {}}


class Row(Struct, frozen=True, kw_only=True):
    """A route, an example of its path, and which roles and scopes it needs."""

    may: frozenset[str] | None
    path: str
    body: Mapping[str, Any] = {}
    is_page: bool = False  # which sends those who are not logged in to the login page
    project: str | None = None  # which the example is of
    lets: str = "let through"  # 404 where the example is of something that does not exist


ROWS = {
    "GET /api/v1/users": Row(may=ADMIN, path="/api/v1/users"),
    "POST /api/v1/users": Row(may=ADMIN, path="/api/v1/users", body=JSON_BODY),
    "PATCH /api/v1/users/{name:str}": Row(may=ADMIN, path="/api/v1/users/viewer", body=JSON_BODY),
    "POST /api/v1/users/{name:str}/link": Row(may=ADMIN, path="/api/v1/users/viewer/link"),
    "GET /api/v1/tokens": Row(may=ADMIN, path="/api/v1/tokens"),
    "POST /api/v1/tokens": Row(may=ADMIN, path="/api/v1/tokens", body=JSON_BODY),
    "DELETE /api/v1/tokens/{prefix:str}": Row(may=ADMIN, path="/api/v1/tokens/unknown0", lets="404"),
    "GET /api/v1/audit": Row(may=ADMIN, path="/api/v1/audit"),
    "GET /api/v1/projects/{slug:str}/metrics": Row(may=READ, path="/api/v1/projects/unknown/metrics", lets="404"),
    "GET /api/v1/runs/{number:int}/diff": Row(may=READ, path="/api/v1/runs/999/diff", lets="404"),
    "GET /api/v1/openapi.json": Row(may=EVERYBODY_SIGNED_IN, path="/api/v1/openapi.json"),
    "GET /api/v1/projects": Row(may=READ, path="/api/v1/projects"),
    "GET /api/v1/projects/{slug:str}": Row(may=READ, path="/api/v1/projects/docs", project="docs"),
    "GET /api/v1/projects/{slug:str}/runs": Row(may=READ, path="/api/v1/projects/docs/runs", project="docs"),
    "GET /api/v1/projects/{slug:str}/gate": Row(
        may=READ, path="/api/v1/projects/docs/gate?commit=3f9c1a2b4d5e", project="docs"
    ),
    "GET /api/v1/projects/{slug:str}/months": Row(may=READ, path="/api/v1/projects/docs/months", project="docs"),
    "GET /api/v1/projects/{slug:str}/entries": Row(
        may=READ, path="/api/v1/projects/docs/entries?month=2026-11", project="docs"
    ),
    "GET /api/v1/projects/{slug:str}/entries/contents": Row(
        may=READ, path="/api/v1/projects/docs/entries/contents?id={key}", project="docs"
    ),
    "POST /api/v1/projects/{slug:str}/entries": Row(
        may=RECORD, path="/api/v1/projects/docs/entries", body=JSON_BODY, project="docs"
    ),
    "GET /api/v1/blobs": Row(may=READ, path="/api/v1/blobs"),
    "GET /api/v1/blobs/{sha256:str}": Row(may=READ, path="/api/v1/blobs/{results}", project="docs"),
    "PUT /api/v1/blobs/{sha256:str}": Row(
        may=RECORD, path=f"/api/v1/blobs/{DIGEST}?kind=results", body={"content": CONTENT}
    ),
    "GET /api/v1/runs/{number:int}": Row(may=READ, path="/api/v1/runs/{number}", project="docs"),
    "GET /api/v1/runs/{number:int}/report.json": Row(
        may=READ, path="/api/v1/runs/{number}/report.json", project="docs"
    ),
    "GET /api/v1/runs/{number:int}/report.html": Row(
        may=READ, path="/api/v1/runs/{number}/report.html", project="docs"
    ),
    "GET /api/v1/runs/{number:int}/baseline.json": Row(
        may=READ, path="/api/v1/runs/{number}/baseline.json", project="docs"
    ),
    "POST /api/v1/projects/{slug:str}/runs": Row(
        may=RUN, path="/api/v1/projects/docs/runs", body=JSON_BODY, project="docs"
    ),
    "POST /api/v1/runs/{number:int}/cancel": Row(may=RUN, path="/api/v1/runs/{number}/cancel", project="docs"),
    "POST /p/{slug:str}/runs": Row(
        may=RUN, path="/p/docs/runs", body={"data": {"note": "why"}}, is_page=True, project="docs"
    ),
    "POST /runs/{number:int}/cancel": Row(may=RUN, path="/runs/{number}/cancel", is_page=True, project="docs"),
    "GET /healthz": Row(may=EVERYBODY, path="/healthz"),
    "GET /readyz": Row(may=EVERYBODY, path="/readyz"),
    "GET /metrics": Row(may=READ, path="/metrics"),
    "GET /login": Row(may=EVERYBODY, path="/login"),
    "POST /login": Row(may=EVERYBODY, path="/login", body={"data": {"next": ["/", "/"]}}),
    "POST /logout": Row(may=EVERYBODY_SIGNED_IN, path="/logout", is_page=True),
    "GET /": Row(may=READ, path="/", is_page=True),
    "GET /p/{slug:str}": Row(may=READ, path="/p/docs", is_page=True, project="docs"),
    "GET /p/{slug:str}/queries": Row(may=READ, path="/p/docs/queries", is_page=True, project="docs"),
    "GET /p/{slug:str}/query": Row(may=READ, path="/p/docs/query?id=q1", is_page=True, project="docs"),
    "GET /p/{slug:str}/runs": Row(may=READ, path="/p/docs/runs", is_page=True, project="docs"),
    "GET /runs/{number:int}": Row(may=READ, path="/runs/{number}", is_page=True, project="docs"),
    "GET /runs/{number:int}/compare/{other:str}": Row(
        may=READ, path="/runs/{number}/compare/{number}", is_page=True, project="docs"
    ),
    "POST /api/v1/projects/{slug:str}/playground": Row(
        may=EDITOR, path="/api/v1/projects/docs/playground", body={"json": {"query": "x"}}, project="docs"
    ),
    "POST /api/v1/projects/{slug:str}/interactions": Row(
        may=INGEST,
        path="/api/v1/projects/docs/interactions",
        body={"json": {"interactions": [{"query": "x"}]}},
        project="docs",
    ),
    "DELETE /api/v1/projects/{slug:str}/interactions": Row(
        may=ADMIN, path="/api/v1/projects/docs/interactions?id=x", project="docs"
    ),
    "GET /p/{slug:str}/playground": Row(may=EDITOR, path="/p/docs/playground", is_page=True, project="docs"),
    "POST /p/{slug:str}/playground": Row(
        may=EDITOR, path="/p/docs/playground", body={"data": {"query": "x"}}, is_page=True, project="docs"
    ),
    "POST /p/{slug:str}/playground/candidate": Row(
        may=EDITOR, path="/p/docs/playground/candidate", body={"data": {"number": "1"}}, is_page=True, lets="404"
    ),
    "GET /api/v1/projects/{slug:str}/candidates": Row(
        may=READ, path="/api/v1/projects/docs/candidates", project="docs"
    ),
    "GET /api/v1/projects/{slug:str}/candidates.jsonl": Row(
        may=READ, path="/api/v1/projects/docs/candidates.jsonl", project="docs"
    ),
    "POST /api/v1/candidates/{number:int}": Row(
        may=EDITOR, path="/api/v1/candidates/999", body={"json": {"decision": "reject"}}, lets="404"
    ),
    "GET /api/v1/projects/{slug:str}/interactions": Row(
        may=READ, path="/api/v1/projects/docs/interactions", project="docs"
    ),
    "GET /api/v1/projects/{slug:str}/monitors": Row(may=READ, path="/api/v1/projects/docs/monitors", project="docs"),
    "GET /p/{slug:str}/candidates": Row(may=READ, path="/p/docs/candidates", is_page=True, project="docs"),
    "POST /p/{slug:str}/candidates": Row(
        may=EDITOR,
        path="/p/docs/candidates",
        body={"data": {"number": "999", "decision": "reject"}},
        is_page=True,
        lets="404",
    ),
    "GET /p/{slug:str}/production": Row(may=READ, path="/p/docs/production", is_page=True, project="docs"),
    "POST /p/{slug:str}/production/level": Row(
        may=EDITOR,
        path="/p/docs/production/level",
        body={"data": {"monitor": "volume", "day": "0"}},
        is_page=True,
        lets="404",
    ),
    "GET /settings": Row(may=EVERYBODY_SIGNED_IN, path="/settings", is_page=True),
    "GET /settings/audit": Row(may=ADMIN, path="/settings/audit", is_page=True),
    "GET /settings/users": Row(may=ADMIN, path="/settings/users", is_page=True),
    "POST /settings/users": Row(may=ADMIN, path="/settings/users", body={"data": {"name": "Bad"}}, is_page=True),
    "POST /settings/users/change": Row(
        may=ADMIN, path="/settings/users/change", body={"data": {"name": "viewer", "role": "viewer"}}, is_page=True
    ),
    "POST /settings/users/link": Row(
        may=ADMIN, path="/settings/users/link", body={"data": {"name": "viewer"}}, is_page=True
    ),
    "GET /settings/keys": Row(may=ADMIN, path="/settings/keys", is_page=True),
    "POST /settings/keys": Row(may=ADMIN, path="/settings/keys", body={"data": {"name": "CI"}}, is_page=True),
    "GET /settings/keys/revoke": Row(may=ADMIN, path="/settings/keys/revoke?prefix=unknown0", is_page=True, lets="404"),
    "POST /settings/keys/revoke": Row(
        may=ADMIN, path="/settings/keys/revoke", body={"data": {"prefix": "unknown0"}}, is_page=True, lets="404"
    ),
    "GET /settings/alerts": Row(may=ADMIN, path="/settings/alerts", is_page=True),
    "POST /settings/alerts/test": Row(may=ADMIN, path="/settings/alerts/test", is_page=True),
    "GET /static/{name:str}": Row(may=EVERYBODY, path="/static/service.css"),
    "GET /api/v1/openapi": Row(may=NOBODY, path="/api/v1/openapi"),
    "GET /api/v1/openapi/openapi.json": Row(may=NOBODY, path="/api/v1/openapi/openapi.json"),
    "GET /api/v1/openapi/{path:str}": Row(may=NOBODY, path="/api/v1/openapi/x"),
}


def routes_of(app: Litestar) -> Iterator[str]:
    for route in app.routes:
        assert isinstance(route, HTTPRoute), route
        for method in route.methods - {"OPTIONS"}:
            yield f"{method} {route.path}"


def _plain(template: str) -> str:
    """Return the template of a path as OpenAPI writes it."""
    return re.sub(":[a-z]+}", "}", template)


def recorded(client: TestClient[Any], asker: Asker, new: NewEntry, report: bytes) -> dict[str, Any]:
    """Send a run with its report, and return what paths have of it."""
    sent = {}
    for kind, blob in (("results", new.results or b""), ("report", report)):
        sent[kind] = hashlib.sha256(blob).hexdigest()
        path = f"/api/v1/blobs/{sent[kind]}?kind={kind}"
        assert ask(client, "PUT", path, asker.headers, content=blob).status_code == 201
    path = f"/api/v1/projects/docs/entries?report={sent['report']}"
    answer = ask(client, "POST", path, {**asker.headers, "Content-Type": "application/json"}, content=new.content)
    assert answer.status_code == 201
    return {**sent, "number": answer.json()["id"], "key": new.entry.id}


def expected(row: Row, asker: Asker) -> str:
    """Return the class of the answer: its status, or `let through`."""
    if not asker.is_valid_key:
        return "401"
    if row.may == NOBODY:
        return "404"
    if row.may is EVERYBODY:
        return "let through"
    if asker.may is None:
        return "303" if row.is_page else "401"
    if asker.may not in row.may:
        return "403"
    return "404" if row.project and asker.project not in {None, row.project} else row.lets


def test_each_route_has_a_row() -> None:
    assert sorted(routes_of(routes())) == sorted(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_a_route_lets_through_whom_its_row_names(
    name: str, database: Database, checked_run: tuple[NewEntry, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "FAILED_LOGINS", 1_000)
    row = ROWS[name]
    everybody = database.write(askers)
    method, _, template = name.partition(" ")
    with client_of(database) as client:
        path = row.path.format(**recorded(client, everybody["record, docs"], *checked_run))
        schema = ask(client, "GET", "/api/v1/openapi.json", everybody["read, all"].headers).json()
        answers = {}
        for who, asker in everybody.items():
            answer = ask(client, method, path, {**FROM_OWN_PAGE, **asker.headers}, **row.body)
            assert answer.status_code < 500
            to_login = answer.headers.get("location", "").startswith("/login") and asker.may is None
            refused = answer.status_code in {401, 403, 404} or to_login
            answers[who] = str(answer.status_code) if refused else "let through"
            if refused and not to_login:
                assert answer.headers["content-type"] == "application/problem+json"
            assert "cache-control" in answer.headers
            assert "content-security-policy" in answer.headers
            if operation := schema["paths"].get(_plain(template), {}).get(method.lower()):
                assert str(answer.status_code) in operation["responses"]
    assert answers == {who: expected(row, asker) for who, asker in everybody.items()}


def test_the_description_has_every_route_of_the_api_with_its_problems(database: Database) -> None:
    with client_of(database) as client:
        reader = database.write(askers)["read, all"]
        schema = ask(client, "GET", "/api/v1/openapi.json", reader.headers).json()
    described_routes = {
        f"{method.upper()} {path}" for path, operations in schema["paths"].items() for method in operations
    }
    of_api = {
        _plain(name)
        for name, row in ROWS.items()
        if row.path.startswith(("/api/v1/", "/healthz", "/readyz", "/metrics")) and row.may != NOBODY
    }
    assert described_routes == of_api - {"GET /api/v1/openapi.json"}
    assert schema["openapi"].startswith("3.1")
    names = [each["operationId"] for operations in schema["paths"].values() for each in operations.values()]
    assert len(set(names)) == len(names)
    assert {"list_runs", "show_run", "gate"} <= {*names}  # what a generated client calls them
    for operations in schema["paths"].values():
        for operation in operations.values():
            assert operation["responses"].keys() >= {"400", "401", "403", "404", "413", "415", "422", "429", "503"}
            refused = operation["responses"]["403"]["content"]["application/problem+json"]["schema"]["$ref"]
            assert refused.rpartition("/")[2] in schema["components"]["schemas"]
