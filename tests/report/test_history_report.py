"""What reports say of the history: the baseline's commit, and since when queries are broken on the base branch.

Each report is written as report.json and rendered again, as in the workflow that comments on a pull request.
"""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from ragcontract.github.runner_output import of_report, when_checked
from ragcontract.report.json_report import read
from ragcontract.report.record import Report
from tests.github.relayed import assert_contained
from tests.process import rag_contract
from tests.records import NOW, Rows, query, rendered, report
from tests.report.html.parsed import Parsed
from tests.report.page import Page

SHA = "abc1234" + "0" * 33
ID = "20260629T120000Z-abc123400000-17345678901-1"
NAMES = ("kept", "lost", "known", "older")
FORMATS = ("markdown", "html", "junit", "text")
ONLY_NEW = {"per_query": {"fail_on": "new"}}
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def history(named: str = "last-pass", behind: int | None = 3, **fields: Any) -> Json:
    """Return the part of the report on the history."""
    entry = {"id": ID, "commit": SHA, "named": named, "behind": behind}
    return {"branch": "main", "entries": 42, "baseline": entry, **fields}


def broken_since(*query_ids: str, commit: str = SHA, **fields: Any) -> Json:
    return {name: {"commit": commit, "at": "2026-06-29T12:00:00Z", **fields} for name in query_ids}


def written(
    of_history: Json | None, config: Json | None = None, *, days: int | None = 2, compared: bool = True
) -> Json:
    """Write report.json: one query holds, ``lost`` is new, the baseline breaks ``known`` and ``older``, too."""
    queries = [query(name, "A") for name in NAMES]
    found = {name: ["A"] if name == "kept" else ["x"] for name in NAMES}
    before = Rows(
        docs=found | {"lost": ["A"]},
        name=f"history:{ID}",
        questions={one.id: one.query for one in queries},
        created_at="2026-06-01T00:00:00+00:00",
        k=[5],
    )
    made: Json = json.loads(rendered(report(queries, found, before if compared else None, config))["report-json"])
    if compared:
        made["inputs"]["baseline"]["age_days"] = days
    if of_history is not None:
        made["history"] = of_history
    Path("report.json").write_text(json.dumps(made))
    return made


def shown(form: str) -> str:
    """Return the report in a format."""
    ended = rag_contract("render", "report.json", "--format", form, "--out", "out")
    assert (ended.code, ended.err) == (0, "")
    return Path("out").read_text(encoding="utf-8")


def text_in(form: str) -> str:
    """Return what a reader of a format sees, without the marks of names."""
    out = shown(form)
    if form == "html":
        return re.sub("<[^>]*>", "", out)
    return out.replace("`", "")


OR_FAILED = "not recorded or did not pass"
COMPARED = [
    (history(), 2, f"Compared with main@abc1234, 2 days old; 3 newer commits of main were {OR_FAILED}"),
    (history(behind=1), 1, f"Compared with main@abc1234, 1 day old; 1 newer commit of main was {OR_FAILED}"),
    (history(behind=0), 0, "Compared with main@abc1234, recorded today"),
    (history(behind=None), -1, "Compared with main@abc1234, recorded today"),
    (history(), None, f"Compared with main@abc1234; 3 newer commits of main were {OR_FAILED}"),
    (history("last"), 2, "Compared with main@abc1234, 2 days old; 3 newer commits of main were not recorded"),
    (history("last", 1), 2, "Compared with main@abc1234, 2 days old; 1 newer commit of main was not recorded"),
    (history("abc1234"), 2, "Compared with main@abc1234, 2 days old"),
    (history(ID), 2, "Compared with main@abc1234, 2 days old"),
    (history(branch=None), 2, f"Compared with abc1234, 2 days old; 3 newer commits were {OR_FAILED}"),
]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("of_history", "days", "note"), COMPARED, ids=[note for *_, note in COMPARED])
def test_a_baseline_from_the_history_is_named_under_the_verdict(
    of_history: Json, days: int | None, note: str, form: str
) -> None:
    written(of_history, days=days)
    ends = {"markdown": "\n", "html": "\n", "text": "\n", "junit": '"'}
    assert re.search(f'(^|[ "]){re.escape(note)}{ends[form]}', text_in(form), re.MULTILINE)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("of_history", [None, {"branch": None, "entries": 0}])
