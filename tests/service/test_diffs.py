"""What changed between two runs, as the service answers: what compare says, and the queries lost and won."""

import json
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragcontract.history.copy_and_prune import copy
from ragcontract.history.entry import NewEntry, decode
from ragcontract.history.folder import Folder
from ragcontract.service.accounts import Principal
from ragcontract.service.database_store import DatabaseStore
from tests.builders import as_jsonl, golden, run, stored_query, write_jsonl
from tests.history.repository import git, new_repository
from tests.history.trends import LIMITS, contract, ids_of, results_at, run_at
from tests.process import rag_contract
from tests.service.served import Served, checked

IDS = ids_of()
START = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
Json = dict[str, Any]


def blob_of(*texts: str, config: str | None = None) -> bytes:
    return json.dumps({"golden": texts, "config": config}).encode()


def contract_blob() -> bytes:
    """Return the contract of the current folder as CI sends it."""
    return blob_of(Path("golden.jsonl").read_text(), config=Path("ragcontract.yml").read_text())


class Checks:
    """Real checks in a repository, each of a commit of its own, recorded in a folder and sent to the service."""

    def __init__(self, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        self._served, self._number = served, 0
        now = lambda: START + timedelta(hours=self._number)  # noqa: E731
        monkeypatch.setattr("ragcontract.cli.commands.check.clock", now)
        monkeypatch.setattr("ragcontract.cli.commands.compare.clock", now)

    def record(self, *rows: Json) -> tuple[int, str]:
        """Check rows and send what was recorded; return the ids of the run and of the entry."""
        self._number += 1
        git("commit", "-qm", "next", "--allow-empty")
        write_jsonl(Path("current_run.jsonl"), rows)
        assert rag_contract("check", "--name", "docs", "--report-json-detail", "all").code in {0, 1}
        ended = rag_contract("history", "add", "--history", "../history", "--branch", "main")
        assert ended.code == 0, ended
        path = ended.out.split()[-1]
        content = (Path("../history") / path).read_bytes()
        entry = decode(content, path)
        assert entry.results is not None
        new = NewEntry(entry=entry, content=content, results=Folder("../history").results(entry.results.sha256))
        report = self._served.send_blob(Path("report.json").read_bytes(), "report")
        blob = self._served.send_blob(contract_blob(), "golden")
        return self._served.add(new, report=report, golden=blob, default_branch=True), entry.id


@pytest.fixture
def checks(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checks:
    new_repository(tmp_path, monkeypatch)
    Path("ragcontract.yml").write_text("k: 3\n")
    Path(".git/info/exclude").write_text("*\n")
    queries = [golden("q1", "a.md"), golden("q2", "b.md"), golden("q3", "c.md", answer_must_include=["30 days"])]
    write_jsonl(Path("golden.jsonl"), queries)
    return Checks(served, monkeypatch)


def rows(said: str = "within 30 days", **documents: str) -> list[Json]:
    """Return the rows of a run in which each query found its document first, unless another one is named."""
    found = {"q1": "a.md", "q2": "b.md", "q3": "c.md"} | documents
    return [
        run(query, "x.md", document, **({"response": said} if query == "q3" else {}))
        for query, document in found.items()
    ]


def test_a_lost_query_is_named_with_its_ranks_and_its_rule(served: Served, checks: Checks) -> None:
    passed, _ = checks.record(*rows())
    checks.record(*rows(q1="y.md"))
    last, _ = checks.record(*rows(q1="y.md", q2="y.md"))
    answer = served.get(f"/runs/{last}/diff")
    assert answer["against"]["id"] == passed
    assert answer["against"] == next(
        each for each in served.get("/projects/docs/runs")["items"] if each["id"] == passed
    )
    assert answer["lost"] == [
        {
            "id": query,
            "query": f"What about {query}?",
            "rules": ["must_include"],
            "before": {document: 2},
            "now": {document: None},
        }
        for query, document in (("q1", "a.md"), ("q2", "b.md"))
    ]
    assert (answer["won"], answer["more_lost"], answer["more_won"]) == ([], 0, 0)


def test_what_was_broken_and_holds_now_is_won(served: Served, checks: Checks) -> None:
    broken, _ = checks.record(*rows(q1="y.md", q2="y.md"))
    fixed, _ = checks.record(*rows(q1="y.md"))
    answer = served.get(f"/runs/{fixed}/diff", against=str(broken))
    assert [(each["id"], each["before"], each["now"]) for each in answer["won"]] == [
        ("q2", {"b.md": None}, {"b.md": 2})
    ]
    assert answer["lost"] == []


def test_a_rule_about_the_answer_counts_as_it_was_recorded(served: Served, checks: Checks) -> None:
    checks.record(*rows())
    last, _ = checks.record(*rows("never"))
    answer = served.get(f"/runs/{last}/diff")
    assert [(each["id"], each["rules"], each["now"]) for each in answer["lost"]] == [
        ("q3", ["answer_must_include"], {"c.md": 2})
    ]


def test_the_comparison_is_that_of_the_command(served: Served, checks: Checks) -> None:
    (before, first), (after, second) = checks.record(*rows()), checks.record(*rows(q1="y.md", q3="y.md"))
    ended = rag_contract(
        *("compare", f"history:{first}", f"history:{second}", "--history", "../history", "--branch", "main"),
        *("--format", "json"),
    )
    assert ended.code == 0, ended
    expected = json.loads(ended.out)
    answer = served.get(f"/runs/{after}/diff", against=str(before))["comparison"]
    assert answer | {"created_at": expected["created_at"]} == expected
    assert answer["golden"][0]["path"] == "golden.jsonl"


def test_the_contract_is_that_of_the_newest_run(served: Served, checks: Checks) -> None:
    checks.record(*rows())
    broken, _ = checks.record(*rows(q1="y.md"))
    write_jsonl(Path("golden.jsonl"), [golden("q1", "x.md"), golden("q2", "b.md"), golden("q4", "d.md")])
    checks.record(run("q1", "x.md"), run("q2", "b.md"), run("q4", "d.md"))
    answer = served.get(f"/runs/{broken}/diff")
    assert (answer["lost"], answer["comparison"]["queries"]) == ([], 2)
    assert answer["comparison"]["warnings"][:1] == ["1 query left out, which not both runs have with today's question"]


def test_a_query_with_another_question_is_left_out(served: Served, checks: Checks) -> None:
    before, _ = checks.record(*rows())
    write_jsonl(Path("golden.jsonl"), [golden("q1", "a.md"), golden("q2", "b.md", query="Another one?")])
    last, _ = checks.record(*rows(q1="y.md", q2="y.md")[:2])
    answer = served.get(f"/runs/{last}/diff", against=str(before))
    assert ([each["id"] for each in answer["lost"]], answer["comparison"]["queries"]) == (["q1"], 1)


def sent(served: Served, blob: bytes | None, *results: Mapping[str, int] | None) -> list[int]:
    """Send a run for each of these ranks of the relevant documents, or without a result set; return their ids."""
    params = {} if blob is None else {"golden": served.send_blob(blob, "golden")}
    entries = [run_at(number, results_at(ranks) if ranks else None) for number, ranks in enumerate(results)]
    return [served.add(new, default_branch=True, **params) for new in entries]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    contract(tmp_path)
    return tmp_path


HELD, LOST = dict.fromkeys(IDS, 1), dict.fromkeys(IDS, 6)


PHRASE = as_jsonl(golden("question-00", "question-00.md", answer_must_include=["30 days"]))
UNKNOWN = "recorded as broken without the rules, so"


def test_a_broken_query_of_a_run_without_report_is_broken(served: Served, tmp_path: Path) -> None:
    """A copied history has no reports, so the answer's rule that the query breaks is not known by name."""
    history, found = Folder(str(tmp_path / "history")), {"question-00": 1}
    for number, failed in enumerate(((), IDS[:1], ())):
        history.add(run_at(number, results_at(found), failed=failed))  # all with the same result set
    store = DatabaseStore(served.database, Principal(actor="user:ana", role="admin"))
    assert copy(history, store).entries == 3
    served.add(run_at(3, results_at(found)), golden=served.send_blob(blob_of(PHRASE), "golden"), default_branch=True)
    lost = served.get("/runs/2/diff")
    assert [(each["id"], each["rules"]) for each in lost["lost"]] == [("question-00", [])]
    assert f"1 query was {UNKNOWN} it counts as broken, whatever today's rules are" in lost["comparison"]["warnings"]
    fixed = served.get("/runs/3/diff", against="2")
    assert ([each["id"] for each in fixed["won"]], fixed["lost"]) == (["question-00"], [])
    assert not [each for each in served.get("/runs/3/diff")["comparison"]["warnings"] if UNKNOWN in each]


@pytest.mark.usefixtures("folder")
def test_queries_of_runs_without_report_that_rank_rules_break_are_named_by_them(served: Served) -> None:
    entries = [run_at(0, results_at(HELD)), run_at(1, results_at(HELD | {IDS[0]: 6}), failed=IDS[:3])]
    blob = served.send_blob(contract_blob(), "golden")
    *_, last = (served.add(new, golden=blob, default_branch=True) for new in entries)
    answer = served.get(f"/runs/{last}/diff")
    assert [(each["id"], each["rules"]) for each in answer["lost"]] == [
        (IDS[0], ["must_include"]),
        (IDS[1], []),
        (IDS[2], []),
    ]
    assert f"2 queries were {UNKNOWN} they count as broken, whatever today's rules are" in str(answer["comparison"])


@pytest.mark.usefixtures("folder")
def test_of_very_many_lost_queries_the_rest_is_counted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcontract.core.bounds.SERVICE_DIFF_QUERIES", 20)
    *_, last = sent(served, contract_blob(), HELD, LOST)
    answer = served.get(f"/runs/{last}/diff")
    assert (len(answer["lost"]), answer["more_lost"]) == (20, len(IDS) - 20)


@pytest.mark.usefixtures("folder")
def test_only_a_run_that_passed_with_results_is_the_last_pass(served: Served) -> None:
    first, *_, last = sent(served, contract_blob(), HELD, None, LOST)
    new = run_at(10, results_at(HELD), hours=1.3, source={"dirty": True})
    served.add(new)
    served.add(run_at(11, results_at(HELD), hours=1.3, source={"branch": "feature"}))
    assert served.get(f"/runs/{last}/diff")["against"]["id"] == first


@pytest.mark.usefixtures("folder")
def test_what_cannot_be_compared_is_explained(served: Served) -> None:
    first, without, last = sent(served, contract_blob(), HELD, None, LOST)
    other = served.add(run_at(1, results_at(HELD), contract="other"))
    key = served.new_key("read", project="other")

    def refused(path: str, status: int, detail: str, **options: Any) -> None:
        answer = served.request("GET", path, **options)
        assert (checked(answer), answer.json()["detail"]) == (status, detail)

    no_run = "there is no such run, or the key may not see it"
    refused(f"/runs/{first}/diff", 404, "no run of the project's branch passed before this one")
    for name in ("999", "-1", "x", "9" * 19, "9" * 5_000, "1%00"):
        refused(f"/runs/{last}/diff?against={name}", 404, no_run)
    refused("/runs/999/diff", 404, no_run)
    refused(f"/runs/{last}/diff", 404, no_run, key=key)
    refused(f"/runs/{last}/diff?against={other}", 404, "the other run is of another project")
    refused(f"/runs/{other}/diff?against={first}", 404, no_run, key=key)
    answer = served.request("GET", f"/runs/{without}/diff?against={first}")
    assert (checked(answer), "has no result set" in answer.json()["detail"]) == (409, True)


@pytest.mark.usefixtures("folder")
def test_without_a_contract_nothing_is_compared(served: Served) -> None:
    *_, last = sent(served, None, HELD, LOST)
    answer = served.request("GET", f"/runs/{last}/diff")
    assert (checked(answer), answer.json()["detail"][:21]) == (409, "no contract is known:")


def test_runs_that_share_no_query_with_the_contract_are_not_compared(served: Served) -> None:
    *_, last = sent(served, blob_of(as_jsonl(golden("another"))), HELD, LOST)
    answer = served.request("GET", f"/runs/{last}/diff")
    expected = "the runs have no query in common that the contract has"
    assert (checked(answer), answer.json()["detail"]) == (409, expected)


def test_a_result_set_that_is_none_is_no_fault_of_the_service(served: Served) -> None:
    blob = served.send_blob(blob_of(as_jsonl(golden("q1"))), "golden")
    for number, results in enumerate((b"\x00\xff", as_jsonl(stored_query("q1")).encode() * 2)):
        served.add(run_at(number, results), golden=blob, default_branch=True)
    first, last = (each["id"] for each in served.get("/projects/docs/runs")["items"][::-1])
    assert served.status(f"/runs/{last}/diff", against=str(first)) == 409
    assert served.status(f"/runs/{last}/diff", against=str(last)) == 409


ROW = as_jsonl(golden("question-00", "question-00.md"))
OUTSIDE = "/etc/passwd"
BLOBS = {
    "no JSON": b"\x00\xff",
    "no object": b"[]",
    "no golden files": b'{"golden": [], "config": null}',
    "files that are no text": b'{"golden": [{"path": "/etc/passwd"}]}',
    "deeply nested": b'{"golden": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested rows": blob_of('{"id": "q1", "query": "x", "relevant_doc_ids": ' + "[" * 5_000 + "]" * 5_000 + "}"),
    "too many files": blob_of(*[ROW] * 101),
    "too large": blob_of(ROW + " " * (8 << 20)),
    "a path as a golden file": blob_of(OUTSIDE),
    "a row with a path": blob_of(as_jsonl({"id": "x", "query": "x", "file": OUTSIDE})),
    "aliases": blob_of(ROW, config="k: &a [1]\nminimums: *a\n"),
    "a tag that makes objects": blob_of(ROW, config='k: !!python/object/apply:os.system ["x"]\n'),
    "a plugin": blob_of(
        as_jsonl(golden(custom="tests.service.plugin:Rule")), config="plugins: [tests.service.plugin]\n"
    ),
    "a module in a metric": blob_of(ROW, config="metrics: {x: {from: 'tests.service.plugin:metric'}}\n"),
    "a file in a metric": blob_of(ROW, config=f"metrics: {{x: {{from: '{OUTSIDE}'}}}}\n"),
    "a judge": blob_of(ROW, config=f"judge: {{second_pass: true, url: 'http://localhost', file: {OUTSIDE}}}\n"),
    "gzip": blob_of("\x1f\x8b\x08" + "\x00" * 100),
    "Parquet": blob_of("PAR1" + "\x00" * 100 + "PAR1"),
    "no text": blob_of("\x00" * 1_000, config="\x00" * 1_000),
}


@pytest.mark.parametrize("name", BLOBS)
def test_a_hostile_contract_is_refused_and_opens_nothing(served: Served, name: str) -> None:
    *_, last = sent(served, BLOBS[name], {"question-00": 1}, {"question-00": 6})
    opened = Opened()
    answer = served.request("GET", f"/runs/{last}/diff")
    opened.end()
    assert checked(answer) == 409
    assert answer.json()["detail"].startswith("the contract cannot be read: ")
    assert tempfile.gettempdir() not in answer.text
    assert not [path for path in opened.paths if "passwd" in path or "plugin" in path]
    metric = served.request("GET", "/projects/docs/metrics?metric=mrr_at_5")
    assert metric.status_code in {200, 404}


RULE = {"type": "custom", "plugin": "tests.service.plugin:Rule"}
WITHOUT_CODE = {
    "judged metrics": blob_of(ROW, config=LIMITS + "judge: {second_pass: true}\n"),
    "a rule of a plugin": blob_of(as_jsonl(golden("question-00", "question-00.md", rules=[RULE]))),
}


@pytest.mark.parametrize("name", WITHOUT_CODE)
def test_what_needs_other_code_is_left_as_it_was_recorded(served: Served, name: str) -> None:
    *_, last = sent(served, WITHOUT_CODE[name], {"question-00": 1}, {"question-00": 6})
    opened = Opened()
    lost = served.get(f"/runs/{last}/diff")["lost"]
    opened.end()
    assert [(each["id"], each["rules"]) for each in lost] == [("question-00", ["must_include"])]
    assert not [path for path in opened.paths if "plugin" in path]


class Opened:
    """The paths that this process opens and the modules that it imports, until ``end``."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._watching = True
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._watching and event in {"open", "import", "subprocess.Popen", "os.system"}:
            self.paths.append(str(arguments[0]))

    def end(self) -> None:
        self._watching = False
