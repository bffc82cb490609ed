"""Limits on candidates and on the page of production."""

from collections.abc import Iterator
from contextlib import contextmanager

from ragcontract.core.errors import InputError
from ragcontract.service.database import DAY, now_ms
from ragcontract.service.known_contract import KnownContract
from ragcontract.service.production.candidate_rows import GoldenQuestions, golden_row, suggested_id
from ragcontract.service.production.interaction_list import interactions_before, sources_of
from tests.bounds.lab import Case, Cases, Lab
from tests.bounds.service_playground import filled
from tests.service.askers import new_user
from tests.service.production_rows import add_candidate_row, add_days, add_interaction_row, add_project_row
from tests.service.served import Served


@contextmanager
def served(lab: Lab) -> Iterator[Served]:
    """Serve a database that has a project."""
    database = filled(lab)
    add_project_row(database, "docs")
    with Served(database) as service:
        yield service
    database.close()


def page_of(service: Served, path: str) -> str:
    headers = {"Authorization": f"Bearer {service.key}", "Accept": "text/html"}
    return str(service.client.get(f"/p/docs/{path}", headers=headers).text)


def candidates_on_a_page(lab: Lab, number: int) -> bool:
    with served(lab) as service:
        for each in range(number):
            add_candidate_row(service.database, f"Question {each}?")
        page = page_of(service, "candidates")
    assert (page.count('class="candidate-card') == number) == ('rel="next"' not in page)
    return 'rel="next"' not in page


def unfolded_results(lab: Lab, number: int) -> bool:
    with served(lab) as service:
        add_candidate_row(service.database, "How?", results=[{"doc_id": f"d{each}"} for each in range(number)])
        key = service.database.write(lambda connection: new_user(connection, "ed", "editor"))
        headers = {"Authorization": f"Bearer {key}", "Accept": "text/html"}
        page = service.client.get("/p/docs/candidates", headers=headers).text
    assert page.count('name="relevant"') == number
    return "further result" not in page


def size_of_row(_lab: Lab, size: int) -> bool:
    empty = len('{"id":"how","query":"How?","relevant_doc_ids":[],"metadata":{"x":""}}')
    row = {"relevant_doc_ids": [], "metadata": {"x": "y" * (size - empty)}}
    try:
        golden_row(row, "How?", KnownContract(), GoldenQuestions())
    except InputError:
        return False
    return True


def size_of_download(lab: Lab, size: int) -> bool:
    with served(lab) as service:
        key = service.database.write(lambda connection: new_user(connection, "ed", "editor"))
        first, second = (add_candidate_row(service.database, f"{each}?") for each in "ab")
        rest = size - len('{"id":"a","query":"a?","relevant_doc_ids":[]}\n')
        rest -= len('{"id":"b","query":"b?","relevant_doc_ids":[],"metadata":{"x":""}}\n')
        for number, more in ((first, {}), (second, {"metadata": {"x": "y" * rest}})):
            body = {"decision": "accept", "row": {"relevant_doc_ids": [], **more}}
            assert service.request("POST", f"/candidates/{number}", key=key, json=body).status_code == 200
        lines = service.request("GET", "/projects/docs/candidates.jsonl").text.splitlines()
    return len(lines) == 2


def length_of_id(_lab: Lab, size: int) -> bool:
    return suggested_id("x" * (size - 2) + " y") == "x" * (size - 2) + "_y"


def searched_interactions(lab: Lab, number: int) -> bool:
    """Return whether the oldest one is found, of so many with a flag of which no other one has the source."""
    with served(lab) as service:
        now = now_ms()  # what is old is deleted
        for each in range(number):
            flags, source, asked_at = 1, "web" if each == 0 else "api", now - number + each
            add_interaction_row(service.database, f"{each}", asked_at=asked_at, flags=flags, source=source)
            add_interaction_row(service.database, f"web {each}", asked_at=asked_at, source="web")
        with service.database.read() as connection:
            rows = interactions_before(connection, 1, flag="error", source="web", limit=10).rows
    return [row["query"] for row in rows] == ["0"]


def sources_on_the_page(lab: Lab, number: int) -> bool:
    with served(lab) as service:
        for each in range(number):
            add_interaction_row(service.database, "How?", source=f"{each:03}")
        with service.database.read() as connection:
            return len(sources_of(connection, 1)) == number


def interactions_on_the_page(lab: Lab, number: int) -> bool:
    with served(lab) as service:
        for each in range(number):
            add_interaction_row(service.database, f"Question {each}?")
        page = page_of(service, "production")
    return page.count('class="interaction"') == number


def days_on_the_page(lab: Lab, number: int) -> bool:
    with served(lab) as service:
        add_days(service.database, "volume", [500.0] * number, last=now_ms() - DAY)
        page = page_of(service, "production")
    return f"{number} days as a table" in page


CASES: Cases = {
    "CANDIDATES_PAGE": Case(candidates_on_a_page),
    "CANDIDATE_RESULTS": Case(unfolded_results),
    "CANDIDATE_ROW": Case(size_of_row),
    "CANDIDATES_FILE": Case(size_of_download, small=1_000),
    "SUGGESTED_ID": Case(length_of_id),
    "SCANNED_INTERACTIONS": Case(searched_interactions, small=5),
    "INTERACTION_SOURCES": Case(sources_on_the_page),
    "INTERACTIONS_PAGE": Case(interactions_on_the_page),
    "MONITOR_DAYS": Case(days_on_the_page),
}
