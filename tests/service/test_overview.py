"""The first page: which projects are broken, since when, how often their runs passed, and what it shows to whom."""

import re
from collections.abc import Callable, Mapping
from html import unescape
from typing import Any

import msgspec
import pytest
from litestar.testing import TestClient
from sqlalchemy import Connection, event, update

from ragcontract.core import bounds
from ragcontract.service.accounts import Principal
from ragcontract.service.database import DAY, Database
from ragcontract.service.project_states import WEEK, Counts, ProjectState, States, states_of
from ragcontract.service.tables import projects, runs, trends
from ragcontract.service.trends import MetricChange, MetricTrend, Trend
from tests.browser import Browser
from tests.service.askers import ask, askers, by_key, by_session, client_of, new_project, new_session, new_user
from tests.service.conftest import HOSTILE
from tests.service.running import running

NOW = 1_800_000_000_000
ADMIN = Principal(actor="user:root", role="admin")


def add_run(connection: Connection, project: int, at: int = NOW, verdict: str | None = "pass", **more: Any) -> int:
    """Add a run of the branch main and return its id."""
    row = {
        "project_id": project,
        "key": f"{at}-{more}-{verdict}",
        "origin": "ci",
        "state": {"pass": "completed", "fail": "blocked"}.get(verdict or "", "running"),
        "created_at": at,
        "commit_sha": f"{at % 10_000_000:07}" + "a" * 33,
        "branch": "main",
        "verdict": verdict,
        "summary": f"summary of {verdict}",
        **more,
    }
    number: int = connection.execute(runs.insert().values(row).returning(runs.c.id)).scalar_one()
    return number


def add_project(connection: Connection, slug: str, name: str = "", branch: str | None = "main") -> int:
    number = new_project(connection, slug)
    connection.execute(update(projects).where(projects.c.id == number).values(name=name, branch=branch))
    return number


def states(database: Database, principal: Principal = ADMIN) -> States:
    with database.read() as connection:
        return states_of(connection, principal, NOW)


def only(database: Database) -> ProjectState:
    (state,) = states(database).shown
    return state


def page(client: TestClient[Any], headers: Mapping[str, str]) -> str:
    """Return the text of the first page, without its marks."""
    answer = ask(client, "GET", "/", headers)
    assert answer.status_code == 200
    main = answer.text.partition("<main")[2].partition("</main>")[0].partition(">")[2]
    assert "<script" not in main
    words = " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())
    return re.sub(r" (?=[,.])", "", words)


def first_page(database: Database, fill: Callable[[Connection], object]) -> str:
    database.write(fill)
    key = database.write(lambda connection: new_user(connection, "root"))
    with client_of(database) as client:
        return page(client, by_key(key))


def test_the_first_sentence_names_what_is_broken(database: Database) -> None:
    def fill(connection: Connection) -> None:
        for slug, name, verdict in (("b", "zebra", "fail"), ("c", "Apple", "fail"), ("d", "middle", "pass")):
            add_run(connection, add_project(connection, slug, name), verdict=verdict)
        add_project(connection, "a", "no run")

    text = first_page(database, fill)
    assert text.startswith(
        "Projects 2 of 4 projects are broken: Apple, zebra Apple ✕ broken summary of fail "
        "Broken in all runs that are kept"
    )
    shown = states(database).shown
    assert [(state.slug, state.verdict) for state in shown] == [
        ("c", "fail"),
        ("b", "fail"),
        ("d", "pass"),
        ("a", None),
    ]
    assert "no run no run yet" in text


def test_of_many_broken_projects_the_sentence_names_the_first(database: Database) -> None:
    def fill(connection: Connection) -> None:
        for number in range(bounds.NAMES + 2):
            add_run(connection, add_project(connection, f"p{number}"), verdict="fail")

    assert first_page(database, fill).startswith("Projects 5 of 5 projects are broken: p0, p1, p2 and 2 more p0 ✕")


def test_of_one_project_the_sentence_speaks_as_of_one(database: Database) -> None:
    text = first_page(database, lambda connection: add_run(connection, add_project(connection, "a"), verdict="fail"))
    assert text.startswith("Projects 1 of 1 project is broken: a a ✕ broken")


