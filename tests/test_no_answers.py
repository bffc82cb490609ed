"""``--no-answers``: what is wrong with a file is reported without the words of answers, documents and judges in it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import write_jsonl
from tests.judged_checks import BOTH
from tests.judgment_files import CONTEXT, FALSE, TRUE, judged_workspace, write_good_calibration, write_judgments_on
from tests.process import Ended, rag_contract

SECRET = "Zebras cost $42."
Row = dict[str, Any]
REPORTS = ("report.md", "report.json", "report.html", "junit.xml")
OPTIONS = ("--scores", "scores.jsonl", "--baseline", "base_run.jsonl", "--report-html", "report.html", *BOTH)

# By what is wrong: the value of a field, made with a key of an object in it.
MALFORMED: dict[str, Callable[[str], Any]] = {
    "a list": lambda _: [SECRET],
    "an object": lambda key: {key: [SECRET]},
    "a deep object": lambda key: {"a": [{key: [SECRET]}]},
    "a list of objects": lambda key: [{key: SECRET}],
    "a list of lists": lambda _: [[SECRET]],
    "too long": lambda _: SECRET * 100_000,
    "words that look like a message of ours": lambda _: f'x"; expected y, found {SECRET}',
}
NAMES = ("scores", "reasons", "checks")  # fields whose keys are names, which are shown
TEXTS = {
    "current_run.jsonl": ("response", "results", "retrieved_contexts", "tool_calls", "messages", "turns", "reasons"),
    "base_run.jsonl": ("response", "results", "retrieved_contexts", "tool_calls", "messages", "turns", "reasons"),
    "scores.jsonl": ("reasons", "checks", "scores"),
    "judgments.jsonl": ("quote", "reason", "item", "context", "votes", "verdict", "judge"),
}
FIELDS = [(name, field) for name, fields in TEXTS.items() for field in fields]
AS_A_LINE: dict[str, Callable[[str], str]] = {
    "cut off": lambda line: line[: line.index(SECRET) + 9],
    "a quotation mark too many": lambda line: line.replace(SECRET, f'"{SECRET}'),
    "a line break": lambda line: line.replace(SECRET, f"\n{SECRET}"),
    "an escape that is none": lambda line: line.replace(SECRET, rf"\q{SECRET}"),
    "half of a character": lambda line: line.replace(SECRET, rf"\ud800{SECRET}"),
    "single quotation marks": lambda line: line.replace(f'"{SECRET}', f"'{SECRET}"),
    "goes on": lambda line: line + SECRET,
    "begins early": lambda line: SECRET + line,
    "a conflict marker": lambda line: f"<<<<<<< {SECRET}\n{line}",
    "a list of rows": lambda line: f"[{line}]",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with valid files, all of which have the secret."""
    monkeypatch.chdir(tmp_path)
    contexts = [f"{CONTEXT} {SECRET}"]
    config = "metrics: {f: {from: scores}}\nminimums: {f: 0.5}\njudge: {uncalibrated: advisory}\n"
    judged_workspace(tmp_path, config, [TRUE], [FALSE], contexts=contexts)
    said = {"results": [{"doc_id": "d", "text": SECRET}], "response": SECRET, "retrieved_contexts": contexts}
    write_jsonl(tmp_path / "current_run.jsonl", [{"query_id": query, **said} for query in ("q1", "q2")])
    write_jsonl(tmp_path / "base_run.jsonl", [{"query_id": query, **said} for query in ("q1", "q2")])
    scored = {"scores": {"f": 0.1}, "reasons": {"f": SECRET}}
    write_jsonl(tmp_path / "scores.jsonl", [{"query_id": query, **scored} for query in ("q1", "q2")])
    write_judgments_on(tmp_path, [TRUE], [FALSE], contexts=contexts, quote=SECRET, reason=SECRET)
    write_good_calibration(tmp_path)
    return tmp_path


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def shown(folder: Path, ended: Ended) -> str:
    """Return all that a check printed and wrote."""
    reports = [folder / name for name in REPORTS]
    return "\n".join([ended.out, ended.err, *(path.read_text() for path in reports if path.exists())])


def test_nothing_that_was_said_is_shown_of_valid_files(folder: Path) -> None:
    assert "Zebras" in shown(folder, rag_contract("check", *OPTIONS))
    assert "Zebras" not in shown(folder, rag_contract("check", *OPTIONS, "--no-answers"))


@pytest.mark.parametrize("wrong", MALFORMED)
@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_no_word_of_a_malformed_field_is_shown(folder: Path, name: str, field: str, wrong: str) -> None:
    first, *others = rows_of(folder / name)
    value = MALFORMED[wrong]("f" if field in NAMES else SECRET)
    write_jsonl(folder / name, [first | {field: value}, *others])
    assert "Zebras" not in shown(folder, rag_contract("check", *OPTIONS, "--no-answers"))


@pytest.mark.parametrize("wrong", AS_A_LINE)
@pytest.mark.parametrize("name", TEXTS)
def test_no_word_of_a_line_that_cannot_be_read_is_shown(folder: Path, name: str, wrong: str) -> None:
    first, *others = (folder / name).read_text().splitlines()
    (folder / name).write_text("\n".join([AS_A_LINE[wrong](first), *others]))
    ended = rag_contract("check", *OPTIONS, "--no-answers")
    assert ended.code == 2
    assert "Zebras" not in shown(folder, ended)
    assert f"error: {name}:" in ended.err


@pytest.mark.parametrize("field", ["quote", "reason"])
def test_a_malformed_word_of_a_judge_is_reported_by_line_and_field_without_it(folder: Path, field: str) -> None:
    first, *others = rows_of(folder / "judgments.jsonl")
    write_jsonl(folder / "judgments.jsonl", [first | {field: [SECRET]}, *others])
    assert SECRET in rag_contract("check", *OPTIONS).err
    ended = rag_contract("check", *OPTIONS, "--no-answers")
    assert ended.code == 2
    assert f"error: judgments.jsonl:1: {field}: expected text" in ended.err
    assert "found (not shown)" in ended.err
