"""What the service answers about projects and runs: lists, a run with its files, and the gate of a commit."""

import html
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.history.choose_baseline import document_of
from ragcontract.history.entry import NewEntry, encode
from ragcontract.history.folder import Folder
from ragcontract.service.tables import projects
from tests.history.entries import FIRST, RUN, new_entry, results_of
from tests.history.entries import runs as runs_of
from tests.process import rag_contract
from tests.service.conftest import HOSTILE
from tests.service.served import Served

EVERYTHING = "/projects", "/projects/docs", "/projects/docs/runs"


def test_a_run_says_what_its_entry_and_its_report_say(served: Served, checked_run: tuple[NewEntry, bytes]) -> None:
    new, report = checked_run
    number = served.add(new, report=served.send_blob(report, "report"), golden=served.send_blob(b"{}", "golden"))
    answer = served.get(f"/runs/{number}")
    entry = json.loads(new.content)
    assert {name: answer[name] for name in ("key", "state", "verdict", "summary", "pass_rate", "gates")} == {
        "key": entry["id"],
        "state": "blocked",
        "verdict": "fail",
        "summary": entry["summary"],
        "pass_rate": entry["pass_rate"],
        "gates": entry["gates"],
    }
    assert {key: mean["value"] for key, mean in answer["metrics"].items()} == {
        key: mean["value"] for key, mean in entry["metrics"].items()
    }
    assert [(query["id"], query["fails"], query["rules"]) for query in answer["broken"]] == [
        (HOSTILE, True, ["must_include"]),
        ("q1", True, ["must_include"]),
    ]
    assert None not in answer["blobs"].values()
    for name in ("report.json", "report.html", "baseline.json"):
        assert served.client.get(answer["links"][name], headers={"Authorization": f"Bearer {served.key}"}).is_success


def test_a_report_comes_back_as_it_was_sent_and_as_render_shows_it(
    served: Served, checked_run: tuple[NewEntry, bytes]
) -> None:
    new, report = checked_run
    number = served.add(new, report=served.send_blob(report, "report"))
    assert served.request("GET", f"/runs/{number}/report.json").content == report
    page = served.request("GET", f"/runs/{number}/report.html")
    assert rag_contract("render", "--format", "html", "--out", "page.html").code == 0
    assert page.content == Path("page.html").read_bytes()
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "sandbox allow-scripts" in policy
    assert not any("unsafe" in part or "*" in part for part in policy)
    scripts = [part for part in policy if part.startswith("script-src")]
    assert scripts
    assert scripts[0] in html.unescape(page.text)


def test_a_run_can_become_a_baseline(served: Served, checked_run: tuple[NewEntry, bytes]) -> None:
    new, _ = checked_run
    number = served.add(new)
    assert served.request("GET", f"/runs/{number}/baseline.json").content == document_of(Folder("history"), new.entry)


def test_what_was_not_sent_is_not_there_and_the_answer_says_so(served: Served) -> None:
    number = served.add(new_entry(no_results="the run has no row for 1 golden query"))
    for path, why in (
        ("report.json", "the run was sent without its report"),
        ("report.html", "the run was sent without its report"),
        ("baseline.json", "the run has no row for 1 golden query"),
    ):
        answer = served.request("GET", f"/runs/{number}/{path}")
        assert answer.status_code == 404
        assert why in answer.json()["detail"]
    assert [*served.get(f"/runs/{number}")["links"]] == ["self"]


@pytest.mark.parametrize("change", [{"source": {"contract": "help"}}, {"verdict": "pass"}, {"queries": [{}]}])
def test_the_report_of_another_check_is_refused(
    served: Served, checked_run: tuple[NewEntry, bytes], change: dict[str, Any]
) -> None:
    new, report = checked_run
    assert new.results is not None
    served.send_blob(new.results)
    other = json.dumps(json.loads(report) | change).encode()
    answer = served.post(new, report=served.send_blob(other, "report"))
    assert answer.status_code == 422
    assert answer.json()["problems"][0].startswith("report: ")


def several(served: Served) -> list[int]:
    """Add six runs of two branches, every third of which fails; return their numbers, the oldest first."""
    numbers = []
    for count in range(6):
        new = new_entry(
            at=FIRST + timedelta(hours=count),
            run=RUN + count,
            commit=f"{count // 2}f9c1a2b4d5e",
            verdict="fail" if count % 3 == 2 else "pass",
            source={
                "commit": f"{count // 2}f9c1a2b4d5e{'0' * 28}",
                "branch": "main" if count % 2 else "topic",
                "run_id": RUN + count,
                "run_attempt": 1,
            },
        )
        numbers.append(served.add(new))
    return numbers


