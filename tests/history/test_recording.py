"""What is recorded of a check, and that an entry is as good a baseline as the run itself."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests import golden_cases
from tests.builders import golden, run, write_jsonl
from tests.history.repository import without_ci
from tests.process import rag_contract

HISTORY = "history"
CASES = sorted(folder for folder in golden_cases.CASES.iterdir() if folder.is_dir())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    without_ci(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contract(*rows: dict[str, Any], config: dict[str, Any] | None = None, questions: int = 3) -> None:
    """Write a contract of some questions and a run; each question wants a document of its own."""
    write_jsonl(Path("golden.jsonl"), [golden(f"q{number}", f"doc{number}") for number in range(questions)])
    whole = [run(f"q{number}", f"doc{number}", "other") for number in range(questions)]
    write_jsonl(Path("current_run.jsonl"), [*rows, *whole[len(rows) :]])
    Path("ragcontract.yml").write_text(json.dumps(config or {}))


def recorded(*options: str, code: int = 0) -> dict[str, Any]:
    """Check and record; return the entry."""
    ended = rag_contract("check", "--name", "docs", *options)
    assert ended.code == code, ended
    ended = rag_contract("history", "add", "--history", HISTORY)
    assert ended.code == 0, ended
    path = ended.out.split()[-1]
    entry: dict[str, Any] = json.loads((Path(HISTORY) / path).read_text())
    assert path == f"entries/docs/{entry['created_at'][:7]}/{entry['id']}.json"
    return entry


def results(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the result set of an entry."""
    digest = entry["results"]["sha256"]
    data = (Path(HISTORY) / "results" / digest[:2] / f"{digest}.jsonl").read_bytes()
    assert hashlib.sha256(data).hexdigest() == digest
    assert len(data) == entry["results"]["bytes"]
    lines = [json.loads(line) for line in data.splitlines()]
    assert len(lines) == entry["results"]["queries"]
    return lines


def test_an_entry_says_what_the_report_says() -> None:
    config = {"minimums": {"recall_at_k": 0.9}, "waivers": []}
    contract(run("q0", "wrong"), config=config)
    entry = recorded(code=1)
    report = json.loads(Path("report.json").read_text())
    assert entry["verdict"] == report["verdict"] == "fail"
    assert entry["summary"] == report["summary"]
    assert entry["created_at"] == report["created_at"]
    assert entry["contract"] == "docs"
    assert entry["failed"] == ["q0"]
    assert entry["tolerated"] == []
    assert entry["broken"] == {"queries": 1, "new": 1, "in_baseline": 0}
    assert entry["metrics"]["mrr_at_5"]["value"] == report["metrics"]["mrr_at_5"]["current"]
    assert not any("judged" in key for key in entry["metrics"])  # a diagnostic metric
    (gate,) = entry["gates"]
    assert (gate["id"], gate["kind"], gate["limit"], gate["status"]) == ("minimums.recall_at_k", "minimum", 0.9, "fail")
    files = {name: [file["sha256"] for file in report["inputs"][name]["files"]] for name in ("golden", "run", "config")}
    assert {name: entry["inputs"][name]["sha256"] for name in files} == files
    assert entry["inputs"]["golden"]["queries"] == 3
    assert [query["id"] for query in results(entry)] == ["q0", "q1", "q2"]


def test_without_ci_the_id_is_of_time_and_report() -> None:
    contract()
    entry = recorded()
    digest = hashlib.sha256(Path("report.json").read_bytes()).hexdigest()[:12]
    time = re.sub("[-:]|\\+.*", "", entry["created_at"])
    assert entry["id"] == f"{time}Z-{'0' * 12}-{digest}-1"
    assert entry["source"]["commit"] is None


def test_a_result_set_does_not_depend_on_the_order_of_the_golden_file() -> None:
    contract()
    first = recorded()
    lines = Path("golden.jsonl").read_text().splitlines(keepends=True)
    Path("golden.jsonl").write_text("".join(reversed(lines)))
    assert recorded()["results"] == first["results"]


def test_a_large_run_is_recorded_without_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcontract.core.bounds.RESULT_SET", 100)
    contract()
    rag_contract("check", "--name", "docs")
    ended = rag_contract("history", "add", "--history", HISTORY)
    assert "cannot be a baseline: it has no result set: it would be larger than" in ended.err
    [entry] = Path(HISTORY).glob("entries/docs/*/*.json")
    assert json.loads(entry.read_text())["results"] is None
    assert not [*Path(HISTORY).glob("results/*/*")]


def test_an_entry_that_would_be_too_large_leaves_out_what_is_of_tags_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcontract.core.bounds.ENTRY", 12_000)
    tags = [f"tag {number:03}" for number in range(300)]
    write_jsonl(Path("golden.jsonl"), [golden("q0", "doc0", tags=tags), golden("q1", "doc1")])
    write_jsonl(Path("current_run.jsonl"), [run("q0", "doc0"), run("q1", "x")])
    entry = recorded(code=1)
    assert entry["head"]["tags"] == {}
    assert entry["failed"] == ["q1"]
    monkeypatch.setattr("ragcontract.core.bounds.ENTRY", 500)
    ended = rag_contract("history", "add", "--history", "other")
    assert (ended.code, "its entry would be larger than" in ended.err) == (2, True)