def test_without_a_baseline_from_the_history_nothing_is_said_of_it(of_history: Json | None, form: str) -> None:
    written(None)
    before = shown(form)
    written(of_history)
    assert shown(form) == before
    assert "Compared with" not in before
    assert " on main" not in before


def test_the_inputs_name_the_entry() -> None:
    written(history())
    assert ["baseline", f"history:{ID} (sha256 abababababab)"] in [
        row[:2] for row in Page(shown("markdown")).tables[-1]
    ]
    assert "<code>history&#58;<wbr>" in shown("markdown")  # so that it breaks on a phone
    assert f"baseline: history:{ID} sha256 abababababab" in " ".join(text_in("html").split())


@pytest.mark.parametrize(
    ("named", "advice"),
    [
        ("last-pass", "record a newer check of main that passes"),
        ("last", "record a newer check of main"),
        ("abc1234", "choose a newer entry of the history"),
    ],
)
@pytest.mark.parametrize("form", ["markdown", "html", "text"])
def test_an_entry_that_is_too_old_cannot_be_updated(named: str, advice: str, form: str) -> None:
    written(history(named), {"max_baseline_age": 1})
    out = text_in(form)
    assert re.search(f"more than max_baseline_age allows; {advice}$", out, re.MULTILINE)
    assert "--update" not in out


SINCE = [
    ({}, "broken since abc1234 on main"),
    ({"or_before": True}, "broken on main since abc1234 or earlier"),
    ({"commit": "f" * 10_000}, "broken since fffffff on main"),
]


def messages() -> dict[str, str]:
    """Return what the JUnit report says of each query that does not pass."""
    cases = ET.fromstring(shown("junit")).iter("testcase")
    return {case.get("name", ""): case[0].get("message", "") for case in cases if len(case)}


def whys() -> dict[str, str]:
    """Return what the page says below the broken rules of each query."""
    return {row["i"]: row["y"] for row in Parsed(shown("html").encode()).data()["queries"] if "y" in row}


@pytest.mark.parametrize(("fields", "words"), SINCE, ids=[words for _, words in SINCE])
def test_a_query_that_is_broken_on_the_branch_says_since_when_and_not_that_it_is_new(fields: Json, words: str) -> None:
    written(history(broken_since=broken_since("lost", "known", "kept", **fields)))
    text = shown("text")
    assert text.startswith(f"FAIL lost ({words})\n")
    assert f"\nFAIL 1 {words}: known\nFAIL 1 already in the baseline: older\n" in text
    assert text.endswith("FAIL  3 of 4 queries broken: 1 new, 2 already in the baseline\n")  # it counts as before
    assert re.findall(r" (\w+) \((.*)\)<br>", text_in("markdown")) == [
        ("lost", words),
        ("known", words),
        ("older", "already in the baseline"),
    ]
    assert whys() == {"lost": words, "known": words, "older": "already in the baseline"}
    assert messages() == {
        "lost": f"{words}: expected A in top 5; found: missing from top 5 (was rank 1)",
        "known": f"{words}: expected A in top 5; found: missing from top 5 (was missing too)",
        "older": "already in the baseline: expected A in top 5; found: missing from top 5 (was missing too)",
    }


@pytest.mark.parametrize(("fields", "words"), SINCE, ids=[words for _, words in SINCE])
def test_a_known_failure_says_since_when_it_is_broken_on_the_branch(fields: Json, words: str) -> None:
    written(history(broken_since=broken_since("known", **fields)), ONLY_NEW)
    excused = "already broken in the baseline"
    assert f"\nKNOWN 1 {words}: known\nKNOWN 1 already in the baseline: older\n" in shown("text")
    assert re.findall(r"<br>(known|older) .*\| (.*) \|$", text_in("markdown"), re.MULTILINE) == [
        ("known", words),
        ("older", excused),
    ]
    assert whys() == {"lost": "new", "known": words, "older": excused}
    assert {name: message for name, message in messages().items() if name != "lost"} == {
        "known": words,
        "older": excused,
    }


def test_without_a_baseline_the_branch_is_said_as_well() -> None:
    written(history(broken_since=broken_since("known")), compared=False)
    assert "known (broken since abc1234 on main)<br>" in text_in("markdown")
    assert "FAIL known (broken since abc1234 on main)\n" in shown("text")
    assert "Compared with" not in shown("text")