FILTERS: dict[str, tuple[dict[str, str], list[int]]] = {
    "all": ({}, [5, 4, 3, 2, 1, 0]),
    "a state": ({"state": "blocked"}, [5, 2]),
    "a state that none has": ({"state": "queued"}, []),
    "a branch": ({"branch": "main"}, [5, 3, 1]),
    "a branch that none has": ({"branch": "' OR 1=1 --"}, []),
    "a branch with a NUL": ({"branch": "\0"}, []),
    "the beginning of a commit": ({"commit": "1f9c1a2"}, [3, 2]),
    "a whole commit": ({"commit": f"2f9c1a2b4d5e{'0' * 28}"}, [5, 4]),
    "all three": ({"commit": "2f9c1a2b", "branch": "main", "state": "blocked"}, [5]),
}


@pytest.mark.parametrize(("wanted", "expected"), FILTERS.values(), ids=FILTERS)
def test_runs_are_listed_by_state_branch_and_commit_the_newest_first(
    served: Served, wanted: dict[str, str], expected: list[int]
) -> None:
    numbers = several(served)
    items = served.get("/projects/docs/runs", **wanted)["items"]
    assert [each["id"] for each in items] == [numbers[place] for place in expected]


def test_runs_come_page_by_page_each_once(served: Served) -> None:
    for new in runs_of(5, hours=0):  # at the same time
        served.add(new)
    seen: list[int] = []
    cursor: dict[str, str] = {}
    for _ in range(3):
        page = served.get("/projects/docs/runs", limit="2", **cursor)
        seen += [each["id"] for each in page["items"]]
        cursor = {"cursor": page["next"]}
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 5
    assert page["next"] is None


def test_projects_come_page_by_page_with_the_newest_run_of_their_branch(served: Served) -> None:
    for name in ("c", "a", "b"):
        served.add(new_entry(name), default_branch="true")
        other = {"commit": f"{'3f9c1a2b4d5e':0<40}", "branch": "topic", "run_id": RUN + 1}
        served.add(new_entry(name, at=FIRST + timedelta(hours=1), run=RUN + 1, verdict="fail", source=other))
    first = served.get("/projects", limit="2")
    second = served.get("/projects", limit="2", cursor=first["next"])
    assert second["next"] is None
    items = first["items"] + second["items"]
    assert [(each["slug"], each["branch"], each["verdict"]) for each in items] == [
        (name, "main", "pass") for name in "abc"
    ]
    assert served.get("/projects/b") == items[1]


NO_CURSORS = (
    "x",
    "",
    "'",
    "\0",
    "W10",
    "WzFd",
    "WzEsMl0,",
    "WyIxIiwiMiJd",
    "[1,2]",
    "WzEsOTk5OTk5OTk5OTk5OTk5OTk5OTldLA",
)
TOO_LARGE = "WzEsOTk5OTk5OTk5OTk5OTk5OTk5OTk5OTld"  # [1,99999999999999999999999]
REFUSED: list[tuple[str, dict[str, str]]] = [
    *[("/projects/docs/runs", {"cursor": cursor}) for cursor in (*NO_CURSORS, TOO_LARGE)],
    *[("/projects", {"cursor": cursor}) for cursor in ("x", "WzEsMl0", "W10")],
    *[("/blobs", {"cursor": cursor}) for cursor in ("x", "A" * 64, "' OR 1=1")],
    *[("/projects/docs/entries", {"cursor": cursor, "month": "2026-11"}) for cursor in ("x", "\0", "2026")],
    *[("/projects/docs/runs", {"limit": limit}) for limit in ("0", "101", "-1", "x", "1e9", "9" * 30)],
    ("/projects/docs/runs", {"state": "' OR 1=1 --"}),
    *[("/projects/docs/runs", {"commit": commit}) for commit in ("abc", "ABCDEF1", "%%%%%%%", "'", "\0" * 7, "a" * 65)],
    *[("/projects/docs/gate", {"commit": commit}) for commit in ("abc", "ABCDEF1", "%%%%%%%", "'", "\0" * 7, "a" * 65)],
    ("/projects/docs/gate", {}),
    ("/projects/docs/entries", {}),
    ("/projects/docs/entries/contents", {}),
]


@pytest.mark.parametrize(("path", "params"), REFUSED)
def test_parameters_that_cannot_be_are_refused(served: Served, path: str, params: dict[str, str]) -> None:
    served.add(new_entry())
    assert served.status(path, **params) == 422


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/projects/docs/runs?state=odd", "state: "),
        ("/projects/docs/entries/contents?" + "id=x&" * 101, "id: "),
        ("/projects/docs/runs?limit=0", "limit: "),
    ],
)
def test_a_parameter_that_is_refused_has_the_name_that_was_sent(served: Served, path: str, named: str) -> None:
    served.add(new_entry())
    (problem,) = served.request("GET", path).json()["problems"]
    assert problem.startswith(named)


