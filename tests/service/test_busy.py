"""While another program holds the database, as many writes wait as may; more are refused, and others still read."""

import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from ragcontract.core import bounds
from ragcontract.service.database import Database, database_url
from ragcontract.service.migrate import migrate
from tests.service.running import running

WRITES = 2 * bounds.SERVICE_WRITES_WAITING


def test_writes_wait_for_the_database_and_reads_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SERVICE_DATABASE_WAIT", 600)
    monkeypatch.setattr(bounds, "REQUESTS_A_SECOND", 1_000)
    database = Database(database_url(str(tmp_path / "service.db")))
    migrate(database)
    holder = sqlite3.connect(tmp_path / "service.db", isolation_level=None)
    with (
        running(database) as service,
        httpx.Client(
            base_url=f"{service.url}/api/v1",
            headers={"Authorization": f"Bearer {service.key}"},
            limits=httpx.Limits(max_connections=None),
            timeout=600,
        ) as client,
        ThreadPoolExecutor(WRITES) as pool,
    ):

        def put(number: int) -> tuple[int, str | None]:
            body = b"%d" % number
            answer = client.put(f"/blobs/{sha256(body).hexdigest()}", params={"kind": "results"}, content=body)
            return answer.status_code, answer.headers.get("retry-after")

        holder.execute("BEGIN IMMEDIATE")
        sent = [pool.submit(put, number) for number in range(WRITES)]
        while sum(each.done() for each in sent) < bounds.SERVICE_WRITES_WAITING - 1:  # those that are refused
            pass
        assert client.get("/projects").status_code == 200
        holder.execute("ROLLBACK")
        answers = Counter(each.result() for each in sent)
    assert set(answers) == {(201, None), (503, "1")}
    # The writer holds another one, unless all were sent before it took the first.
    assert answers[201, None] - bounds.SERVICE_WRITES_WAITING in {0, 1}
    holder.close()
    database.close()
