"""What Prometheus collects: text that it can read, which counts what was answered, and has nothing of clients."""

from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.exc import OperationalError

from ragcontract.service.accounts import Principal
from ragcontract.service.database import Database
from ragcontract.service.trends import Trends
from ragcontract.service.web.monitoring import Monitoring
from tests.history.trends import results_at, run_at
from tests.service.listening import until
from tests.service.served import Served

HOSTILE = "/private/path"


def samples(served: Served, *, key: str | None = None) -> dict[tuple[str, ...], float]:
    """Return the values by the name and the values of the labels."""
    answer = served.client.get("/metrics", headers={"Authorization": f"Bearer {key or served.key}"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def requests(found: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    name = "rag_contract_request_seconds_count"
    return {labels: value for (each, *rest), value in found.items() if each == name for labels in [tuple(rest)]}


def test_requests_are_counted_by_method_route_and_status(served: Served) -> None:
    served.get("/projects")
    served.get("/projects")
    assert served.status("/projects/none") == 404
    served.client.get("/healthz")
    for path in (HOSTILE, f"{HOSTILE}/2"):
        served.client.get(path)
    served.client.request("PURGE\u00e9", "/healthz")
    found = samples(served)
    assert requests(found) == {
        ("GET", "/api/v1/projects", "200"): 2,
        ("GET", "/api/v1/projects/{slug}", "404"): 1,
        ("GET", "/healthz", "200"): 1,
        ("unknown", "unknown", "404"): 2,
        ("unknown", "unknown", "405"): 1,
    }
    assert found["rag_contract_request_seconds_sum", "GET", "/healthz", "200"] > 0
    assert not [labels for labels in found if HOSTILE in "".join(labels)]


def test_each_application_counts_for_itself(database: Database) -> None:
    with Served(database) as first, Served(database) as second:
        first.client.get("/healthz")
        assert ("GET", "/healthz", "200") in requests(samples(first))
        assert ("GET", "/healthz", "200") not in requests(samples(second))


def test_runs_are_those_that_the_key_may_see(served: Served) -> None:
    results = results_at({"q1": 1})
    for number, contract, failed in ((0, "docs", []), (1, "docs", ["q1"]), (2, "other", [])):
        served.add(run_at(number, results, contract=contract, failed=failed))
    found = samples(served)
    assert found["rag_contract_runs", "completed"] == 2
    assert found["rag_contract_runs", "blocked"] == 1
    assert found["rag_contract_runs", "queued"] == 0
    of_project = samples(served, key=served.new_key("read", project="other"))
    assert (of_project["rag_contract_runs", "completed"], of_project["rag_contract_runs", "blocked"]) == (1, 0)


def test_the_database_and_the_process_are_measured(served: Served) -> None:
    before = samples(served)
    assert before["rag_contract_writes_waiting",] == 0
    assert before["process_resident_memory_bytes",] > 1 << 20
    results = b"".join(results_at({f"q{number}": 1}) for number in range(20_000))
    served.add(run_at(0, results))
    assert samples(served)["rag_contract_database_bytes",] > before["rag_contract_database_bytes",]


class Broken(Trends):
    """Trends whose database fails."""

    def __init__(self, error: Exception, **options: Any) -> None:
        super().__init__(self, **options)  # type: ignore[arg-type]
        self._error = error

    def read(self) -> Iterator[None]:
        raise self._error


@pytest.mark.parametrize("error", [OperationalError("", {}, ValueError()), ZeroDivisionError()])
def test_errors_in_the_background_are_counted(error: Exception, served: Served) -> None:
    assert samples(served)["rag_contract_task_errors_total", "trends"] == 0
    monitoring = Monitoring()
    trends = Broken(error, failed=monitoring.errors_of("trends"))
    trends.start()

    def counted() -> bool:
        with served.database.read() as connection:
            text = monitoring.text(served.database, connection, Principal(actor="user:ana"))
        return b'rag_contract_task_errors_total{task="trends"} 1.0' in text

    until(counted)
    trends.close()