def test_a_project_that_was_made_without_a_run_gets_its_repository(served: Served) -> None:
    row = {"slug": "docs", "name": "docs", "secret": "s", "created_at": 1}
    served.database.write(lambda connection: connection.execute(projects.insert().values(row)))
    for number, repository in enumerate([None, "org/app", "org/other"]):
        new = new_entry(run=RUN + number)
        entry = replace(new.entry, source=replace(new.entry.source, repository=repository))
        served.add(NewEntry(entry=entry, content=encode(entry)))
        assert served.get("/projects/docs")["repository"] == (repository and "org/app")


AWKWARD = ["' OR 1=1 --", "\0", "%", "../../etc/passwd", "\u202e", "2026-1", "x" * 5_000]


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_parameters_match_nothing(served: Served, text: str) -> None:
    served.add(new_entry())
    assert served.get("/projects/docs/entries", month=text)["ids"] == []
    assert served.get("/projects/docs/entries/contents", id=text) == {"items": [], "rest": []}
    assert served.get("/projects/docs/runs", branch=text)["items"] == []
    if "/" not in text:
        quoted = "".join(f"%{byte:02x}" for byte in text.encode())
        for rest in (
            "",
            "/months",
            "/entries?month=2026-11",
            "/entries/contents?id=x",
            "/runs",
            "/gate?commit=3f9c1a2",
        ):
            assert served.status(f"/projects/{quoted}{rest}") == 404
        assert served.status(f"/blobs/{quoted}") == 404


@pytest.mark.parametrize("number", ["0", "-1", "2", str(2**63), "9" * 30, "x", "%00", "1'"])
def test_there_is_no_run_of_another_number(served: Served, number: str) -> None:
    served.add(new_entry())
    for rest in ("", "/report.json", "/report.html", "/baseline.json"):
        assert served.status(f"/runs/{number}{rest}") == 404


def test_at_most_so_many_entries_are_asked_for(served: Served) -> None:
    served.add(new_entry())
    most = bounds.ENTRIES_AT_ONCE
    for count, status in ((most, 200), (most + 1, 422)):
        query = "&".join("id=x" for _ in range(count))
        assert served.status(f"/projects/docs/entries/contents?{query}") == status


GATES: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "no run": ([], "none", "no entry at 3f9c1a2"),
    "a pass": ([{}], "pass", "pass"),
    "a failure": ([{"verdict": "fail"}], "fail", "fail"),
    "a failure that a label accepted": ([{"verdict": "pass", "accepted": True}], "fail", "pass, accepted by a label"),
    "the newest run counts": ([{"verdict": "fail"}, {}], "pass", "pass"),
    "a dirty tree": ([{"dirty": True}], "none", "all runs at 3f9c1a2 are from a dirty working tree"),
    "a dirty tree after a pass": ([{}, {"dirty": True}], "pass", "pass"),
}


@pytest.mark.parametrize(("entries", "verdict", "why"), GATES.values(), ids=GATES)
@pytest.mark.parametrize("name", ["docs", "", "Läuft das?"])
def test_the_gate_of_a_commit_is_its_newest_run(
    served: Served, name: str, entries: list[dict[str, Any]], verdict: str, why: str
) -> None:
    elsewhere = {"commit": f"{'4f9c1a2b4d5e':0<40}", "branch": "main", "run_id": RUN + 9}
    served.add(new_entry(name, run=RUN + 9, commit="4f9c1a2b4d5e", source=elsewhere, verdict="fail"))
    for count, fields in enumerate(entries):
        source = {"commit": f"{'3f9c1a2b4d5e':0<40}", "branch": "main", "run_id": RUN + count}
        others = {key: value for key, value in fields.items() if key != "dirty"}
        source |= {key: value for key, value in fields.items() if key == "dirty"}
        served.add(new_entry(name, at=FIRST + timedelta(hours=count), run=RUN + count, source=source, **others))
    slug = served.get("/projects")["items"][0]["slug"]
    answer = served.get(f"/projects/{slug}/gate", commit="3f9c1a2b4d")
    assert answer["verdict"] == verdict
    assert answer["why"].startswith(why)


def test_the_branch_of_a_project_is_what_its_ci_says(served: Served) -> None:
    served.add(new_entry(results=results_of("d1")))
    assert served.get("/projects/docs")["branch"] is None
    served.add(new_entry(at=FIRST + timedelta(hours=1), run=RUN + 1), default_branch="true")
    assert served.get("/projects/docs")["branch"] == "main"