def test_commits_beyond_the_third_are_not_listed_apart() -> None:
    names = [f"q{number}" for number in range(6)]
    since = {name: {"commit": f"{number}" * 40, "at": ""} for number, name in enumerate(names)}
    same = {name: ["x"] for name in names}
    queries = [query(name, "A") for name in names]
    before = Rows(docs=same, name="b", questions={one.id: one.query for one in queries})
    made = json.loads(rendered(report(queries, same, before, ONLY_NEW))["report-json"])
    Path("report.json").write_text(json.dumps(made | {"history": history(broken_since=since)}))
    assert shown("text").splitlines()[:4] == [
        "KNOWN 1 broken since 0000000 on main: q0",
        "KNOWN 1 broken since 1111111 on main: q1",
        "KNOWN 1 broken since 2222222 on main: q2",
        "KNOWN 3 already in the baseline: q3, q4, q5",
    ]


def test_notes_of_the_history_follow_the_others() -> None:
    note = "Trend not shown: the branch could not be read"
    written(history(notes=[note, "1. <b>&"]))
    assert f"did not pass\n- {note}\n- 1\\. &lt;b&gt;&amp;\n\n" in text_in("markdown")
    assert f"did not pass\n{note}\n1. <b>&\nFAIL  3 of 4" in shown("text")
    assert note in text_in("html")
    assert f"; {note}; 1. &lt;b&gt;&amp;" in shown("junit")


def named(text: str) -> Json:
    """Return a history whose branch, commits and note are ``text``."""
    made = history(branch=text, broken_since=broken_since("lost", "known", commit=text), notes=[text])
    made["baseline"]["commit"] = text
    return made


@pytest.mark.parametrize(
    "text", ["<b>x</b>", "::error::x", "\x1b[31mx", "|x|y", "`x`", "@org/team", "a\nb", "[x](y)", "www.x.y"], ids=repr
)
def test_names_of_a_history_stay_text(text: str) -> None:
    config = {**ONLY_NEW, "max_baseline_age": 1}
    written(named("main"), config)
    harmless, of_page = assert_contained(shown("markdown")), shown("html").count("<")
    written(named(text), config)
    assert assert_contained(shown("markdown")).tags == harmless.tags
    assert shown("html").count("<") == of_page
    assert ET.fromstring(shown("junit")).get("tests") == "4"
    assert "\x1b" not in "".join(map(shown, FORMATS))
    assert not re.search("^ *::", rag_contract("render", "--format", "text").out, re.MULTILINE)


@pytest.mark.parametrize(
    ("of_history", "age"), [(None, " · baseline made 2 days ago"), (history(), "")], ids=["a file", "the history"]
)
def test_the_age_of_the_baseline_is_said_once_in_a_comment(of_history: Json | None, age: str) -> None:
    written(of_history)
    assert when_checked(read_report(), NOW) == f"Checked 2026-07-01 12:00 UTC{age}"


def test_an_annotation_says_since_when() -> None:
    written(history(broken_since=broken_since("lost", commit="::error::")), ONLY_NEW)
    said = of_report(read_report(), "error", str)
    assert said.startswith("::error file=golden.jsonl")
    assert "title=Broken query lost (broken since %3A%3Aerror on main)::Expected" in said


def read_report() -> Report:
    made = read(Path("report.json"))
    assert isinstance(made, Report)
    return made


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"notes": ["x"] * 1_001}, "causes, history.notes: more than 1,000"),
        ({"notes": ["x" * 70_000]}, "history.notes: a sentence has more than 65,536 characters"),
        ({"broken_since": {"lost": {"commit": 1, "at": ""}}}, "history.broken_since.lost.commit: expected text"),
        ({"entries": -1}, "history.entries: "),
    ],
    ids=["notes without end", "a long note", "a number for a commit", "a negative number"],
)
def test_a_history_that_no_check_writes_is_refused(changed: Json, problem: str) -> None:
    written(history(**changed))
    ended = rag_contract("render", "report.json")
    assert ended.code == 2
    assert problem in ended.err


def test_a_long_branch_is_not_repeated_whole_for_every_query() -> None:
    written(history(branch="b" * 100_000, broken_since=broken_since(*NAMES)))
    assert max(len(shown(form)) for form in ("markdown", "junit", "text")) < 10_000
