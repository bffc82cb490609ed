"""The service as its clients see it: requests with keys, and what they sent."""

import hashlib
from pathlib import Path
from typing import Any, Self

from litestar.testing import TestClient
from sqlalchemy import Connection, select

from ragcontract.history.entry import NewEntry, folder_of
from ragcontract.service.accounts import create_key
from ragcontract.service.database import Database
from ragcontract.service.tables import projects
from ragcontract.service.web.app import Application, Settings

API = "/api/v1"


class Served:
    """A running service, and requests to it with a key that may read and record everything."""

    def __init__(self, database: Database, *, projects: Path | None = None, workers: int = 0) -> None:
        """Serve a database, with the mounted projects of a folder if one is named."""
        self.database = database
        settings = Settings(allowed_hosts=("testserver.local",), projects=projects, workers=workers)
        self.app = Application(database, settings)
        self.client = TestClient(self.app, raise_server_exceptions=False)
        self.key = self.new_key("read", "record")

    def __enter__(self) -> Self:
        self.client.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.client.__exit__(None, None, None)

    def new_key(self, *scopes: str, project: str | None = None) -> str:
        """Return a new key of a machine, for one project if one is named."""

        def job(connection: Connection) -> str:
            of = select(projects.c.id).where(projects.c.slug == project)
            number = connection.execute(of).scalar_one() if project else None
            return create_key(connection, name="ci", now=0, scopes=scopes, project_id=number).text

        return self.database.write(job)

    def request(self, method: str, path: str, *, key: str | None = None, **options: Any) -> Any:
        """Return the answer to a request."""
        headers = {"Authorization": f"Bearer {key or self.key}"} | options.pop("headers", {})
        return self.client.request(method, f"{API}{path}", headers=headers, **options)

    def get(self, path: str, *, key: str | None = None, **params: Any) -> Any:
        """Return the JSON of an answer that is as it should be."""
        answer = self.request("GET", path, key=key, params=params or None)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def status(self, path: str, *, key: str | None = None, **params: Any) -> int:
        """Return the status of an answer; one that failed is a problem of RFC 9457 with this status."""
        answer = self.request("GET", path, key=key, params=params or None)
        return checked(answer)

    def send_blob(self, data: bytes, kind: str = "results", *, key: str | None = None) -> str:
        """Send a blob and return its digest."""
        digest = hashlib.sha256(data).hexdigest()
        answer = self.request("PUT", f"/blobs/{digest}", key=key, params={"kind": kind}, content=data)
        assert answer.status_code in {200, 201}, answer.text
        return digest

    def post(self, new: NewEntry, *, slug: str | None = None, key: str | None = None, **params: Any) -> Any:
        """Send an entry, whose result set was sent before, and return the answer."""
        return self.request(
            "POST",
            f"/projects/{slug or folder_of(new.entry.contract)}/entries",
            key=key,
            params=params,
            content=new.content,
            headers={"Content-Type": "application/json"},
        )

    def add(self, new: NewEntry, *, key: str | None = None, **params: Any) -> int:
        """Send an entry with its result set, and return the id of its run."""
        if new.results is not None:
            self.send_blob(new.results, key=key)
        answer = self.post(new, key=key, **params)
        assert answer.status_code in {200, 201}, answer.text
        number = answer.json()["id"]
        assert isinstance(number, int)
        return number


def checked(answer: Any) -> int:
    """Return the status of an answer; one that failed must be a problem of RFC 9457 with this status."""
    status = answer.status_code
    assert isinstance(status, int)
    if status >= 400:
        assert answer.headers["content-type"].partition(";")[0] == "application/problem+json", answer.text
        assert answer.json()["status"] == status
    return status
