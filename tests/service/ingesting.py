"""Interactions of tests: a service with a project that takes them, and what the database has of them."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from ragcontract.service.database import Database
from ragcontract.service.projects_and_runs import add_project, project_id
from ragcontract.service.tables import candidates, interactions, tallies
from tests.service.askers import new_user
from tests.service.served import Served

SLUG = "docs"
PATH = f"/projects/{SLUG}/interactions"


class Ingesting(Served):
    """A service with a project, and keys of its application and of an administrator."""

    def __init__(self, database: Database, *, projects: Path | None = None) -> None:
        super().__init__(database, projects=projects)

        def job(connection: Connection) -> str:
            add_project(connection, SLUG, SLUG, 0)
            return new_user(connection, "root", "admin")

        self.admin = database.write(job)
        self.ingest = self.new_key("ingest")

    def send(self, *items: Mapping[str, Any], name: str = "interactions") -> Any:
        """Send interactions and return the answer."""
        return self.request("POST", PATH, key=self.ingest, json={name: [*items]})

    def stored(self, *items: Mapping[str, Any]) -> Any:
        """Send interactions that are stored, and return the JSON of the answer."""
        answer = self.send(*items)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def send_bytes(self, body: bytes, **headers: str) -> Any:
        """Send a body as it is."""
        return self.request(
            "POST", PATH, key=self.ingest, content=body, headers={"Content-Type": "application/json"} | headers
        )

    def delete(self, **params: str) -> Any:
        """Delete interactions and return the answer."""
        return self.request("DELETE", PATH, key=self.admin, params=params)

    def rows(self, table: Any = interactions) -> list[dict[str, Any]]:
        """Return the rows of a table, in the order in which they were stored."""
        with self.database.read() as connection:
            return [dict(row) for row in connection.execute(select(table).order_by(*table.primary_key)).mappings()]

    def questions(self) -> list[str]:
        """Return the questions of the candidates."""
        return [row["query"] for row in self.rows(candidates)]

    def tally(self) -> dict[str, int]:
        """Return what is counted, of all days together."""
        counted: dict[str, int] = {}
        for row in self.rows(tallies):
            counted[row["name"]] = counted.get(row["name"], 0) + row["number"]
        return counted

    def look_again(self) -> None:
        """Have what is known of projects looked up again, as it is after a second."""
        self.app.ingestion.settings.forget()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the database from storing anything until the block ends."""
        if self.database.file is None:
            with self.database.engine.begin() as connection:
                connection.exec_driver_sql("LOCK TABLE interactions")
                yield
            return
        with closing(sqlite3.connect(self.database.file, isolation_level=None, check_same_thread=False)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            yield

    @property
    def project(self) -> int:
        """The id of the project."""
        with self.database.read() as connection:
            number = project_id(connection, SLUG)
        assert number is not None
        return number


def mounted(folder: Path, text: str, golden: Sequence[Mapping[str, Any]] = ()) -> Path:
    """Write the folder of a project with this project.yml, and return the folder of the projects."""
    home = folder / "projects" / SLUG
    home.mkdir(parents=True, exist_ok=True)
    (home / "project.yml").write_text(text)
    if golden:
        (home / "golden.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in golden))
    return folder / "projects"