@pytest.mark.parametrize(
    ("passing", "without_runs", "sentence"),
    [
        (1, 0, "Nothing is broken: the newest run of p0 passed."),
        (3, 0, "Nothing is broken: the newest runs of all 3 projects passed."),
        (2, 1, "Nothing is broken: the newest runs of 2 projects passed, and 1 project has no run yet."),
        (1, 2, "Nothing is broken: the newest run of p0 passed, and 2 projects have no run yet."),
        (0, 1, "Nothing to tell yet: no project has a run with a verdict."),
        (0, 0, "No project yet. A project appears with the first run that is sent for it."),
    ],
)
def test_the_first_sentence_says_that_nothing_is_broken(
    passing: int, without_runs: int, sentence: str, database: Database
) -> None:
    def fill(connection: Connection) -> None:
        for number in range(passing):
            add_run(connection, add_project(connection, f"p{number}"))
        for number in range(without_runs):
            add_project(connection, f"new{number}")

    assert first_page(database, fill).startswith(f"Projects {sentence}")


def test_without_a_project_the_page_says_how_the_first_run_is_sent(database: Database) -> None:
    text = first_page(database, lambda _: None)
    assert "under Settings" in text
    assert "export RAG_CONTRACT_HISTORY=https://service.local " in text
    assert "rag-contract history add" in text


def test_a_project_is_what_the_newest_run_of_its_branch_is(database: Database) -> None:
    def fill(connection: Connection) -> None:
        number = add_project(connection, "docs")
        add_run(connection, number, NOW - 30)
        add_run(connection, number, NOW - 20, "fail", branch="topic")
        add_run(connection, number, NOW - 10, None)  # at work
        add_run(connection, number, NOW - 40, "fail")  # came late

    database.write(fill)
    state = only(database)
    assert (state.verdict, state.summary, state.counts.blocked) == ("pass", "summary of pass", 2)


@pytest.mark.parametrize("branch", ["main", None])
@pytest.mark.parametrize(
    ("verdicts", "first"), [("f", 0), ("p", 0), ("pff", 1), ("fpp", 1), ("pfpf", 3), ("fffff", 0), ("ppfpp", 3)]
)
def test_a_streak_begins_with_its_first_run(verdicts: str, first: int, branch: str | None, database: Database) -> None:
    def fill(connection: Connection) -> list[int]:
        number = add_project(connection, "docs", branch=branch)
        if branch:
            add_run(connection, number, NOW - DAY, "fail", branch="topic")
            add_run(connection, number, NOW - DAY, "pass", branch="topic")
        names = {"p": "pass", "f": "fail"}
        return [add_run(connection, number, NOW - 1000 + place, names[each]) for place, each in enumerate(verdicts)]

    numbers = database.write(fill)
    streak = only(database).streak
    assert streak is not None
    assert (streak.run, streak.at) == (numbers[first], NOW - 1000 + first)
    assert streak.commit is not None
    assert streak.commit.startswith(f"{(NOW - 1000 + first) % 10_000_000:07}")


@pytest.mark.parametrize("branch", ["main", None])
def test_runs_are_counted_until_they_are_a_day_or_a_week_old(branch: str | None, database: Database) -> None:
    def fill(connection: Connection) -> None:
        number = add_project(connection, "docs", branch=branch)
        for age in (0, DAY - 1, DAY, WEEK - 1, WEEK):
            add_run(connection, number, NOW - age)
            add_run(connection, number, NOW - age - 1, "fail")
        if branch:
            for age in (0, WEEK - 1, WEEK):
                add_run(connection, number, NOW - age, "fail", branch="topic")

    database.write(fill)
    expected = Counts(day_pass=2, day_fail=1, week_pass=4, week_fail=3, blocked=5 if branch else 3)
    assert only(database).counts == expected


def test_no_runs_are_called_so(database: Database) -> None:
    text = first_page(database, lambda connection: add_run(connection, add_project(connection, "docs"), 0))
    assert "Last 24 hours no runs Last 7 days no runs Failed in 7 days, all branches none" in text


def change(run: int, before: float, after: float, *, worse: bool) -> MetricChange:
    return MetricChange(
        run=run,
        key="k",
        at=NOW,
        commit=f"{run}" * 40,
        before=before,
        after=after,
        worse=worse,
        stands=worse,
        p_value=None,
        queries=[],
    )


def test_drift_is_named_with_its_commit(database: Database) -> None:
    def fill(connection: Connection) -> None:
        number = add_project(connection, "docs")
        run = add_run(connection, number)
        metrics = {"mrr_at_5": MetricTrend(label="MRR@5", changes=[change(run, 0.9, 0.8, worse=True)])}
        body = msgspec.json.encode(Trend(runs=[], metrics=metrics)).decode()
        connection.execute(trends.insert().values(project_id=number, run_id=run, computed_at=NOW, body=body))

    assert "MRR@5 is worse since 1111111 " in first_page(database, fill)