def test_what_ci_says_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    contract()
    values = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SHA": "a1" * 20,
        "GITHUB_REF_NAME": "main",
        "GITHUB_REPOSITORY": "org/app",
        "GITHUB_RUN_ID": "123",
        "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_EVENT_NAME": "push",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    entry = recorded()
    assert entry["id"].endswith(f"-{'a1' * 6}-123-2")
    source = {name: value for name, value in entry["source"].items() if value}
    assert source == {
        "repository": "org/app",
        "commit": "a1" * 20,
        "branch": "main",
        "run_url": "https://github.com/org/app/actions/runs/123",
        "contract": "docs",
        "event": "push",
        "run_id": 123,
        "run_attempt": 2,
    }


def test_recording_twice_changes_nothing() -> None:
    contract()
    recorded()
    before = {path: path.read_bytes() for path in Path(HISTORY).rglob("*") if path.is_file()}
    ended = rag_contract("history", "add", "--history", HISTORY)
    assert ended.code == 0
    assert ended.out.startswith("already recorded: entries/docs/")
    assert {path: path.read_bytes() for path in Path(HISTORY).rglob("*") if path.is_file()} == before


def test_equal_results_are_stored_once() -> None:
    contract(config={"minimums": {"recall_at_k": 0.9}})
    first = recorded()
    contract(config={"minimums": {"recall_at_k": 0.8}})
    second = recorded()
    assert first["id"] != second["id"]
    assert first["results"] == second["results"]
    assert first["retrieval"] == second["retrieval"]
    assert len([*Path(HISTORY).glob("results/*/*")]) == 1


def test_the_digest_of_what_was_retrieved_changes_with_it_alone() -> None:
    contract()
    first = recorded()
    contract(run("q0", "doc0", "another"))
    assert recorded()["retrieval"] != first["retrieval"]


@pytest.mark.parametrize("name", ["golden.jsonl", "current_run.jsonl", "ragcontract.yml"])
def test_a_file_that_changed_since_the_check_is_an_error(name: str) -> None:
    contract()
    rag_contract("check")
    then = hashlib.sha256(Path(name).read_bytes()).hexdigest()[:8]
    with Path(name).open("a") as file:
        file.write("\n")
    now = hashlib.sha256(Path(name).read_bytes()).hexdigest()[:8]
    error = (
        f"error: report.json: {name} has changed since the check (sha256 {then}… then, {now}… now); run check again\n"
    )
    assert rag_contract("history", "add", "--history", HISTORY) == (2, "", error)
    assert not Path(HISTORY).exists()


def test_a_file_that_is_gone_is_an_error() -> None:
    contract()
    rag_contract("check")
    Path("current_run.jsonl").unlink()
    ended = rag_contract("history", "add", "--history", HISTORY)
    advice = "run this in the folder of the check, or run check again"
    why = f"current_run.jsonl cannot be read any more (No such file or directory); {advice}"
    assert ended == (2, "", f"error: report.json: {why}\n")


def test_a_check_of_a_part_is_not_recorded() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q0", "doc0", tags=["smoke"]), golden("q1", "doc1")])
    write_jsonl(Path("current_run.jsonl"), [run("q0", "doc0"), run("q1", "doc1")])
    rag_contract("check", "--tag", "smoke")
    error = "error: report.json: covers only part of the contract (--tag smoke); only whole checks are recorded\n"
    assert rag_contract("history", "add", "--history", HISTORY) == (2, "", error)


def test_a_check_without_a_verdict_is_not_recorded() -> None:
    contract()
    rag_contract("check")
    Path("current_run.jsonl").write_text("{")
    rag_contract("check")
    ended = rag_contract("history", "add", "--history", HISTORY)
    assert ended.code == 2
    assert "only checks with a verdict are recorded" in ended.err


def test_a_report_that_was_edited_is_not_recorded() -> None:
    contract(run("q0", "wrong"))
    rag_contract("check")
    report = json.loads(Path("report.json").read_text())
    report |= {"verdict": "pass", "failed_checks": [], "findings": [], "gates": []}
    for query in report["queries"]:
        query["status"] = "pass"
    Path("report.json").write_text(json.dumps(report))
    ended = rag_contract("history", "add", "--history", HISTORY)
    assert ended.code == 2
    assert "says pass, and its files give the verdict fail now" in ended.err


