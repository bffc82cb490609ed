"""`rag-contract serve --demo`: what a stranger finds in it, asked as a browser asks."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from ragcontract.service.database import Database
from ragcontract.service.demo import demo_database
from ragcontract.service.demo.demo_database import fill, mount
from ragcontract.service.demo.demo_story import (
    FLAKY,
    NIGHTS,
    NO_LOOKUP,
    PROJECTS,
    RANKS,
    TUESDAY,
    Calendar,
    runs_of,
)
from ragcontract.service.tables import runs, trends
from tests.process import rag_contract
from tests.runner import ROOT
from tests.service import mounting
from tests.service.running import Process, serving

NOW = datetime(2026, 11, 29, 8, 30, tzinfo=UTC)  # a Sunday
DOCS, AGENT, CHATBOT, SEARCH = (project.slug for project in PROJECTS)
OTHER_EXTRAS = ("jmespath", "psycopg", "pyarrow", "rapidfuzz", "re2")
Json = dict[str, Any]


class Demo:
    """A demo that is served, and somebody who has logged in with the link that it printed."""

    def __init__(self, served: Process, folder: Path) -> None:
        self.served, self.folder = served, folder
        self.lines = [served.next_line(), served.next_line()]
        link = self.lines[0].partition("?link=")[2]
        answer = served.client.post("/login", data={"link": link}, headers={"Sec-Fetch-Site": "same-origin"})
        assert answer.status_code in {200, 303}, answer.text

    def get(self, path: str, **params: Any) -> Any:
        answer = self.served.client.get(f"/api/v1{path}", params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def runs(self, slug: str, **params: Any) -> list[Json]:
        """Return all runs of a project, the newest first."""
        items, cursor = list[Json](), None
        while True:
            page = self.get(f"/projects/{slug}/runs", limit=100, **params, **({"cursor": cursor} if cursor else {}))
            items += page["items"]
            if (cursor := page["next"]) is None:
                return items

    def report(self, run: Json) -> Json:
        report: Json = self.get(f"/runs/{run['id']}/report.json")
        return report

    def broken(self, slug: str) -> list[set[str]]:
        """Return the broken queries of the runs of the main branch, the oldest first."""
        reports = [self.report(run) for run in reversed(self.runs(slug, branch="main"))]
        return [{query["id"] for query in report["queries"] if query["status"] != "pass"} for report in reports]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo where only the extra ``service`` is installed."""
    folder, shadows = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("shadows")
    for name in OTHER_EXTRAS:
        (shadows / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n")
    paths = [str(shadows), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environ = {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(folder), "RAG_CONTRACT_DB": "not-for-the-demo.db"}
    with serving("--demo", cwd=folder, environ=environ) as served:
        yield Demo(served, folder)


def at(run: Json) -> datetime:
    return datetime.fromtimestamp(run["created_at"] / 1000, UTC)


def test_it_answers_with_a_link_and_says_that_nothing_is_kept(demo: Demo) -> None:
    assert demo.lines[0].startswith("Log in as admin within 15 minutes: ")
    assert demo.lines[1] == "This is a demo: nothing in it is kept when it ends."
    assert demo.served.client.get("/").status_code == 200


def test_it_has_four_projects_of_which_one_is_broken_now(demo: Demo) -> None:
    items = demo.get("/projects")["items"]
    assert [(each["name"], each["verdict"], each["branch"]) for each in items] == [
        ("Docs answers", "pass", "main"),
        ("Product search", "pass", "main"),
        ("Shop chatbot", "pass", "main"),
        ("Support agent", "fail", "main"),
    ]


@pytest.mark.parametrize("slug", [DOCS, AGENT, CHATBOT, SEARCH])
def test_each_has_the_runs_of_90_days_and_some_of_pull_requests(demo: Demo, slug: str) -> None:
    listed = demo.runs(slug)
    nightly = [run for run in listed if run["branch"] == "main"]
    others = [run for run in listed if run["branch"] != "main"]
    assert 70 <= len(nightly) <= 80
    assert {run["event"] for run in nightly} == {"schedule"}
    assert {(at(run).hour, at(run).minute) for run in nightly} == {(3, 0)}
    assert timedelta(0) <= datetime.now(UTC) - at(nightly[0]) <= timedelta(days=1, hours=1)
    assert timedelta(days=86) <= at(nightly[0]) - at(nightly[-1]) <= timedelta(days=NIGHTS - 1)
    assert {run["event"] for run in others} == {"pull_request"}
    assert {"completed", "blocked"} == {run["state"] for run in others}
    assert all(run["pull_request"] and len(run["commit"]) == 40 for run in others)


def test_the_change_point_is_at_the_commit_of_smaller_chunks_and_there_is_no_other(demo: Demo) -> None:
    answer = demo.get(f"/projects/{DOCS}/metrics", metric="mrr_at_5")
    assert (answer["state"], answer["why"]) == ("current", None)
    (change,) = answer["changes"]
    first = next(run for run in reversed(demo.runs(DOCS, branch="main")) if at(run) >= at({"created_at": change["at"]}))
    versions = demo.report(first)["inputs"]["run"]["versions"]
    assert (first["id"], first["commit"]) == (change["run"], change["commit"])
    assert versions["chunking_version"] == ["128 tokens"]
    assert (change["worse"], round(change["before"], 1), round(change["after"], 1)) == (True, 0.9, 0.7)
    assert timedelta(days=24) <= datetime.now(UTC) - at(first) <= timedelta(days=31)
    assert {each["id"] for each in change["queries"]} == {*RANKS}
    assert first["verdict"] == "pass"


@pytest.mark.parametrize("slug", [CHATBOT, SEARCH])
def test_nothing_else_has_changed(demo: Demo, slug: str) -> None:
    metrics = demo.get(f"/projects/{slug}/metrics")["metrics"]
    assert metrics
    for metric in metrics:
        assert demo.get(f"/projects/{slug}/metrics", metric=metric)["changes"] == []


def test_the_agent_is_broken_since_a_tuesday_by_one_commit(demo: Demo) -> None:
    newest, *before = demo.runs(AGENT, branch="main")
    failed = [newest]
    while before[0]["verdict"] == "fail":
        failed.append(before.pop(0))
    first = failed[-1]
    assert at(first).weekday() == TUESDAY
    assert timedelta(days=1) <= datetime.now(UTC) - at(first) <= timedelta(days=8, hours=1)
    assert first["commit"] != before[0]["commit"]
    assert {query["id"] for query in demo.report(first)["queries"] if query["status"] == "fail"} == NO_LOOKUP
    report = demo.report(newest)
    since = {query: each["commit"][:12] for query, each in report["history"]["broken_since"].items()}
    assert since == (dict.fromkeys(NO_LOOKUP, first["commit"][:12]) if len(failed) > 1 else {})
    assert demo.get(f"/projects/{AGENT}/gate", commit=first["commit"])["verdict"] == "fail"
    assert demo.get(f"/projects/{AGENT}/gate", commit=before[0]["commit"])["verdict"] == "pass"


def test_one_query_of_the_chatbot_is_flaky(demo: Demo) -> None:
    broken = demo.broken(CHATBOT)
    assert {query for each in broken for query in each} == {FLAKY}
    changes = sum(before != now for before, now in pairwise(broken))
    assert changes >= 12
    assert not broken[-1]


def test_the_newest_run_of_the_docs_has_a_waived_failure(demo: Demo) -> None:
    newest, *_ = demo.runs(DOCS, branch="main")
    (gate,) = [gate for gate in demo.report(newest)["gates"] if gate["status"] == "waived"]
    assert gate["id"] == "minimums.mrr_at_k"
    assert "mira" in str(demo.report(newest))
    states = [run["state"] for run in demo.runs(DOCS, branch="main")]
    assert 1 <= states.count("blocked") <= 2


def test_the_search_never_failed(demo: Demo) -> None:
    assert {run["verdict"] for run in demo.runs(SEARCH, branch="main")} == {"pass"}


@pytest.mark.parametrize(
    ("slug", "golden_id"),
    [(DOCS, "invite_teammate"), (AGENT, "where_is_order"), (CHATBOT, "return_shoes"), (SEARCH, "two_person_tent")],
)
def test_each_system_can_be_asked(slug: str, golden_id: str, demo: Demo) -> None:
    path, headers = f"/api/v1/projects/{slug}/playground", {"Sec-Fetch-Site": "same-origin"}
    answer = demo.served.client.post(path, json={"golden_id": golden_id}, headers=headers, timeout=120)
    assert answer.status_code == 200, answer.text
    judged = answer.json()["golden"]
    assert (judged["id"], judged["status"]) == (golden_id, "pass"), answer.text
    assert all(rule["holds"] for rule in judged["rules"])


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize("slug", [DOCS, AGENT, CHATBOT, SEARCH])
def test_a_run_that_somebody_starts_passes(
    slug: str, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounting, "SLUG", slug)
    mounted = mounting.Mounted(database, tmp_path)
    mount(tmp_path / "demo", NOW)
    mounted.folder = tmp_path / "demo"
    run = mounted.made()
    assert (run.state, run.verdict, run.problem) == ("completed", "pass", None), run.log


def test_reports_have_paths_as_in_a_repository(demo: Demo) -> None:
    inputs = demo.report(demo.runs(DOCS)[0])["inputs"]
    paths = [inputs[part]["files"][0]["path"] for part in ("golden", "run", "config")]
    assert paths == ["golden.jsonl", "current_run.jsonl", "ragcontract.yml"]


def test_the_database_is_whole_and_only_in_the_temporary_folder(demo: Demo) -> None:
    (file,) = demo.folder.rglob("service.db")
    checked = rag_contract("service", "check", "--db", str(file))
    assert (checked.code, checked.out) == (0, "the database is whole\n")
    assert [path.name for path in demo.folder.iterdir()] == [file.parent.name]


@pytest.mark.parametrize(("option", "value"), [("--db", "service.db"), ("--projects", ".")])
def test_a_database_or_projects_beside_it_are_refused(option: str, value: str) -> None:
    ended = rag_contract("serve", "--demo", option, value)
    assert ended.code == 2
    assert f"--demo has projects and a database of its own; leave out {option}" in ended.err


def test_it_is_for_this_machine_alone() -> None:
    ended = rag_contract("serve", "--demo", "--host", "0.0.0.0", "--port", "0")
    assert (ended.code, ended.err) == (
        2,
        "error: --host 0.0.0.0: others could reach the demo, which is for this machine alone\n",
    )


@pytest.mark.parametrize("days", range(7))
@pytest.mark.parametrize("hour", [0, 3, 23])
def test_the_story_is_the_same_on_every_day(days: int, hour: int) -> None:
    now = NOW.replace(hour=hour) + timedelta(days=days)
    calendar = Calendar(AGENT, now)
    lookup, newest = calendar.nights[calendar.lookup], calendar.nights[-1]
    assert timedelta(0) <= now - newest < timedelta(days=1)
    assert lookup.weekday() == TUESDAY
    assert timedelta(days=1) <= now - lookup < timedelta(days=8)
    assert calendar.commits(calendar.lookup)[0] != calendar.commits(calendar.lookup - 1)[0]
    for project in PROJECTS:
        of_project = [*runs_of(project, now)]
        times = [run.at for run in of_project]
        assert times == sorted(times)
        assert times[-1] <= now
        assert len({run.number for run in of_project}) == len(of_project)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_filled_again_nothing_changes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_database, "PROJECTS", PROJECTS[3:])
    shares: list[float] = []
    fill(database, NOW, shares.append)
    first = contents(database)
    fill(database, NOW)
    assert contents(database) == first
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] <= 1


def contents(database: Database) -> list[Any]:
    columns = runs.c.id, runs.c.key, runs.c.entry, runs.c.report, runs.c.results, runs.c.golden
    with database.read() as connection:
        rows = connection.execute(select(*columns).order_by(runs.c.id)).all()
        return [*rows, *connection.execute(select(trends.c.run_id, trends.c.body)).all()]


def test_no_other_command_imports_it() -> None:
    naming = [path for path in (ROOT / "ragcontract").rglob("*.py") if "service.demo" in path.read_text()]
    assert {path.name for path in naming if path.parent.name != "demo"} == {"serve.py"}
