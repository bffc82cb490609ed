"""The page that lists the runs of a project: what it is asked for, and what stands out."""

from datetime import timedelta

import pytest
from sqlalchemy import insert

from ragcontract.service.database import Database
from ragcontract.service.tables import projects, runs
from ragcontract.service.web.pages import run_list
from tests.history.entries import FIRST, RUN, new_entry
from tests.service.conftest import HOSTILE
from tests.service.served import Served
from tests.service.visiting import Page, Pages, assert_harmless


@pytest.fixture
def pages(served: Served) -> Pages:
    return Pages(served.client, served.key)


def sent(served: Served, verdicts: str, *, branch: str = "main", hours: float = 0, step: float = 24) -> list[int]:
    """Send a run for each letter, `p` for pass and `f` for fail, and return their ids, the oldest first."""
    numbers = []
    for place, letter in enumerate(verdicts):
        at = FIRST + timedelta(hours=hours + step * place)
        commit = f"{place:07x}aaaaa"
        source = {"commit": f"{commit:0<40}", "branch": branch, "run_id": RUN + place, "event": "push"}
        verdict = "pass" if letter == "p" else "fail"
        new = new_entry(
            at=at,
            commit=commit,
            run=RUN + place,
            source=source | {"run_id": RUN + len(branch) * 1_000 + place},
            verdict=verdict,
            summary=f"{branch} {place}",
        )
        numbers.append(served.add(new, default_branch=branch == "main"))
    return numbers


def listed(page: Page) -> list[int]:
    """Return the ids of the runs in the table."""
    return [*rows(page)]


FILTERS = {
    "": [3, 2, 1, 0],
    "?state=blocked": [3, 1],
    "?state=queued": [],
    "?branch=main": [3, 2, 1, 0],
    "?branch=+main+": [3, 2, 1, 0],
    "?branch=topic": [],
    "?commit=0000001": [1],
    "?commit=0000001AAAAA": [1],
    "?until=2026-11-23": [2, 1, 0],
    "?until=2026-11-20": [],
    "?until=2026-11-23&state=blocked&branch=main": [1],
    "?state=&branch=&commit=&until=": [3, 2, 1, 0],
}


@pytest.mark.parametrize(("query", "expected"), FILTERS.items())
def test_a_run_is_looked_for_by_state_branch_commit_and_day(
    query: str, expected: list[int], served: Served, pages: Pages
) -> None:
    numbers = sent(served, "pfpf")
    page = pages.get(f"/p/docs/runs{query}")
    assert listed(page) == [numbers[place] for place in expected]
    assert ("No run fits." in page.text) == (not expected)


WRONG = {
    "?state=odd": "There is no state 'odd'",
    "?commit=abc": "'abc' is no commit",
    "?commit='": '"\'" is no commit',
    "?until=tuesday": "'tuesday' is no day",
    "?until=9999-12-31": "'9999-12-31' is no day",
    "?cursor=x": "This address of a page of the list is damaged",
    "?cursor=": "This address of a page of the list is damaged",
}


@pytest.mark.parametrize(("query", "sentence"), WRONG.items())
def test_wrong_input_is_a_sentence_beside_the_form(query: str, sentence: str, served: Served, pages: Pages) -> None:
    sent(served, "p")
    page = pages.get(f"/p/docs/runs{query}", 422)
    assert sentence in page.text
    assert listed(page) == []
    name, _, value = query[1:].partition("=")
    if name in {"commit", "until"}:
        assert ("input", value) in [
            (tag, attributes.get("value")) for tag, attributes in page.elements if attributes.get("name") == name
        ]


def test_where_a_branch_turned_is_said_in_words(served: Served, pages: Pages) -> None:
    numbers = sent(served, "pffp")
    others = sent(served, "fp", branch="topic", hours=1)
    page = pages.get("/p/docs/runs")
    words = rows(page)
    assert [number for number, row in words.items() if "first failure" in row] == [numbers[1]]
    assert [number for number, row in words.items() if "passes again" in row] == [numbers[3], others[1]]
    only_failures = rows(pages.get("/p/docs/runs?state=blocked"))
    assert ["first failure" in only_failures[number] for number in numbers[1:3]] == [True, False]


def rows(page: Page) -> dict[int, str]:
    """Return the text of each row by the id of its run."""
    return {int(number): text for number, text in page.rows('id="run-').items()}


def test_many_runs_come_page_by_page_and_only_the_first_page_is_live(
    served: Served, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_list, "DEFAULT_LIMIT", 2)
    numbers = sent(served, "pfppf")
    path, seen = "/p/docs/runs?branch=main", list[int]()
    while path:
        page = pages.get(path)
        seen += listed(page)
        live = [attributes for _, attributes in page.elements if "data-live" in attributes]
        assert [(each["hx-get"], each["hx-trigger"], each["hx-select"]) for each in live] == (
            [("/p/docs/runs?branch=main", "every 8s", "#runs")] if "cursor" not in path else []
        )
        assert ("/p/docs/runs?branch=main" in page.links) == ("cursor" in path)
        path = next((link for link in page.links if "cursor=" in link), "")
    assert seen == numbers[::-1]


def test_a_run_that_has_no_verdict_is_listed_with_its_state(served: Served, pages: Pages) -> None:
    sent(served, "p")
    row = {"project_id": 1, "key": "x", "origin": "service", "state": "failed", "created_at": 1}
    number = served.database.write(
        lambda connection: connection.execute(insert(runs).values(row).returning(runs.c.id)).scalar_one()
    )
    assert "no verdict" in rows(pages.get("/p/docs/runs"))[number]
    assert listed(pages.get("/p/docs/runs?state=failed")) == [number]


def test_a_project_without_runs_says_so(served: Served, pages: Pages) -> None:
    add_project(served.database)
    page = pages.get("/p/empty/runs")
    assert "There is no run yet." in page.text


def add_project(database: Database) -> None:
    row = {"slug": "empty", "name": HOSTILE, "secret": "s", "created_at": 1}
    database.write(lambda connection: connection.execute(insert(projects).values(row)))


def test_what_senders_call_things_stays_text(served: Served, pages: Pages) -> None:
    source = {"commit": f"{'3f9c1a2b4d5e':0<40}", "branch": HOSTILE, "event": HOSTILE, "run_id": RUN}
    served.add(new_entry(summary=HOSTILE, source=source))
    add_project(served.database)
    for path in ("/p/docs/runs", "/p/empty/runs"):
        page = pages.get(path)
        assert_harmless(page)
        assert "<script>alert(1)</script>" in page.text
    (of_branch,) = [link for link in pages.get("/runs/1").links if "branch=" in link]
    assert listed(pages.get(of_branch)) == [1]


def test_the_key_of_another_project_finds_nothing(served: Served, pages: Pages) -> None:
    sent(served, "p")
    add_project(served.database)
    key = served.new_key("read", project="empty")
    assert "There is no such project" in pages.get("/p/docs/runs", 404, key).text
    assert "There is no run yet." in pages.get("/p/empty/runs", 200, key).text
