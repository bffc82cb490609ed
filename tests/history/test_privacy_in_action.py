"""No text of the application, its documents or the job's secrets is in what a job records; questions only if they may.

Everything that is sent to GitHub for the history is looked at, and everything in the branch or the folder afterwards.
"""

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import write_jsonl
from tests.github.standin import TOKEN, GitHub
from tests.history.action_jobs import BRANCH, IN_BRANCH, entries, is_of_history, messages, push
from tests.judgment_files import judged_workspace, write_good_calibration, write_judgments_on
from tests.needs import require
from tests.process import files_in
from tests.runner import InProcess

QUESTION = "Quokka"
# By the word in it: a text of the application, of its documents, of a judge, or of what is expected of an answer.
ANSWER, DOCUMENT, CONTEXT, REASON, TOOL, ARGUMENT, ERROR, CLAIM, SAID, LABEL, PATTERN = SECRETS = (
    *("Zebra", "Yak", "Xerus", "Walrus", "Vicuna", "Urial", "Tapir", "Serval", "Rhea", "Puma", "Ocelot"),
)


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> InProcess:
    """A contract over answers whose files have all of these words."""
    require("npm")
    runner = InProcess(tmp_path, github)
    folder, contexts = runner.workspace, [f"{CONTEXT} are sold."]
    config = "metrics: {f: {from: scores}}\nminimums: {f: 0.5}\njudge: {uncalibrated: advisory}\n"
    judged_workspace(folder, config, [f"{CLAIM} is true."], contexts=contexts)
    expected = {
        "id": "q1",
        "query": f"What does a {QUESTION} cost?",
        "relevant_doc_ids": ["doc1"],
        "reference_claims": [f"{CLAIM} is true."],
        "reference_contexts": contexts,
        "rules": [{"type": "regex_must_match", "pattern": PATTERN}],
    }
    write_jsonl(folder / "golden.jsonl", [expected])
    row: dict[str, Any] = {
        "query_id": "q1",
        "query": f"What does a {QUESTION} cost?",
        "results": [{"doc_id": "doc1", "text": f"{DOCUMENT} cost 42."}],
        "response": f"{ANSWER} cost 42.",
        "retrieved_contexts": contexts,
        "tool_calls": [{"name": TOOL, "arguments": {"of": ARGUMENT}}],
        "error_detail": ERROR,
    }
    write_jsonl(folder / "current_run.jsonl", [row])
    scored = {"query_id": "q1", "scores": {"f": 0.1}, "reasons": {"f": f"{REASON} said so"}}
    write_jsonl(folder / "scores.jsonl", [scored])
    write_judgments_on(folder, [f"{CLAIM} is true."], contexts=contexts, quote=SAID, reason=LABEL)
    write_good_calibration(folder)
    return runner


def texts_sent(github: GitHub) -> Iterator[str]:
    """Yield what was sent to GitHub for the history, with the contents of files as they are."""
    for sent in github.sent:
        if is_of_history(sent):
            yield json.dumps(sent.body)
            changes = ((sent.body or {}).get("variables", {}).get("input") or {}).get("fileChanges") or {}
            yield from (b64decode(file["contents"]).decode() for file in changes.get("additions", []))


def recorded(runner: InProcess, inputs: dict[str, str]) -> list[str]:
    """Record a check; return all texts that are kept of it."""
    result = push().run(runner, {"scores": "scores.jsonl", "name": "docs"} | inputs)
    assert result.outputs["verdict"] == "fail", result.log
    assert "history-entry" in result.outputs, result.log
    folder = files_in(runner.workspace / "past")
    branch = runner.github.repository.files(BRANCH)
    kept = {name: data.decode() for name, data in (folder | branch).items()}
    assert sorted(Path(name).suffix for name in kept) == [".json", ".json", ".jsonl", ".md", ".svg"]
    return [*kept, *kept.values(), *texts_sent(runner.github)]


STORES = [IN_BRANCH, {"history": "past"}]


def test_the_words_are_in_what_is_shown_of_the_check(runner: InProcess) -> None:
    """Otherwise the tests below would prove nothing."""
    recorded(runner, IN_BRANCH)
    files = "".join(data.decode() for data in files_in(runner.workspace).values())
    assert [word for word in (*SECRETS, QUESTION) if word not in files] == []


@pytest.mark.parametrize("store", STORES)
def test_without_answers_no_text_is_kept_and_questions_are_digests(runner: InProcess, store: dict[str, str]) -> None:
    kept = recorded(runner, {"no-answers": "true", **store})
    assert [word for word in (*SECRETS, QUESTION, TOKEN) for text in kept if word in text] == []
    [rows] = [text for text in kept if text.startswith('{"id":"q1"')][:1]
    assert json.loads(rows)["query"].startswith("sha256:")
    assert json.loads(rows)["doc_ids"] == ["doc1"]


@pytest.mark.parametrize("store", STORES)
def test_of_texts_only_questions_are_kept(runner: InProcess, store: dict[str, str]) -> None:
    kept = recorded(runner, store)
    assert [word for word in (*SECRETS, TOKEN) for text in kept if word in text] == []
    [rows] = [text for text in kept if text.startswith('{"id":"q1"')][:1]
    assert json.loads(rows)["query"] == f"What does a {QUESTION} cost?"


def test_questions_that_are_digests_are_compared_with_the_questions_of_today(runner: InProcess, github: GitHub) -> None:
    private = {"no-answers": "true", "baseline": "history:last-pass", "scores": "", **IN_BRANCH}
    golden = {"id": "q1", "query": f"What does a {QUESTION} cost?", "relevant_doc_ids": ["doc1"]}
    write_jsonl(runner.workspace / "golden.jsonl", [golden])
    (runner.workspace / "ragcontract.yml").write_text("fail_on:\n  mrr_drop_gt: 0.1\n")
    first, second = (github.repository.commit("main", {"a": b"%d" % number}) for number in range(2))
    assert push(first).run(runner, private, run=1).exit_code == 0
    assert push(second).run(runner, private, run=2).exit_code == 0
    assert len(entries(github)) == 2
    write_jsonl(runner.workspace / "golden.jsonl", [golden | {"query": "What does a Numbat cost?"}])
    changed = push(second).run(runner, private, run=3)
    [error] = messages(changed, "error")
    assert error.startswith(f"history:{entries(github)[1].id}: has ids in common with the golden file, but no")