def test_the_newest_runs_of_all_projects_are_listed_the_newest_first(database: Database) -> None:
    def fill(connection: Connection) -> None:
        for project in range(12):
            number = add_project(connection, f"p{project}")
            for place in range(12):
                add_run(connection, number, NOW - (project % 3) - 10 * place - 1000 * (project // 3))
        add_project(connection, "new")

    database.write(fill)
    newest = states(database).newest
    assert [run["created_at"] for run in newest] == sorted((run["created_at"] for run in newest), reverse=True)
    assert [(run["project"], NOW - run["created_at"]) for run in newest] == [
        (f"p{project}", project + 10 * place) for place in range(4) for project in range(3)
    ][: bounds.OVERVIEW_RUNS]


def test_a_key_of_one_project_sees_only_that(database: Database) -> None:
    everybody = database.write(askers)

    def fill(connection: Connection) -> None:
        for number, slug in ((1, "docs"), (2, "other")):
            add_run(connection, number, verdict="fail", summary=f"only in {slug}")

    database.write(fill)
    with client_of(database) as client:
        text = page(client, everybody["read, docs"].headers)
        assert "1 of 1 project is broken: docs" in text
        assert "only in docs" in text
        assert "other" not in text
        assert "2 of 2 projects are broken" in page(client, everybody["viewer by session"].headers)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_no_query_of_the_page_reads_all_runs(database: Database) -> None:
    def fill(connection: Connection) -> None:
        for slug in ("a", "b"):
            number = add_project(connection, slug)
            for place in range(4):
                add_run(connection, number, NOW - place, "fail" if place % 2 else "pass")

    database.write(fill)
    asked: list[tuple[str, Any]] = []
    event.listen(
        database.engine, "before_cursor_execute", lambda _c, _cursor, sql, values, *_: asked.append((sql, values))
    )
    states(database)
    of_runs = {sql: values for sql, values in asked if "FROM runs" in sql or "JOIN runs" in sql}
    assert len(of_runs) >= 4
    with database.read() as connection:
        for sql, values in of_runs.items():
            plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)]
            steps = [step for step in plan if re.search(r"\b(runs|of_project)\b", step)]
            assert steps
            for step in steps:
                assert step.startswith("SEARCH"), plan
                assert "created_at>?" in step or "verdict=?" in step or "runs_newest" in step or "rowid=?" in step, plan


def test_a_hostile_name_is_shown_as_text(database: Database) -> None:
    def fill(connection: Connection) -> None:
        number = add_project(connection, "docs", HOSTILE + "x" * 500)
        add_run(connection, number, verdict="fail", summary=HOSTILE, branch="main")
        add_run(connection, number, NOW - 1, summary="", key=HOSTILE, branch=HOSTILE)

    text = first_page(database, fill)
    assert text.count("<script>alert(1)</script> ' \\u202e") == 8
    assert "x" * bounds.HTML_NAME not in text


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_the_page_refreshes_itself(database: Database, browser_of_module: Browser) -> None:
    browser = browser_of_module
    number = database.write(lambda connection: add_project(connection, "docs"))
    key = database.write(lambda connection: new_user(connection, "ana"))
    cookie = database.write(lambda connection: new_session(connection, key))
    with running(database) as server:
        browser.send("Network.setCookie", name="session", value=cookie, url=server.url)
        browser.complaints.clear()
        browser.send("Page.navigate", url=server.url)
        browser.wait("document.body && document.body.innerText.includes('Nothing to tell yet')")
        database.write(lambda connection: add_run(connection, number, verdict="fail"))
        browser.js("document.getElementById('project-docs').focus()")
        browser.wait("document.body.innerText.includes('1 of 1 project is broken')")
        assert browser.js("document.activeElement.id") == "project-docs"
        assert browser.js("document.querySelectorAll('h1, #overview').length") == 2
        assert browser.complaints == []
        browser.send("Page.navigate", url="about:blank")
        browser.send("Network.clearBrowserCookies")


def test_a_page_that_refreshes_itself_is_sent_to_the_login_when_its_session_has_ended(database: Database) -> None:
    with client_of(database) as client:
        answer = ask(client, "GET", "/", by_session("x" * 43, **{"HX-Request": "true"}))
        assert (answer.status_code, answer.headers["hx-refresh"], answer.content) == (401, "true", b"")
        assert ask(client, "GET", "/", by_session("x" * 43)).headers["location"] == "/login"