def test_a_run_that_lacks_queries_is_recorded_and_cannot_be_a_baseline() -> None:
    contract()
    write_jsonl(Path("current_run.jsonl"), [run("q0", "doc0")])
    Path("ragcontract.yml").write_text("missing_queries: zero")
    assert rag_contract("check", "--name", "docs").code == 1
    ended = rag_contract("history", "add", "--history", HISTORY)
    assert ended.code == 0
    assert "cannot be a baseline: it has no result set: the run has no row for 2 golden queries" in ended.err


def test_history_needs_a_name() -> None:
    contract()
    rag_contract("check")
    ended = rag_contract("history", "add")
    assert ended.code == 2
    assert "name the history with --history" in ended.err


def test_the_environment_can_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    contract()
    rag_contract("check")
    monkeypatch.setenv("RAG_CONTRACT_HISTORY", HISTORY)
    assert rag_contract("history", "add").code == 0
    assert rag_contract("history", "show").code == 0


SECRET = "the secret words of the application"


def test_no_text_of_the_application_or_its_documents_is_recorded() -> None:
    rows = [golden("q0", "doc0", reference=f"{SECRET} 0", answer_must_include=[f"{SECRET} 1"])]
    write_jsonl(Path("golden.jsonl"), rows)
    results_of = [{"doc_id": "doc0", "text": f"{SECRET} 2", "metadata": {"x": f"{SECRET} 3"}}]
    row = {
        "query_id": "q0",
        "results": results_of,
        "response": f"{SECRET} 4",
        "retrieved_contexts": [f"{SECRET} 5"],
        "tool_calls": [{"name": "a", "arguments": {"b": f"{SECRET} 6"}}],
    }
    write_jsonl(Path("current_run.jsonl"), [row])
    recorded(code=1)
    stored = [path.read_bytes() for path in Path(HISTORY).rglob("*") if path.is_file()]
    assert len(stored) == 3
    assert not any(SECRET.encode() in data for data in stored)
    assert any(golden("q0")["query"].encode() in data for data in stored)


def test_with_no_answers_questions_are_digests_and_a_changed_one_is_still_seen() -> None:
    contract()
    rag_contract("check", "--name", "docs")
    assert rag_contract("history", "add", "--history", HISTORY, "--no-answers").code == 0
    question = golden("q0")["query"]
    stored = [path.read_bytes() for path in Path(HISTORY).rglob("*") if path.is_file()]
    assert not any(question.encode() in data for data in stored)
    rag_contract("history", "show", "last", "--history", HISTORY, "--baseline-out", "stored.json")
    assert not rag_contract("check", "--baseline", "stored.json").code
    assert json.loads(Path("report.json").read_text())["inputs"]["baseline"]["changed"] == []
    Path("golden.jsonl").write_text(Path("golden.jsonl").read_text().replace("about q0", "is q0"))
    assert not rag_contract("check", "--baseline", "stored.json").code
    assert json.loads(Path("report.json").read_text())["inputs"]["baseline"]["changed"] == ["q0"]


def report_against(baseline: str) -> str | None:
    """Return report.json of a check against a baseline, without names, times and digests; None without a verdict."""
    if rag_contract("check", "--baseline", baseline).code > 1:
        return None
    text = Path("report.json").read_text().replace(baseline, "BASELINE")
    text = re.sub(r'("created_at": )"[^"]*"', r"\1TIME", text)
    return re.sub(r'("sha256": )"[^"]*"', r"\1DIGEST", text)


def stored_baseline() -> bool:
    """Store the run as the baseline that replaces the case's own; return whether that is possible.

    An entry does not say what it replaced, and neither does this file.
    """
    update: list[str] = []
    if Path("baseline.json").exists():
        Path("stored.json").write_bytes(Path("baseline.json").read_bytes())
        update = ["--update", "--accept-regressions", "why"]
    if rag_contract("baseline", "--out", "stored.json", *update).code:
        return False
    stored = json.loads(Path("stored.json").read_text())
    Path("stored.json").write_text(
        json.dumps({key: stored[key] for key in stored if key not in {"accepted", "replaces"}})
    )
    return True


def test_an_entry_is_as_good_a_baseline_as_the_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each golden case whose run can be stored: the same report, but for names and times, also of a worse run."""
    compared = 0
    for case in CASES:
        inside = folder / case.name
        golden_cases.copied(case, inside)
        monkeypatch.chdir(inside)
        if not stored_baseline() or rag_contract("check").code > 1:
            continue
        assert rag_contract("history", "add", "--history", HISTORY).code == 0, case.name
        assert rag_contract("history", "show", "last", "--history", HISTORY, "--baseline-out", "entry.json").code == 0
        for path in Path().glob("current_run*.jsonl"):
            worse = re.sub(r'"results": \[\{[^{}]*(\{[^{}]*\}[^{}]*)?\}(, )?', '"results": [', path.read_text())
            for text in (path.read_text(), worse):
                path.write_text(text)
                wanted = report_against("stored.json")
                assert report_against("entry.json") == wanted, case.name
                compared += wanted is not None
    assert compared > 60
